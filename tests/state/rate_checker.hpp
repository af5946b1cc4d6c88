// Whether what a limiter admitted, by the server's times, obeys the law of its algorithm.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace lockstep::test {

/// No window of this length has more than `limit`: [t, t + per).
inline std::optional<std::string> breaks_window(std::vector<std::int64_t> times_us, std::int64_t limit, std::int64_t per_us) {
    std::sort(times_us.begin(), times_us.end());
    auto const n = static_cast<std::size_t>(limit);
    for (std::size_t i = 0; i + n < times_us.size(); ++i) {
        if (times_us[i + n] - times_us[i] < per_us) {
            return std::to_string(limit + 1) + " within " + std::to_string(times_us[i + n] - times_us[i]) + " us, from " + std::to_string(times_us[i]);
        }
    }
    return std::nullopt;
}

/// From the i-th to the j-th are at most burst + limit * (t_j - t_i) / per, for all i and j.
inline std::optional<std::string> breaks_bucket(std::vector<std::int64_t> times_us, std::int64_t limit, std::int64_t per_us, std::int64_t burst) {
    std::sort(times_us.begin(), times_us.end());
    if (times_us.empty()) return std::nullopt;
    auto const height = [&](std::size_t i) {
        return static_cast<double>(i) - static_cast<double>(times_us[i] - times_us[0]) * static_cast<double>(limit) / static_cast<double>(per_us);
    };
    double lowest = height(0);
    for (std::size_t i = 0; i < times_us.size(); ++i) {
        lowest = std::min(lowest, height(i));
        if (height(i) - lowest + 1 > static_cast<double>(burst) + 1e-6) return "too many up to " + std::to_string(times_us[i]);
    }
    return std::nullopt;
}

}  // namespace lockstep::test
