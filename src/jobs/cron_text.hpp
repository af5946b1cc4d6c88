#pragma once

// How schedules of jobs are written (src/scripts/include/cron_keys.lua), and what follows from one when it is due.

#include "base/stored_time.hpp"
#include "jobs/cron.hpp"

#include <lockstep/cron_options.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::detail {

using system_time = std::chrono::system_clock::time_point;

using base::time_of_ms;
inline std::int64_t ms_of(system_time time) { return std::chrono::duration_cast<std::chrono::milliseconds>(time.time_since_epoch()).count(); }

/// The first line of a spec. Points into the text.
struct cron_head {
    std::int64_t version = 0;
    std::string_view type;
    missed_runs missed = missed_runs::skip;
    std::chrono::milliseconds late{0};
    std::int64_t key_size = 0;
    std::string_view zone;
    std::string_view expression;
};
/// Throws `protocol_error` for what is none.
cron_head read_cron_head(std::string_view line);

/// Without its version. Throws `invalid_argument_error` for options that are not allowed.
std::string write_cron(std::string_view id, std::string_view type, std::string_view payload, cron_options const& how);
cron_info read_cron(std::string_view id, std::int64_t due_ms, std::string_view spec, std::string_view last);
/// Throws `invalid_argument_error` for what is none.
void check_cron_id(std::string_view id);

/// What is to be done about a schedule that is due.
struct cron_turn {
    std::vector<system_time> runs;  ///< one job for each
    system_time next;               ///< when it is due again: later than now, or what is left for another turn
};
/// `due` is not later than `now`, both by the server's clock.
cron_turn reckon(cron_schedule const& when, missed_runs missed, std::chrono::milliseconds late, system_time due, system_time now);

/// Schedules that were read already: time zones take a while.
class cron_shelf {
public:
    /// Throws `invalid_argument_error`.
    std::shared_ptr<cron_schedule const> find(std::string_view expression, std::string_view zone);

private:
    std::map<std::string, std::shared_ptr<cron_schedule const>, std::less<>> known_;
};

}  // namespace lockstep::detail
