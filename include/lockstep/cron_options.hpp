#pragma once

/// Schedules of jobs: what `job_client::cron` takes, and what `job_client::crons` tells.

#include <lockstep/job_options.hpp>

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>

namespace lockstep {

/// What becomes of due times at which nobody was there to fire them.
enum class missed_runs : std::uint8_t {
    skip,  ///< they are left out
    once,  ///< one job makes up for all of them
    all,   ///< each of them has its job, up to 1,000
};
std::string_view to_string(missed_runs policy) noexcept;

struct cron_options {
    /// `minute hour day-of-month month day-of-week`, with seconds in front of them if there are six fields: "30 2 * * MON-FRI", "*/10 * * * * *";
    /// or @hourly, @daily, @weekly, @monthly, @yearly.
    text_ref expression{};
    /// An IANA name. docs/jobs.md says what happens when its clocks change.
    text_ref zone = "UTC";
    missed_runs missed = missed_runs::skip;
    /// A due time that is fired later than this counts as missed; until then it is just late. 1 s to 30 days.
    std::chrono::milliseconds late{60'000};
    /// Of each job. Not `delay` and `at`: the schedule says when.
    job_options job{};
};
static_assert(std::is_trivially_destructible_v<cron_options>);

struct cron_info {
    std::string id;
    std::string type;
    std::string expression;
    std::string zone;
    missed_runs missed = missed_runs::skip;
    std::string payload;
    std::optional<std::chrono::system_clock::time_point> next{};  ///< nothing: it is paused
    std::optional<std::chrono::system_clock::time_point> last{};  ///< when it was due last, of those that were fired
    std::string last_job;                                         ///< the job of that
};

}  // namespace lockstep
