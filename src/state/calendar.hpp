#pragma once

// Hours, days, weeks and months in UTC, as spans of Unix time.

#include <lockstep/leaderboard.hpp>

#include <cstdint>
#include <string>

namespace lockstep::detail {

struct time_span {
    std::int64_t from_ms = 0;
    std::int64_t until_ms = 0;  ///< 0: it has no end
    std::string label;          ///< "day:2026-11-15", "week:2026-11-09" (its Monday); empty: all time
};

time_span span_of(leaderboard_period period, std::int64_t at_ms);

}  // namespace lockstep::detail
