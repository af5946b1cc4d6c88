#pragma once

// Times as people write and read them: "500ms", "10s", "2m", "1h30m", "1.5" (seconds).

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

namespace lockstep::cli {

/// Nothing for what is no time, is negative, or is longer than 100 years.
std::optional<std::chrono::milliseconds> parse_duration(std::string_view text);

/// Short, two units at most: "0.4 ms", "350 ms", "4.2 s", "3m 20s", "2h 5m", "3d 4h".
std::string show(std::chrono::microseconds time);

}  // namespace lockstep::cli
