#pragma once

// Jobs as JSON: the one form that `lockstep jobs --json` and the dashboard share. As in json.hpp, times are `..._ms`; what there is not is left out.

#include <lockstep/cron_options.hpp>
#include <lockstep/job_options.hpp>

#include <boost/json.hpp>

#include <chrono>
#include <cstdint>
#include <string_view>

namespace lockstep::apps {

inline std::int64_t in_ms(std::chrono::system_clock::time_point time) {
    return std::chrono::duration_cast<std::chrono::milliseconds>(time.time_since_epoch()).count();
}

inline boost::json::object json_of(job_info const& one) {
    boost::json::object made{{"id", one.id}, {"type", one.type}, {"state", to_string(one.state)}, {"created_ms", in_ms(one.created)},
                             {"since_ms", in_ms(one.since)}, {"attempts", one.attempts}, {"payload", one.payload}};
    if (one.delayed_until) made["delayed_until_ms"] = in_ms(*one.delayed_until);
    if (one.is_cut) made["cut"] = true;
    if (!one.worker.empty()) made["worker"] = one.worker;
    if (!one.progress.empty()) made["progress"] = one.progress;
    if (!one.result.empty()) made["result"] = one.result;
    if (!one.cron.empty()) {
        made["cron"] = one.cron;
        made["due_ms"] = in_ms(one.due);
    }
    if (!one.tags.empty()) made["tags"] = boost::json::array(one.tags.begin(), one.tags.end());
    if (!one.parents.empty()) made["parents"] = boost::json::array(one.parents.begin(), one.parents.end());
    boost::json::array failures;
    for (auto const& failure : one.failures) {
        failures.push_back(boost::json::object{{"when_ms", in_ms(failure.when)}, {"delivery", failure.delivery}, {"worker", failure.worker}, {"reason", failure.reason}});
    }
    made["failures"] = std::move(failures);
    return made;
}

inline boost::json::object json_of(std::string_view type, job_counts const& now) {
    return {{"type", type}, {"waiting", now.waiting}, {"delayed", now.delayed}, {"blocked", now.blocked}, {"running", now.running},
            {"completed", now.completed}, {"failed", now.failed}, {"cancelled", now.cancelled},
            {"ever_added", now.ever_added}, {"ever_completed", now.ever_completed}, {"ever_failed", now.ever_failed},
            {"ever_retried", now.ever_retried}, {"ever_cancelled", now.ever_cancelled},
            {"dropped_completed", now.dropped_completed}, {"dropped_failed", now.dropped_failed}, {"paused", now.paused}};
}

inline boost::json::object json_of(cron_info const& one) {
    boost::json::object made{{"id", one.id}, {"type", one.type}, {"expression", one.expression}, {"zone", one.zone},
                             {"missed", to_string(one.missed)}, {"paused", !one.next}, {"payload", one.payload}};
    if (one.next) made["next_ms"] = in_ms(*one.next);
    if (one.last) made["last_ms"] = in_ms(*one.last);
    if (one.last) made["last_job"] = one.last_job;
    return made;
}

}  // namespace lockstep::apps
