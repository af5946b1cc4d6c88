#include "state/calendar.hpp"

#include <fmt/format.h>

#include <chrono>

namespace lockstep::detail {
namespace {

namespace chrono = std::chrono;

std::int64_t ms_of(chrono::sys_time<chrono::hours> time) { return chrono::milliseconds{time.time_since_epoch()}.count(); }

std::string date_of(chrono::year_month_day date) {
    return fmt::format("{:04}-{:02}-{:02}", int{date.year()}, unsigned{date.month()}, unsigned{date.day()});
}

}  // namespace

time_span span_of(leaderboard_period period, std::int64_t at_ms) {
    using chrono::days;
    auto const time = chrono::sys_time<chrono::milliseconds>{chrono::milliseconds{at_ms}};
    auto const hour = chrono::floor<chrono::hours>(time);
    auto const day = chrono::floor<days>(time);
    switch (period) {
        case leaderboard_period::hourly:
            return {ms_of(hour), ms_of(hour + chrono::hours{1}), fmt::format("hour:{}T{:02}", date_of(day), (hour - day).count())};
        case leaderboard_period::daily: return {ms_of(day), ms_of(day + days{1}), "day:" + date_of(day)};
        case leaderboard_period::weekly: {
            auto const monday = day - (chrono::weekday{day} - chrono::Monday);
            return {ms_of(monday), ms_of(monday + days{7}), "week:" + date_of(monday)};
        }
        case leaderboard_period::monthly: {
            auto const first = chrono::year_month_day{day}.year() / chrono::year_month_day{day}.month() / 1;
            auto const next = first + chrono::months{1};
            return {ms_of(chrono::sys_days{first}), ms_of(chrono::sys_days{next}), "month:" + date_of(first).substr(0, 7)};
        }
        case leaderboard_period::all_time: break;
    }
    return {};
}

}  // namespace lockstep::detail
