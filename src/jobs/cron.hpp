#pragma once

// Cron expressions in a time zone: when a schedule is due.
//
//          minute hour day-of-month month day-of-week    "30 2 * * MON-FRI"
//   second minute hour day-of-month month day-of-week    "*/10 * * * * *"
//
// A field is `*`, a value, a range `a-b`, either with a step (`*/5`, `10-40/10`; `5/15` is from 5 on), or a list of these. Months are 1 to 12 or JAN
// to DEC, days of the week 0 to 7 (0 and 7 are Sunday) or SUN to SAT, in any case. `L` is the month's last day; `?` is `*`, for days only.
// @yearly (@annually), @monthly, @weekly, @daily (@midnight) and @hourly stand for what they say.
//
// Days are due as in Vixie's cron, so that lines of a crontab mean what they meant there: when both day fields are restricted, either of them; when
// one starts with `*`, both (`0 0 */2 * MON`: Mondays with an odd date).
//
// When clocks change:
// - Every hour of the day is allowed: fires as real time passes, whenever the clock on the wall shows a due time.
// - Otherwise due times that are skipped fire together, once, at the moment of the change; those that come twice fire the first time only, unless
//   the minute is `*` or `*/n`, which asks for an interval.
// So a nightly job runs once in every night, none left out and none doubled, and "every ten minutes" stays ten minutes.

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace lockstep::detail {

/// A field is a set of numbers: bit n says that n is in it.
struct cron_fields {
    static constexpr std::uint64_t last_day = std::uint64_t{1} << 32;  ///< in `days`: `L`

    std::uint64_t seconds = 1;
    std::uint64_t minutes = 0;
    std::uint64_t hours = 0;
    std::uint64_t days = 0;
    std::uint64_t months = 0;
    std::uint64_t weekdays = 0;   ///< 0 is Sunday
    bool either_day = false;      ///< both day fields are restricted
    bool fires_in_gaps = false;   ///< due times that clocks skip fire at the change
    bool fires_in_echoes = true;  ///< due times that come twice fire twice
};

/// Immutable, so any thread may ask. About 0.2 µs for a usual expression.
class cron_schedule {
public:
    /// The zone is an IANA name: "UTC", "Europe/Berlin". Throws `invalid_argument_error`, also for what would never fire (`0 0 30 2 *`).
    explicit cron_schedule(std::string_view text, std::string_view zone = "UTC");

    /// The first due time after that one.
    std::chrono::sys_seconds next(std::chrono::system_clock::time_point after) const;

    std::string const& text() const noexcept { return text_; }
    std::string const& zone() const noexcept { return zone_name_; }
    /// For people: "30 2 * * MON-FRI (Europe/Berlin)".
    std::string label() const { return text_ + " (" + zone_name_ + ")"; }

private:
    class time_zone;

    std::string text_;
    std::string zone_name_;
    cron_fields fields_;
    std::shared_ptr<time_zone const> zone_;
};

}  // namespace lockstep::detail
