#include "base/stored_time.hpp"
#include "lease/tracer.hpp"
#include "observe/entries.hpp"
#include "observe/offload.hpp"
#include "resp/cursor.hpp"

#include <lockstep/monitor.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <optional>
#include <utility>

namespace lockstep {
namespace {

using observe::reader;
using namespace std::chrono_literals;

template <class T>
T as_number(std::string_view text) {
    T number = 0;
    std::from_chars(text.data(), text.data() + text.size(), number);
    return number;
}

history_entry read_entry(std::string_view id, reply_view fields) {
    history_entry one;
    one.id = id;
    one.permits = 1;
    for (resp::cursor rest{fields}; rest.left() >= 2;) {
        auto const field = rest.next().text();
        auto const value = rest.next().text();
        if (field == "what") one.what = value;
        if (field == "kind") one.kind = value;
        if (field == "use") one.use = value;
        if (field == "name") one.name = value;
        if (field == "hold") one.hold = value;
        if (field == "trace") one.trace = value;
        if (field == "detail") one.detail = value;
        if (field == "owner") one.owner = value;
        if (field == "fence") one.fence = as_number<std::uint64_t>(value);
        if (field == "missing") one.missing = as_number<std::uint64_t>(value);
        if (field == "permits") one.permits = as_number<std::int64_t>(value);
        if (field == "waited") one.waited = std::chrono::microseconds{as_number<std::int64_t>(value)};
        if (field == "held") one.held = std::chrono::microseconds{as_number<std::int64_t>(value)};
        if (field == "at") one.at = base::time_of_ms(as_number<std::int64_t>(value));
    }
    return one;
}

task<std::vector<history_entry>> read_history(reader from, std::string name, std::size_t most) {
    auto const key = from.key(engine::record_name, engine::record_word);
    std::vector<history_entry> all;
    if (most == 0) co_return all;
    auto const add = [&](std::string_view id, reply_view fields) {
        auto one = read_entry(id, fields);
        if (name.empty() || one.name == name) all.push_back(std::move(one));
        return all.size() < most;
    };
    auto reading = observe::for_each_entry(from, key, add);
    co_await std::move(reading);
    // Clients write a moment later than it happens, each in its own time.
    auto const size = all.size();
    auto work = [all = std::move(all)]() mutable {
        std::stable_sort(all.begin(), all.end(), [](history_entry const& a, history_entry const& b) {
            return std::tie(a.at, a.id) < std::tie(b.at, b.id);
        });
        return std::move(all);
    };
    auto sorting = observe::offload(from, size, std::move(work));
    co_return co_await std::move(sorting);
}

/// One hold, from the record of its beginning to that of its end.
struct span {
    history_entry const* begin;
    history_entry const* end = nullptr;
};

/// Clocks of clients know the server's to within the time of an answer.
constexpr std::chrono::milliseconds tolerance{20};

bool is_re_entry(span const& a, span const& b) { return a.begin->kind == "recursive" && a.begin->fence == b.begin->fence; }

bool may_share(span const& a, span const& b) {
    return a.begin->kind == "semaphore" || a.begin->kind == "event" || (a.begin->use == "reader" && b.begin->use == "reader") || is_re_entry(a, b);
}

void check(std::vector<span> const& spans, std::vector<violation>& found) {
    auto const blame = [&](std::string what, span const& a, span const& b, std::string text) {
        found.push_back({a.begin->name, a.begin->kind, std::move(what), *a.begin, *b.begin, std::move(text)});
    };
    span const* longest = nullptr;   // the hold that ends last of those before
    span const* newest = nullptr;    // the one with the largest fence of those before
    for (auto const& one : spans) {
        if (newest != nullptr && one.begin->fence <= newest->begin->fence && !is_re_entry(*newest, one) &&
            one.begin->at > newest->begin->at + tolerance) {
            blame("fence", *newest, one, fmt::format("fence {} was given after {}", one.begin->fence, newest->begin->fence));
        }
        if (longest != nullptr && !may_share(*longest, one) && one.begin->at + tolerance < longest->end->at) {
            auto const by = std::chrono::duration_cast<std::chrono::milliseconds>(longest->end->at - one.begin->at);
            blame("overlap", *longest, one, fmt::format("{} got it {} ms before {} let go", one.begin->owner, by.count(), longest->begin->owner));
        }
        if (newest == nullptr || one.begin->fence > newest->begin->fence) newest = &one;
        // A lease that was lost was over before its holder could write that down: of it only its fence is checked.
        bool const known = one.end != nullptr && one.end->what == "released";
        if (known && (longest == nullptr || one.end->at > longest->end->at)) longest = &one;
    }
}

}  // namespace

task<std::vector<history_entry>> monitor::async_history(std::string_view name, std::size_t most) {
    auto const& core = detail::core_access::of(*client_);
    core->require_same_process();
    reader from{core, notes_->begin()};
    if (!name.empty()) from.key(name, "lock");
    return read_history(std::move(from), std::string{name}, most);
}
std::vector<history_entry> monitor::history(std::string_view name, std::size_t most) { return sync_wait(async_history(name, most)); }

std::vector<violation> verify(std::vector<history_entry> const& records) {
    std::vector<history_entry const*> sorted;
    for (auto const& one : records) sorted.push_back(&one);
    std::stable_sort(sorted.begin(), sorted.end(), [](auto const* a, auto const* b) { return a->at < b->at; });
    std::map<std::pair<std::string_view, std::string_view>, std::vector<span>> names;
    std::map<std::tuple<std::string_view, std::string_view, std::string_view, std::uint64_t>, std::size_t> open;
    for (auto const* const one : sorted) {
        auto& spans = names[{one->kind, one->name}];
        auto const key = std::tuple{std::string_view{one->kind}, std::string_view{one->name}, std::string_view{one->hold}, one->fence};
        if (one->what == "acquired") {
            open[key] = spans.size();
            spans.push_back({one});
        } else if (auto const known = open.find(key); (one->what == "released" || one->what == "lost") && known != open.end()) {
            spans[known->second].end = one;
            open.erase(known);
        }
    }
    std::vector<violation> found;
    for (auto const* const one : sorted) {
        if (one->missing == 0) continue;
        found.push_back({one->name, one->kind, "missing", *one, *one,
                         fmt::format("{} records of {} before this one were dropped, so more may have happened than is seen", one->missing, one->owner)});
    }
    for (auto const& [key, spans] : names) check(spans, found);
    return found;
}

}  // namespace lockstep
