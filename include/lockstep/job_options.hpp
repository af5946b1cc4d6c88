#pragma once

/// The options of `job_client` and `job_worker`, and what they tell of jobs.

#include <lockstep/text_ref.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace lockstep {

class circuit_breaker;
class rate_limiter;

/// What becomes of a job of a flow when one of its parents fails or is cancelled.
enum class parent_failure : std::uint8_t {
    fail,   ///< it has failed, too
    skip,   ///< it is cancelled
    go_on,  ///< it is run all the same, when all its parents have ended
};

/// What becomes of a `single` job while there is another one of its name.
enum class single_policy : std::uint8_t {
    skip,     ///< it is left out
    queue,    ///< it waits until all before it have ended
    replace,  ///< those that wait are cancelled, the one that runs is told to stop and cannot complete, and this one is the next
};

/// How a job is scheduled.
struct job_options {
    /// It is not run before this time is over.
    std::chrono::milliseconds delay{0};
    /// Nor before this time. Counts instead of the delay if it is given.
    std::chrono::system_clock::time_point at{};
    /// Larger ones are run before smaller ones of the same type. -1,000,000 to 1,000,000.
    std::int32_t priority = 0;
    /// How often it may be tried in all when its handler throws. 1 to 1,000,000. With the pauses below, the default is given up after about 1 h 45 min.
    std::int32_t attempts = 20;
    /// The pause before the second try; each further one is `backoff_factor` times as long, at most `max_backoff`. Factor 1: always the same.
    std::chrono::milliseconds backoff{1'000};
    std::chrono::milliseconds max_backoff{600'000};
    double backoff_factor = 2;
    /// So much of each pause is random: 0 to 1. Spreads those that failed together.
    double jitter = 0.1;
    /// A try that takes longer counts as failed, and its handler is asked to stop. 0: any time.
    std::chrono::milliseconds timeout{0};
    /// While a job of this type with this key waits or runs, another one is not scheduled. 0 to 512 bytes; empty: none.
    text_ref key{};
    /// Nor for this long after it was done. Counts only with a key.
    std::chrono::milliseconds key_window{0};
    /// Of the jobs of this type with this name, one at a time waits to be run or runs, in the whole fleet. 1 to 512 bytes; empty: any number. Not with a key.
    text_ref single{};
    single_policy when_running = single_policy::queue;
    /// It is one of the jobs of this batch (`job_client::batch`). 1 to 512 bytes; empty: of none. Not with a key.
    text_ref batch{};
    /// Words by which it can be found (`job_client::tagged`), with spaces between them: 16 at most, of 1 to 64 letters, digits and any of . _ : - each.
    text_ref tags{};
    /// Counts only in a flow.
    parent_failure on_parent_failure = parent_failure::fail;
};
static_assert(std::is_trivially_destructible_v<job_options>);

enum class job_state : std::uint8_t {
    unknown,    ///< there is none, or it ended long ago
    waiting,    ///< to be run, now or later
    blocked,    ///< waits for other jobs: its parents in a flow, or the one that has its `single` name
    running,
    completed,
    failed,     ///< tried as often as it may be; `requeue` runs it again
    cancelled,
};
std::string_view to_string(job_state state) noexcept;

/// What became of a job that was scheduled.
struct scheduled {
    std::string id;      ///< `<type>/<number>`: of this one, or of the one that has its key
    bool is_new = true;  ///< false: there is one with its key or `single` name already, so this one was left out
};

/// A try that failed.
struct job_failure {
    std::chrono::system_clock::time_point when{};
    std::int32_t delivery = 0;
    std::string worker;
    std::string reason;
};

struct job_info {
    std::string id;
    std::string type;
    job_state state = job_state::unknown;
    std::chrono::system_clock::time_point created{};
    std::chrono::system_clock::time_point since{};  ///< in this state; while it waits: when it was created
    std::string payload;
    std::string result;
    std::string progress;
    std::string worker;  ///< who runs it, or did last
    std::vector<job_failure> failures{};  ///< the last ones, the oldest first
    std::int32_t attempts = 0;            ///< how many it may have
    std::vector<std::string> tags{};
    std::vector<std::string> parents{};   ///< in a flow: ids of the jobs for which it waits, or waited
    std::string cron{};                   ///< the id of the schedule that it comes from; empty: none
    std::chrono::system_clock::time_point due{};  ///< when that was due
    bool is_cut = false;                  ///< payload, result, progress or failures are longer than is told here
    /// While it is delayed, or its next try is: when it can be run. Of a job with a priority that a program of version 0.1 delayed only `list` and `delayed`
    /// know it.
    std::optional<std::chrono::system_clock::time_point> delayed_until{};
};

/// A job of a flow, as `job_client::flow_of` tells it.
struct flow_job {
    std::string id;
    job_state state = job_state::unknown;  ///< unknown: it ended long ago
    std::chrono::system_clock::time_point since{};
    std::vector<std::string> parents{};  ///< those of them that are told, too
};

struct flow_info {
    std::vector<flow_job> jobs{};  ///< the one that was asked for first, then the nearest; empty: it is not known
    bool is_whole = true;          ///< false: there are more
};

struct job_counts {
    std::int64_t waiting = 0;  ///< to be run now
    std::int64_t delayed = 0;
    std::int64_t blocked = 0;
    std::int64_t running = 0;
    std::int64_t completed = 0;  ///< those that are remembered; so are the next two
    std::int64_t failed = 0;
    std::int64_t cancelled = 0;
    // Since there are jobs of this type:
    std::int64_t ever_added = 0;
    std::int64_t ever_completed = 0;
    std::int64_t ever_failed = 0;
    std::int64_t ever_retried = 0;
    std::int64_t ever_cancelled = 0;
    // Those that were forgotten before their retention was over, because there were more than `keep_completed` or `keep_failed`:
    std::int64_t dropped_completed = 0;
    std::int64_t dropped_failed = 0;  ///< and cancelled ones
    bool paused = false;  ///< none of them is begun until `resume`
};
job_counts& operator+=(job_counts& sum, job_counts const& one) noexcept;

/// Which jobs `job_client::retry_all` and `cancel_all` mean: those to which all that is given here applies.
struct job_filter {
    text_ref type{};  ///< empty: of any type
    text_ref tag{};   ///< empty: with any tags, or none
    /// `retry_all`: failed (or unknown, the same), cancelled or completed. `cancel_all`: waiting, blocked or running; unknown: any of these.
    job_state state = job_state::unknown;
    /// That ended at least this long ago, or were scheduled then if they have not ended. 0 to 10 years.
    std::chrono::milliseconds older_than{0};
};
static_assert(std::is_trivially_destructible_v<job_filter>);

/// How a job ended.
struct job_outcome {
    job_state state = job_state::unknown;
    std::string result;
    std::string reason;  ///< of its last failure
};

/// When a batch has ended.
enum class batch_policy : std::uint8_t {
    wait_for_all,  ///< when all its jobs have; it has failed if one of them did not complete
    fail_at_once,  ///< or as soon as one of them has failed or was cancelled
};

struct batch_options {
    batch_policy policy = batch_policy::wait_for_all;
    /// How long it is remembered when it has ended. 1 ms to a year.
    std::chrono::milliseconds keep{std::chrono::hours{24}};
};
static_assert(std::is_trivially_destructible_v<batch_options>);

struct batch_info {
    job_state state = job_state::unknown;  ///< running, completed or failed; unknown: there is none, or it ended long ago
    std::int64_t total = 0;
    std::int64_t completed = 0;
    std::int64_t failed = 0;
    std::int64_t cancelled = 0;
    std::string then{};  ///< id of the job that was added when it ended, if any
};

/// Something happened to a job.
struct job_event {
    std::string what;  ///< added, started, retrying, completed, failed, cancelled, requeued, moved, released (not blocked any more), progress,
                     ///< postponed (by its handler, or given back by a worker that ends)
    std::string id;
};

/// How a worker behaves. All workers of the same jobs should have the same lease and the same limits.
struct job_worker_options {
    /// How many jobs at once, of all types. 1 to 10,000.
    std::size_t concurrency = 10;
    /// How long a job is left with a worker without a word from it; then it is run again. Renewed while it runs. 20 ms to 24 h.
    std::chrono::milliseconds lease{30'000};
    /// A job whose lease ended so often in a row, because its workers died, has failed. A try that ended in any other way begins the count anew, and so
    /// does one that told of progress. 2 to 1,000,000.
    std::int32_t max_crashes = 5;
    /// How long the worker's destruction lets handlers run on. Then they are told to stop and their jobs are given to others, which counts as neither a failure
    /// nor a crash; it still waits for the handlers to return. See `job_worker::stop`. 0 to 24 h.
    std::chrono::milliseconds stop_limit{30'000};
    // How long jobs that ended are remembered. These four are settings of the types that the worker handles: what is given here is stored at the server and
    // counts for all workers of the type, also for those that do not give it. What no worker has given is as said behind it.

    /// How long a job that completed is remembered: 24 h. With 0 nothing is known of one as soon as it has completed, unless a caller waits for its end
    /// already, or jobs of a flow for its result.
    std::optional<std::chrono::milliseconds> completed_retention{};
    /// How many that completed are remembered at most, of each type: 10,000. 0: any number. Those that completed within the last minute are not counted out, so
    /// a fleet that completes tens of thousands each second should set `completed_retention` to seconds.
    std::optional<std::int64_t> keep_completed{};
    /// How long a job that failed or was cancelled is remembered: 14 days.
    std::optional<std::chrono::milliseconds> failed_retention{};
    /// How many that failed, and how many that were cancelled, are remembered at most, of each type: 0, which is any number. Those that are forgotten because
    /// there are too many are counted (`job_counts::dropped_failed`).
    std::optional<std::int64_t> keep_failed{};
    /// As others see it; empty: the client's.
    text_ref name{};
    /// Takes part in firing the schedules of these jobs (`job_client::cron`): one of all workers does, by election.
    bool fires_crons = true;
    /// When the one that does has died, another one goes on after this time at most. 100 ms to 24 h.
    std::chrono::milliseconds cron_takeover{10'000};
};
static_assert(std::is_trivially_destructible_v<job_worker_options>);

/// How jobs of one type are handled.
struct handle_options {
    /// How many at once here, of this type. 0: as many as the worker may run.
    std::size_t concurrency = 0;
    /// So often, in all processes together: a job is begun when it is its type's turn there (the key is the type). While the type waits for its turn no job is
    /// taken, so the next one is that with the highest priority at that time. Must outlive the worker.
    rate_limiter* limit = nullptr;
    /// A job is taken and begun while this circuit is closed, or as its probe; what its handler throws counts there. Must outlive the worker.
    circuit_breaker* breaker = nullptr;
    /// The pause after so many failures, instead of what the job's options say; what was thrown is given, too. Must not throw.
    std::chrono::milliseconds (*backoff)(std::int32_t failures, std::string_view reason) = nullptr;
};
static_assert(std::is_trivially_destructible_v<handle_options>);

}  // namespace lockstep
