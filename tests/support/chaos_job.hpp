// A job of a chaos run says in its value what it is and what its handler does, so that whoever reads a history knows it, too.
#pragma once

#include <lockstep/job_options.hpp>

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::chaos {

/// All jobs of a run have this name.
inline constexpr char const* jobs_name = "job-0";
/// One is handled by functions, one by coroutines, one has all single jobs, and one comes from schedules.
inline constexpr char const *hand_type = "hand", *mind_type = "mind", *single_type = "single", *tick_type = "tick";
inline constexpr char const* job_types[] = {hand_type, mind_type, single_type, tick_type};
/// A schedule that is due every second; another one every few seconds, since one falls silent when the server's clock is set back.
inline std::string schedule_name(std::int64_t boot_ns) { return "tick-" + std::to_string(boot_ns / 4'000'000'000); }

/// '<who>#<number>' and then what is not as usual: ':m' a coroutine, ':x<n>' throws n times and returns then, ':d' throws as often as it may, ':r' rejects,
/// ':t' has little time, and as many tries as it takes, ':s<name><k, q or r: skip, queue, replace>' single,
/// ':p<number>,...<f, s or g: fail, skip, go on>' its parents, of the same who, '@<key>'.
struct job_plan {
    enum class fate { returns, throws, rejects };

    std::string who;
    std::uint64_t number = 0;
    bool is_task = false;
    std::int32_t throws = 0;
    fate ends = fate::returns;
    bool has_little_time = false;
    std::string single{};
    char when_running = 'q';
    std::vector<std::uint64_t> parents{};
    char on_parent_failure = 'f';
    std::string key{};

    [[nodiscard]] std::string value() const;
    [[nodiscard]] static job_plan of(std::string_view value);
    /// Of the one with this number, without what is not as usual.
    [[nodiscard]] std::string name_of(std::uint64_t which) const { return who + "#" + std::to_string(which); }

    [[nodiscard]] char const* type() const { return !single.empty() ? single_type : is_task ? mind_type : hand_type; }
    /// Refers to this plan.
    [[nodiscard]] job_options options() const;
};

/// How all workers of a run behave. Nothing is forgotten, and who is killed often is no reason to give up.
inline job_worker_options job_worker_options_of(std::chrono::milliseconds lease) {
    return {.concurrency = 4,
            .lease = lease,
            .max_crashes = 1'000'000,
            .completed_retention = std::chrono::hours{24},
            .keep_completed = 0,
            .cron_takeover = std::chrono::milliseconds{1'000}};
}

}  // namespace lockstep::chaos
