#include "job_checkers.hpp"

#include "support/chaos_names.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <set>
#include <utility>

namespace lockstep::chaos {
namespace {

constexpr auto never = job_record::never;

std::int64_t lease_ns() { return std::chrono::nanoseconds{ttl_of(jobs_name)}.count(); }
std::string name_in(std::string_view value) { return std::string{value.substr(0, value.find_first_of(":@"))}; }

/// '<value> <rest>'
std::pair<std::string, std::string> split(std::string const& note) {
    auto const space = note.find(' ');
    if (space == std::string::npos) return {note, ""};
    return {note.substr(0, space), note.substr(space + 1)};
}

/// One failed or was cancelled for it, as far as it can be known.
bool has_bad_parent(job_records const& all, job_record const& one) {
    return std::ranges::any_of(one.plan.parents, [&](std::uint64_t number) {
        auto const parent = all.find(one.plan.name_of(number));
        return parent == all.end() || parent->second.finals.empty() || parent->second.finals.front().state != job_state::completed;
    });
}

/// Why it cannot have ended like that; empty: it can.
std::string objection(job_records const& all, job_record const& one, job_record::end const& end) {
    bool const returns = one.plan.ends == job_plan::fate::returns;
    auto const is_its = [&](job_record::try_record const& any) { return any.result == end.result && any.ended <= end.at; };
    switch (end.state) {
        case job_state::completed:
            if (!returns) return "it completed, though its handler throws";
            return std::ranges::any_of(one.tries, is_its) ? "" : "it completed with '" + end.result + "', which no try returned";
        case job_state::failed:
            if (!returns && !one.tries.empty()) return "";
            return one.plan.on_parent_failure == 'f' && has_bad_parent(all, one) ? "" : "it failed without a reason";
        case job_state::cancelled:
            if (one.cancel_asked < end.at || !one.plan.single.empty()) return "";
            return one.plan.on_parent_failure == 's' && has_bad_parent(all, one) ? "" : "it was cancelled by nobody";
        default: return fmt::format("it ended as {}", to_string(end.state));
    }
}

/// Tries as holds of what `name_of` says; "": not at all.
template <class NameOf>
history as_holds(history const& all, NameOf const& name_of) {
    history holds;
    for (auto const& one : all) {
        if (one.what == "deed") holds.push_back(one);
    }
    for (auto const& [_, job] : jobs_of(all)) {
        auto const name = name_of(job);
        if (name.empty()) continue;
        for (std::size_t i = 0; i != job.tries.size(); ++i) {
            auto const& one = job.tries[i];
            if (one.sure_until == 0) continue;
            auto const who = fmt::format("{} with {}, try {}", one.who, job.value, i);
            // It may have lain there for a while before it was begun, and was renewed if that was longer than its lease.
            holds.push_back({.t = one.begun - lease_ns(), .who = who, .what = "ask", .name = name});
            holds.push_back({.t = one.begun, .who = who, .what = "granted", .name = name});
            holds.push_back({.t = one.sure_until, .who = who, .what = "sure", .name = name});
        }
    }
    std::ranges::stable_sort(holds, {}, &event::t);
    return holds;
}

}  // namespace

std::int64_t job_record::first_end() const {
    auto first = cancel_asked;
    for (auto const& one : tries) first = std::min(first, one.ended);
    return plan.single.empty() ? first : std::min(first, asked);  // another one may take its place
}

job_records jobs_of(history const& all) {
    job_records found;
    std::map<std::string, std::pair<job_record*, std::size_t>> current;  // tries, by who
    for (auto const& one : all) {
        if (!one.name.starts_with("job")) continue;
        auto const [value, rest] = split(one.note);
        auto const job = [&]() -> job_record& {
            auto& it = found[name_in(value)];
            if (it.value.empty()) it.value = value, it.plan = job_plan::of(value);
            return it;
        };
        if (one.what == "schedule") job().asked = one.t;
        if (one.what == "scheduled") job().answered = one.t, job().left_out = one.n == 0;
        if (one.what == "cancel") job().cancel_asked = std::min(job().cancel_asked, one.t);
        if (one.what == "requeue") job().requeue_asked = std::min(job().requeue_asked, one.t), ++job().perhaps_requeued;
        if (one.what == "requeued") job().requeued += one.n, --job().perhaps_requeued;
        if (one.what == "ended") job().ends.push_back({one.t, static_cast<job_state>(one.n), rest});
        if (one.what == "final") job().finals.push_back({one.t, static_cast<job_state>(one.n), rest});
        if (one.what == "begun") {
            current[one.who] = {&job(), job().tries.size()};
            job().tries.push_back({.who = one.who, .begun = one.t});
        }
        auto const mine = current.find(one.who);
        if (mine == current.end()) continue;
        auto& its = mine->second.first->tries[mine->second.second];
        if (one.what == "sure") its.sure_until = one.t;
        if (one.what != "returned" && one.what != "threw") continue;
        its.ended = one.t;
        its.result = rest;
        current.erase(mine);
    }
    return found;
}

complaints check_jobs_ended(history const& all, promises const& given) {
    complaints found;
    auto const jobs = jobs_of(all);
    for (auto const& [_, one] : jobs) {
        auto const complain = [&, &value = one.value](std::string const& what) { found.push_back(what + ": " + value); };
        bool const began_early = !one.tries.empty() && one.tries.front().begun < one.asked;
        if (one.asked == never || began_early) complain("nobody scheduled it");
        if (one.finals.size() > 1) complain("it is there twice");
        if (one.left_out && !(one.tries.empty() && one.finals.empty())) complain("it was left out, and came all the same");
        if (!one.finals.empty()) {
            if (auto const why = objection(jobs, one, one.finals.front()); !why.empty()) complain(why);
        }
        if (!given.memory) continue;
        if (one.is_there() && one.finals.empty()) complain(fmt::format("it is lost, scheduled at {}, begun {} times", one.answered, one.tries.size()));
        if (one.finals.empty() || one.requeue_asked != never) continue;
        for (auto const& end : one.ends) {
            bool const is_same = end.state == one.finals.front().state && end.result == one.finals.front().result;
            if (!is_same) complain(fmt::format("it ended twice, at {} as {} with '{}' and then as {} with '{}'", end.at, to_string(end.state), end.result,
                                               to_string(one.finals.front().state), one.finals.front().result));
        }
    }
    return found;
}

complaints check_job_sums(history const& all, promises const& given) {
    complaints found;
    std::int64_t added = 0, ended = 0, there = 0, again = 0, perhaps = 0;
    bool is_counted = false;
    for (auto const& one : all) {
        if (one.what != "ever" || !one.name.starts_with("job")) continue;
        is_counted = true;
        (one.note == "added" ? added : ended) += one.n;
    }
    if (!is_counted) return found;
    for (auto const& [_, one] : jobs_of(all)) {
        there += static_cast<std::int64_t>(one.finals.size());
        again += one.requeued;
        perhaps += one.perhaps_requeued;
    }
    if (added != there) found.push_back(fmt::format("{} jobs were added, and {} are there", added, there));
    auto const least = given.memory ? there + again : there;
    if (ended < least || (given.memory && ended > least + perhaps)) {
        found.push_back(fmt::format("{} ends of {} jobs, of which {} were run again, and perhaps {} more", ended, there, again, perhaps));
    }
    return found;
}

complaints check_job_tries(history const& all, promises const& given) {
    auto found = check_exclusion(as_holds(all, [](job_record const& one) { return "job " + one.value; }), given, "job");
    if (!given.memory) return found;
    auto const jumps = jumps_in(all);
    for (auto const& [_, one] : jobs_of(all)) {
        // One that was cancelled is told so later; one that is requeued is run again.
        if (one.ends.empty() || one.ends.front().state == job_state::cancelled || one.requeue_asked != never) continue;
        auto const end = one.sure_end();
        for (auto const& its : one.tries) {
            if (its.sure_until <= end || jumped_between(jumps, its.begun - lease_ns(), its.sure_until)) continue;
            found.push_back(fmt::format("{} had ended at {}, and {} was sure to run it at {}", one.value, end, its.who, its.sure_until));
        }
    }
    return found;
}

complaints check_single_jobs(history const& all, promises const& given) {
    return check_exclusion(as_holds(all, [](job_record const& one) { return one.plan.single.empty() ? "" : "job single " + one.plan.single; }), given, "job");
}

complaints check_job_parents(history const& all, promises const& given) {
    complaints found;
    if (!given.memory) return found;
    auto const jobs = jobs_of(all);
    auto const jumps = jumps_in(all);
    for (auto const& [_, one] : jobs) {
        if (one.tries.empty()) continue;
        auto const begun = one.tries.front().begun;
        for (auto const number : one.plan.parents) {
            auto const at = jobs.find(one.plan.name_of(number));
            if (at == jobs.end()) continue;
            auto const& parent = at->second;
            auto const has_returned = [&](job_record::try_record const& any) { return !any.result.empty() && any.ended < begun; };
            bool const goes_on = one.plan.on_parent_failure == 'g';
            // Who goes on after one that was cancelled begins while that is being told.
            bool const may_be_stopping = goes_on && parent.first_end() < begun && (parent.cancel_asked < begun || !parent.plan.single.empty());
            bool const has_ended = parent.first_end() < begun || !parent.plan.parents.empty();
            if (goes_on ? !has_ended : !std::ranges::any_of(parent.tries, has_returned)) {
                found.push_back(fmt::format("{} was begun at {}, before {}", one.value, begun, parent.value));
            }
            for (auto const& its : parent.tries) {
                if (may_be_stopping || its.sure_until <= begun || jumped_between(jumps, its.begun - lease_ns(), its.sure_until)) continue;
                found.push_back(fmt::format("{} was begun at {}, and {} was sure to run {} at {}", one.value, begun, its.who, parent.value, its.sure_until));
            }
        }
    }
    return found;
}

complaints check_job_keys(history const& all, promises const& given) {
    complaints found;
    if (!given.memory) return found;
    auto const jobs = jobs_of(all);
    std::map<std::string, std::vector<job_record const*>> groups;
    for (auto const& [_, one] : jobs) {
        if (!one.plan.key.empty()) groups[std::string{one.plan.type()} + "@" + one.plan.key].push_back(&one);
        if (!one.plan.single.empty()) groups["single " + one.plan.single].push_back(&one);
    }
    for (auto const& [_, those] : groups) {
        for (auto const* const one : those) {
            if (one->answered == never) continue;
            bool has_reason = !one->left_out || one->plan.key.starts_with('w');
            for (auto const* const other : those) {
                if (other == one) continue;
                bool const was_there = other->is_there() && other->answered < one->asked && one->answered < other->first_end();
                bool const is_free = one->plan.key.empty() || other->requeue_asked != never || one->requeue_asked != never;
                if (one->is_there() && was_there && !is_free) found.push_back(fmt::format("{} and {} have the same key", other->value, one->value));
                bool const may_have_been = !other->left_out && other->asked < one->answered && (one->asked < other->sure_end() || other->requeue_asked != never);
                has_reason = has_reason || may_have_been;
            }
            if (!has_reason) found.push_back(fmt::format("{} was left out, and there was no other one", one->value));
        }
    }
    return found;
}

complaints check_schedules(history const& all, promises const& given) {
    complaints found;
    if (!given.memory) return found;
    std::map<std::string, std::map<std::int64_t, std::set<std::string>>> schedules;  // due -> ids of jobs
    for (auto const& one : all) {
        if (one.what != "fired" || !one.name.starts_with("job")) continue;
        auto const [name, id] = split(one.note);
        schedules[name][one.n].insert(id);
    }
    for (auto const& [name, jobs] : schedules) {
        auto before = jobs.begin()->first - 1'000;
        for (auto const& [due, ids] : jobs) {
            if (ids.size() > 1) found.push_back(fmt::format("{}: what was due at {} has {} jobs", name, due, ids.size()));
            if (due != before + 1'000) found.push_back(fmt::format("{}: nothing was fired between {} and {}", name, before, due));
            before = due;
        }
    }
    return found;
}

}  // namespace lockstep::chaos
