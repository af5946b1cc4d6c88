// Many jobs that are cancelled or run again, step by step.
#include "base/words.hpp"
#include "jobs/job_office.hpp"
#include "jobs/job_text.hpp"
#include "messaging/queue_wire.hpp"
#include "messaging/raw_queue_parts.hpp"
#include "scripts/all.hpp"

#include <lockstep/error.hpp>

#include <fmt/format.h>

#include <utility>

namespace lockstep::detail {
namespace {

using namespace std::chrono_literals;
using std::chrono::milliseconds;

/// As job_change_all.lua wants it.
struct bulk_change {
    std::string action;
    std::vector<std::string> places;
    std::string state;  ///< empty: any
    milliseconds older_than{};
    milliseconds delay{};
    std::int32_t priority = 0;
};

[[noreturn]] void refuse(std::string_view name, std::string_view what) { throw invalid_argument_error(fmt::format("jobs '{}': {}", name, what)); }

/// Where jobs in this state are. They go from one of these places to the next, so most are met where they were.
std::vector<std::string> places_to_cancel(std::string_view name, job_state state) {
    switch (state) {
        case job_state::unknown: return {"blocked", "delayed", "ready", "ranked", "running"};
        case job_state::waiting: return {"delayed", "ready", "ranked"};
        case job_state::blocked:
        case job_state::running: return {std::string{to_string(state)}};
        default: refuse(name, fmt::format("of jobs that are waiting, blocked or running all can be cancelled, not of those that are {}", to_string(state)));
    }
}

std::vector<std::string> places_to_retry(std::string_view name, job_state state) {
    if (state == job_state::failed || state == job_state::cancelled || state == job_state::completed) return {std::string{to_string(state)}};
    refuse(name, fmt::format("of jobs that are failed, cancelled or completed all can be run again, not of those that are {}", to_string(state)));
}

bulk_change plan(std::string_view name, std::string_view action, job_filter const& which) {
    if (which.older_than < 0ms || which.older_than > longest_delay) {
        refuse(name, fmt::format("older_than must be 0 to 10 years, not {} ms", which.older_than.count()));
    }
    bool const is_retry = action == "requeue";
    auto const state = is_retry && which.state == job_state::unknown ? job_state::failed : which.state;
    bulk_change made{.action = std::string{action}, .older_than = which.older_than};
    made.places = is_retry ? places_to_retry(name, state) : places_to_cancel(name, state);
    if (state != job_state::unknown) made.state = to_string(state);
    if (!which.tag.empty()) {
        check_tag(which.tag);
        made.places = {"tag:" + std::string{which.tag.view()}};
    }
    return made;
}

struct step {
    std::int64_t changed = 0;
    std::string until;   ///< ms, as text
    std::string cursor;  ///< for the next step
    bool is_last = false;
};

step read_step(std::string_view text) {
    step found;
    found.changed = read_number(base::cut(text, ' '));
    found.cursor = text;
    found.is_last = text.ends_with(" 0");
    found.until = base::cut(text, ' ');
    return found;
}

/// The jobs of a type, and where in them this begins.
struct type_start {
    std::shared_ptr<depot> at;
    std::string cursor;
};

/// What is in one place.
task<std::int64_t> change_place(type_start& of, std::string const& place, bulk_change const& what) {
    std::int64_t sum = 0;
    step done{.cursor = of.cursor};
    while (!done.is_last) {
        auto const& key = of.at->what();
        std::vector<std::string> keys{key.key()};
        for (auto const* const part : {"ready", "ranked", "later", "held", "items", "dedup", "recent", "waiting", "absent"}) keys.push_back(key.key_of(part));
        std::vector<std::string> words{what.action, place, what.state, done.cursor, std::to_string(what.delay.count()), std::to_string(what.priority)};
        auto changing = depot::ask_once(of.at, scripts::job_change_all, std::move(keys), std::move(words));
        auto const text = co_await std::move(changing);
        done = read_step(text);
        sum += done.changed;
    }
    of.cursor = done.until + " 0 1000000000000";
    co_return sum;
}

/// A place in all types, then the next one: what waits for others is cancelled before these, of whatever type they are, or it would fail because of them. A job
/// may go from a place where nobody has looked to one where somebody has, so all are looked through again until there are none left; those
/// that came since do not count, so that this has an end.
task<std::int64_t> change_types(std::shared_ptr<job_office> of, std::vector<std::string> types, bulk_change what) {
    std::vector<type_start> starts;
    for (auto const& type : types) starts.push_back({of->queue_of(type), fmt::format("-{}", what.older_than.count())});
    std::int64_t sum = 0;
    for (bool again = true; again;) {
        auto const before = sum;
        for (auto const& place : what.places) {
            for (auto& start : starts) {
                auto changing = change_place(start, place, what);
                sum += co_await std::move(changing);
            }
        }
        again = sum != before;
    }
    co_return sum;
}

task<std::int64_t> change_all_types(std::shared_ptr<job_office> of, raw_jobs jobs, bulk_change what) {
    auto reading = jobs.async_types();
    auto types = co_await std::move(reading);
    auto changing = change_types(std::move(of), std::move(types), std::move(what));
    co_return co_await std::move(changing);
}

}  // namespace

task<std::int64_t> raw_jobs::async_change_all(std::string_view what, job_filter const& which, milliseconds delay, std::int32_t priority) {
    check_place(delay, priority);
    auto planned = plan(name(), what, which);
    planned.delay = delay;
    planned.priority = priority;
    if (which.type.empty()) return change_all_types(office_, *this, std::move(planned));
    office_->queue_of(which.type);  // throws for what is not a type
    std::vector<std::string> types{std::string{which.type.view()}};
    return change_types(office_, std::move(types), std::move(planned));
}

}  // namespace lockstep::detail
