// What must be true of jobs. As in checkers.hpp.
#pragma once

#include "checkers.hpp"
#include "support/chaos_job.hpp"

#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace lockstep::chaos {

/// One job and all that became of it. Times are `never` as long as it is not known.
struct job_record {
    static constexpr auto never = std::numeric_limits<std::int64_t>::max();
    struct try_record {
        std::string who;
        std::int64_t begun = 0;
        std::int64_t sure_until = 0;  ///< 0: never
        std::int64_t ended = never;   ///< when its handler was about to
        std::string result{};         ///< what it returned; empty: it threw, or did not end
    };
    struct end {
        std::int64_t at = 0;
        job_state state = job_state::unknown;
        std::string result{};
    };

    std::string value;
    job_plan plan;
    std::int64_t asked = never, answered = never;
    bool left_out = false;  ///< it was told that it is not there
    std::vector<try_record> tries{};
    std::int64_t cancel_asked = never, requeue_asked = never;  ///< the first
    std::int64_t requeued = 0, perhaps_requeued = 0;           ///< so many times; or nobody knows
    std::vector<end> ends{};                                   ///< that somebody was told of
    std::vector<end> finals{};                                 ///< found there in the end: one, or it is there twice

    [[nodiscard]] bool is_there() const { return answered != never && !left_out; }
    /// When it may have ended for the first time.
    [[nodiscard]] std::int64_t first_end() const;
    /// When somebody knew that it had.
    [[nodiscard]] std::int64_t sure_end() const { return ends.empty() ? never : ends.front().at; }
};
/// By what stands before the first ':' or '@' of their values.
using job_records = std::map<std::string, job_record>;
job_records jobs_of(history const& all);

/// What was acknowledged has ended, once and as its handler said; nothing is there that nobody scheduled, or twice; and the result is that of a try which
/// returned it.
complaints check_jobs_ended(history const& all, promises const& given);
/// As many ends were counted as jobs have ended, and were run again.
complaints check_job_sums(history const& all, promises const& given);
/// No two were sure to run the same job at the same time, and nobody is sure of one that has ended.
complaints check_job_tries(history const& all, promises const& given);
/// No two were sure to run jobs of the same single name at the same time.
complaints check_single_jobs(history const& all, promises const& given);
/// A job is not begun before its parents have ended, and not before they have completed unless it is to go on.
complaints check_job_parents(history const& all, promises const& given);
/// No two jobs with the same key are there at a time, and none is left out without another one that has its key, or its single name.
complaints check_job_keys(history const& all, promises const& given);
/// Every second has one job of a schedule, and one only, from its first to its last.
complaints check_schedules(history const& all, promises const& given);

}  // namespace lockstep::chaos
