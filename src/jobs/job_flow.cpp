#include <lockstep/job_flow.hpp>

#include "jobs/job_text.hpp"

#include <lockstep/error.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>

namespace lockstep {
namespace {

constexpr std::size_t most_jobs = 20'000;
constexpr std::size_t most_links = 200'000;
constexpr std::size_t most_shown = 20;  // of a cycle

[[noreturn]] void refuse(std::string const& what) { throw invalid_argument_error("a flow of jobs: " + what); }

using graph = std::vector<std::vector<std::size_t>>;  // the children of each

/// Those of a cycle, in order; nothing: there is none.
std::optional<std::vector<std::size_t>> find_cycle(graph const& children) {
    enum class mark : std::uint8_t { fresh, open, done };
    std::vector<mark> marks(children.size(), mark::fresh);
    std::vector<std::pair<std::size_t, std::size_t>> path;  // and which child is next
    for (std::size_t first = 0; first != children.size(); ++first) {
        if (marks[first] != mark::fresh) continue;
        marks[first] = mark::open;
        path.emplace_back(first, 0);
        while (!path.empty()) {
            auto& [at, next] = path.back();
            if (next == children[at].size()) {
                marks[at] = mark::done;
                path.pop_back();
                continue;
            }
            auto const child = children[at][next++];
            if (marks[child] == mark::open) {
                auto from = std::find_if(path.begin(), path.end(), [&](auto const& one) { return one.first == child; });
                std::vector<std::size_t> cycle;
                for (; from != path.end(); ++from) cycle.push_back(from->first);
                return cycle;
            }
            if (marks[child] == mark::done) continue;
            marks[child] = mark::open;
            path.emplace_back(child, 0);
        }
    }
    return std::nullopt;
}

}  // namespace

job_flow& job_flow::add_bytes(std::string_view name, std::string_view type, std::string payload, job_options const& how) {
    if (name.empty() || name.size() > 512 || name.find('/') != std::string_view::npos) {
        refuse(fmt::format("a name is 1 to 512 bytes, without a slash, not '{}'", name.substr(0, 100)));
    }
    detail::check_job_type(type);
    if (!how.batch.empty()) detail::check_batch(how.batch);
    if (names_.contains(name)) refuse(fmt::format("there are two jobs '{}'", name));
    if (!how.key.empty()) refuse(fmt::format("'{}' has a key: it might be left out, and those that wait for it could never be run", name));
    if (nodes_.size() == most_jobs) refuse(fmt::format("{} jobs at most", most_jobs));
    payload.insert(0, detail::write_terms(how) + '\n');
    nodes_.push_back({std::string{name}, std::string{type}, detail::write_place(how), detail::write_single(how), std::string{how.batch}, std::move(payload)});
    names_.emplace(name, nodes_.size() - 1);
    return *this;
}

job_flow& job_flow::after(std::string_view child, std::string_view parent) {
    if (links_.size() == most_links) refuse(fmt::format("{} links at most", most_links));
    links_.emplace_back(child, parent);
    return *this;
}

job_flow& job_flow::after(std::string_view child, std::initializer_list<std::string_view> parents) {
    for (auto const one : parents) after(child, one);
    return *this;
}

std::vector<job_flow::node> job_flow::checked() const {
    if (nodes_.empty()) refuse("it has no jobs");
    auto const index_of = [&](std::string_view name) {
        auto const found = names_.find(name);
        if (found == names_.end()) refuse(fmt::format("there is no job '{}'", name.substr(0, 512)));
        return found->second;
    };
    auto links = links_;
    std::sort(links.begin(), links.end());
    links.erase(std::unique(links.begin(), links.end()), links.end());
    auto all = nodes_;
    graph children(all.size());
    for (auto const& [child, parent] : links) {
        auto const at = index_of(child);
        if (parent.find('/') != std::string::npos) {
            detail::read_job_name(parent);
            all[at].parents.push_back(parent);
            continue;
        }
        auto const from = index_of(parent);
        children[from].push_back(at);
        all[at].parents.push_back(fmt::format("#{}", static_cast<std::int64_t>(from) - static_cast<std::int64_t>(at)));
    }
    if (auto const cycle = find_cycle(children)) {
        std::string path;
        for (std::size_t i = 0; i != std::min(cycle->size(), most_shown); ++i) path += all[(*cycle)[i]].name + " -> ";
        if (cycle->size() > most_shown) path += fmt::format("... ({} more) -> ", cycle->size() - most_shown);
        refuse("a cycle: " + path + all[cycle->front()].name);
    }
    return all;
}

}  // namespace lockstep
