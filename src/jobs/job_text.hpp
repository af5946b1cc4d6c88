#pragma once

// How jobs are written (src/scripts/include/job_rules.lua), and their names.

#include <lockstep/job_options.hpp>
#include <lockstep/reply.hpp>

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::detail {

/// A job is known to users as '<type>/<id in the queue of its type>'.
struct job_name {
    std::string type;
    std::string id;
};
/// Throws `invalid_argument_error` for what is none.
job_name read_job_name(std::string_view id);
/// Throws `invalid_argument_error` for what is no type.
void check_job_type(std::string_view type);

/// How much is remembered of jobs that ended, as the scripts want it (src/scripts/include/job_forget.lua).
std::string keep_words(job_worker_options const& how);

/// What a worker has to know of a job's options.
struct job_terms {
    std::int32_t attempts = 20;
    std::chrono::milliseconds backoff{1'000};
    std::chrono::milliseconds max_backoff{600'000};
    double factor = 2;
    double jitter = 0.1;
    std::chrono::milliseconds timeout{0};

    /// The pause after so many failures.
    std::chrono::milliseconds pause(std::int32_t failures) const;
};
/// Throws `invalid_argument_error` for what is out of range.
std::string write_terms(job_options const& how);
/// '<delay_ms or @time_ms> <priority> <policy>', as job_add.lua wants it. Throws `invalid_argument_error` for what is out of range.
std::string write_place(job_options const& how);
/// '' or '<rule><name>'.
std::string write_single(job_options const& how);
/// Throws `invalid_argument_error` for what is no tag.
void check_tag(std::string_view tag);
/// Throws `invalid_argument_error` for what is no id of a batch.
void check_batch(std::string_view id);
void check_place(std::chrono::milliseconds delay, std::int32_t priority);
job_terms read_terms(std::string_view text);

struct job_record {
    std::chrono::system_clock::time_point created{};
    job_terms terms;
    std::vector<std::string> parents{};
    std::vector<std::string> tags{};
    bool is_single = false;
    bool is_cancelled = false;
    std::string_view cron{};  ///< the schedule that it comes from, and when that was due
    std::chrono::system_clock::time_point due{};
    std::string_view payload{};
};
/// Points into the text. Throws `protocol_error` for what is none.
job_record read_record(std::string_view text);

/// What a worker gets: '<generation> <failures>\n<record>'.
struct job_delivery {
    std::int32_t failures = 0;
    job_record record;
};
job_delivery read_delivery(std::string_view text);

/// One row of job_read.lua.
job_info read_job(std::string_view type, std::string_view id, reply_view row);
/// One row of job_graph.lua.
flow_job read_flow_job(reply_view row);
job_state read_state(std::string_view text);
/// What is told to those who wait for the end of a job. Nothing: it was too long to be told, and has to be asked for.
std::optional<job_outcome> read_end(std::string_view text);
std::string last_reason(std::string_view trail);

}  // namespace lockstep::detail
