#include "dashboard/job_desk.hpp"

#include "base/names.hpp"
#include "common/job_json.hpp"
#include "observe/reader.hpp"

#include <lockstep/error.hpp>

#include <algorithm>
#include <set>
#include <utility>

namespace lockstep::dashboard {

namespace {

using observe::reader;
using std::chrono::seconds;

constexpr std::size_t most_queues = 500;
constexpr std::size_t keys_of_a_scan = 1'000;
constexpr std::size_t requests_at_once = 50;
constexpr seconds names_last{2};
constexpr seconds counts_last{1};
constexpr seconds between_samples{2};
constexpr seconds longest_gap{30};       // a rate over more than this says nothing of a time
constexpr std::size_t most_samples = 300;  // ten minutes

reader reader_of(client& by) { return reader{detail::core_access::of(by)}; }

// MATCH takes a pattern, and a prefix may have characters that mean something there.
std::string as_pattern(std::string_view text) {
    std::string out;
    for (char const one : text) {
        if (std::string_view{"*?[]\\"}.find(one) != std::string_view::npos) out += '\\';
        out += one;
    }
    return out;
}

// The name of the jobs whose key this is, of their types or of their schedules.
std::optional<std::string> name_in(std::string_view key, std::string_view prefix) {
    auto const end = key.rfind("}:jobs:");
    if (end == std::string_view::npos || end < prefix.size() + 2) return std::nullopt;
    auto const word = key.substr(end + 7);
    if (word != "types" && word != "crons") return std::nullopt;
    auto name = base::decode_name(key.substr(prefix.size() + 2, end - prefix.size() - 2));
    if (!name || name->empty()) return std::nullopt;
    return name;
}

task<std::vector<std::string>> scan_node(reader from, std::int16_t slot) {
    std::vector<std::string> found;
    auto const match = as_pattern(from.prefix()) + ":{*}:jobs:[tc]*s";
    std::string cursor = "0";
    do {
        std::vector<std::string> words{"SCAN", cursor, "MATCH", match, "COUNT", std::to_string(keys_of_a_scan)};
        auto asking = from.command(slot, std::move(words));
        auto const said = co_await std::move(asking);
        cursor = said[0].text();
        for (auto const key : said[1])
            if (auto name = name_in(key.text(), from.prefix())) found.push_back(std::move(*name));
    } while (cursor != "0");
    co_return found;
}

task<std::vector<std::string>> scan(reader from) {
    auto asking = from.nodes();
    auto const nodes = co_await std::move(asking);
    std::vector<task<std::vector<std::string>>> scans;
    for (auto const slot : nodes) scans.push_back(scan_node(from, slot));
    auto scanning = when_all(std::move(scans));
    auto const lists = co_await std::move(scanning);
    std::set<std::string> all;
    for (auto const& list : lists) all.insert(list.begin(), list.end());
    co_return std::vector<std::string>(all.begin(), all.end());
}

// A key that another program put there hides nothing but itself.
task<std::optional<std::vector<std::string>>> types_of(job_client of) {
    try {
        auto asking = of.async_types();
        auto all = co_await std::move(asking);
        co_return std::optional{std::move(all)};
    } catch (server_error const&) {
        co_return std::nullopt;
    }
}

task<std::optional<job_counts>> counts_of(job_client of, std::string type) {
    try {
        auto asking = of.async_counts(type);
        auto const found = co_await std::move(asking);
        co_return std::optional{found};
    } catch (server_error const&) {
        co_return std::nullopt;
    } catch (invalid_argument_error const&) {  // no type that a job could have
        co_return std::nullopt;
    }
}

job_counts sum(job_counts a, job_counts const& b) {
    a.waiting += b.waiting;
    a.delayed += b.delayed;
    a.blocked += b.blocked;
    a.running += b.running;
    a.ever_completed += b.ever_completed;
    a.ever_failed += b.ever_failed;
    return a;
}

}  // namespace

std::int64_t count_in(job_counts const& counts, job_state state) {
    switch (state) {
        case job_state::waiting: return counts.waiting + counts.delayed;
        case job_state::blocked: return counts.blocked;
        case job_state::running: return counts.running;
        case job_state::completed: return counts.completed;
        case job_state::failed: return counts.failed;
        case job_state::cancelled: return counts.cancelled;
        case job_state::unknown: break;
    }
    return 0;
}

void job_desk::find_names() {
    auto const begun = clock::now();
    bool const is_known = names_at_ != clock::time_point{};
    if (is_known && begun - names_at_ < std::max<clock::duration>(names_last, 20 * names_took_)) return;
    names_ = sync_wait(scan(reader_of(client_)));
    too_many_ = names_.size() > most_queues ? names_.size() - most_queues : 0;
    if (too_many_ > 0) names_.resize(most_queues);
    names_at_ = clock::now();
    names_took_ = names_at_ - begun;
    std::erase_if(clients_, [&](auto const& one) { return !std::ranges::binary_search(names_, one.first); });
    for (auto const& name : names_) clients_.try_emplace(name, client_, name);
}

void job_desk::count() {
    std::vector<task<std::optional<std::vector<std::string>>>> asking;
    for (auto const& name : names_) asking.push_back(types_of(clients_.at(name)));
    auto const types = sync_wait(observe::in_groups(std::move(asking), requests_at_once));
    auto made = std::make_shared<job_overview>();
    made->left_out = too_many_;
    std::vector<job_queue> queues;
    std::vector<task<std::optional<job_counts>>> counting;
    for (std::size_t i = 0; i < names_.size(); ++i) {
        if (!types[i]) ++made->left_out;
        for (auto const& type : types[i].value_or(std::vector<std::string>{})) {
            if (queues.size() == most_queues) {
                ++made->left_out;
                continue;
            }
            queues.push_back({.name = names_[i], .type = type});
            counting.push_back(counts_of(clients_.at(names_[i]), type));
        }
    }
    auto const counts = sync_wait(observe::in_groups(std::move(counting), requests_at_once));
    auto const at = clock::now();
    job_counts total;
    for (std::size_t i = 0; i < queues.size(); ++i) {
        if (!counts[i]) {
            ++made->left_out;
            continue;
        }
        auto& one = queues[i];
        one.counts = *counts[i];
        auto& of = tracks_[{one.name, one.type}];
        follow(of, one.counts, at);
        one.completed_per_s = of.completed_per_s;
        one.failed_per_s = of.failed_per_s;
        total = sum(total, one.counts);
        made->queues.push_back(std::move(one));
    }
    std::erase_if(tracks_, [&](auto const& one) { return one.second.at != at && at - one.second.at > longest_gap; });
    follow(all_, total, at);
    seen_ = std::move(made);
    seen_at_ = at;
}

void job_desk::follow(track& of, job_counts const& now, clock::time_point at) {
    auto const since = at - of.at;
    bool const is_first = of.at == clock::time_point{};
    if (!is_first && since < between_samples - std::chrono::milliseconds{100}) return;  // the clock of who calls every two seconds is not exact
    of.completed_per_s = of.failed_per_s = std::nullopt;
    // A count that is smaller than before begins anew.
    if (!is_first && since <= longest_gap && now.ever_completed >= of.last.ever_completed && now.ever_failed >= of.last.ever_failed) {
        double const time = std::chrono::duration<double>(since).count();
        of.completed_per_s = static_cast<double>(now.ever_completed - of.last.ever_completed) / time;
        of.failed_per_s = static_cast<double>(now.ever_failed - of.last.ever_failed) / time;
    }
    of.last = now;
    of.at = at;
    of.samples.push_back({.at_ms = apps::in_ms(std::chrono::system_clock::now()), .waiting = count_in(now, job_state::waiting), .running = now.running,
                          .completed_per_s = of.completed_per_s, .failed_per_s = of.failed_per_s});
    if (of.samples.size() > most_samples) of.samples.pop_front();
}

std::shared_ptr<job_overview const> job_desk::look() {
    std::lock_guard const lock{mutex_};
    if (seen_ && clock::now() - seen_at_ < counts_last) return seen_;
    find_names();
    count();
    return seen_;
}

std::vector<job_sample> job_desk::samples(job_filter const& which) {
    std::lock_guard const lock{mutex_};
    if (which.name.empty()) return {all_.samples.begin(), all_.samples.end()};
    auto const found = tracks_.find({which.name, which.type});
    if (found == tracks_.end()) return {};
    return {found->second.samples.begin(), found->second.samples.end()};
}

job_page job_desk::list(job_filter const& which, job_state state, std::size_t from, std::size_t most) {
    std::vector<job_queue> queues;
    if (!which.name.empty() && !which.type.empty()) {
        queues.push_back({.name = which.name, .type = which.type, .counts = job_client{client_, which.name}.counts(which.type)});
    } else {
        for (auto const& one : look()->queues)
            if ((which.name.empty() || which.name == one.name) && (which.type.empty() || which.type == one.type)) queues.push_back(one);
    }
    job_page made;
    for (auto const& one : queues) {
        auto const here = static_cast<std::size_t>(std::max<std::int64_t>(count_in(one.counts, state), 0));
        made.total += static_cast<std::int64_t>(here);
        if (from >= here || made.jobs.size() >= most) {
            from -= std::min(from, here);
            continue;
        }
        for (auto& job : job_client{client_, one.name}.list(one.type, state, from, std::min(most - made.jobs.size(), here - from)))
            made.jobs.push_back({one.name, std::move(job)});
        from = 0;
    }
    return made;
}

std::optional<job_info> job_desk::find(std::string const& name, std::string_view id) { return job_client{client_, name}.find(id); }

flow_info job_desk::flow_of(std::string const& name, std::string_view id, std::size_t most) { return job_client{client_, name}.flow_of(id, most); }

std::vector<named_cron> job_desk::crons(std::string const& name) {
    std::vector<std::string> names{name};
    if (name.empty()) {
        std::lock_guard const lock{mutex_};
        find_names();
        names = names_;
    }
    std::vector<task<std::vector<cron_info>>> asking;
    for (auto const& one : names) asking.push_back(job_client{client_, one}.async_crons());
    auto lists = sync_wait(observe::in_groups(std::move(asking), requests_at_once));
    std::vector<named_cron> all;
    for (std::size_t i = 0; i < names.size(); ++i)
        for (auto& one : lists[i]) all.push_back({names[i], std::move(one)});
    std::ranges::stable_sort(all, [](named_cron const& a, named_cron const& b) {
        return a.is.next && b.is.next ? *a.is.next < *b.is.next : a.is.next.has_value() && !b.is.next.has_value();
    });
    return all;
}

}  // namespace lockstep::dashboard
