#pragma once

// Decides which of many similar events is worth a line in the log: the first, and then at most one per interval that stands for all since the last line.
// No I/O. Thread-safe.
//
//     if (auto const count = failures.add(now); count > 0) log(log_level::warning, fmt::format("{} failures, the last one: ...", count));

#include <chrono>
#include <cstdint>
#include <mutex>
#include <optional>
#include <utility>

namespace lockstep::detail {

class repeated_log {
public:
    using clock = std::chrono::steady_clock;

    explicit repeated_log(clock::duration interval) noexcept : interval_(interval) {}

    /// Counts so many events. Returns how many a line now stands for; 0: no line is due yet.
    std::uint64_t add(clock::time_point now, std::uint64_t events = 1) noexcept {
        std::lock_guard const guard{mutex_};
        unlogged_ += events;
        if (unlogged_ == 0 || (last_line_ && now - *last_line_ < interval_)) return 0;
        last_line_ = now;
        return std::exchange(unlogged_, 0);
    }

private:
    clock::duration const interval_;
    std::mutex mutex_;
    std::optional<clock::time_point> last_line_;
    std::uint64_t unlogged_ = 0;
};

}  // namespace lockstep::detail
