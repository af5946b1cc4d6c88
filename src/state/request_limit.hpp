#pragma once

// How long the requests of one object may take, where somebody waits for it with a request of his own: much shorter than the client's `command_timeout`.

#include "core/core.hpp"

#include <lockstep/error.hpp>
#include <lockstep/options.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <string_view>

namespace lockstep::detail {

/// Any thread.
class request_limit {
public:
    explicit request_limit(std::chrono::milliseconds limit) noexcept : limit_(limit) {}

    /// Until nothing was answered yet there may be no connection: that is given the time to be made.
    redis::reactor::clock::time_point deadline(core const& owner) const noexcept {
        bool const is_first = !answered_.load(std::memory_order_relaxed);
        return owner.deadline(is_first ? std::max(limit_, owner.options().connect_timeout) : limit_);
    }
    void answered() noexcept {
        if (!answered_.load(std::memory_order_relaxed)) answered_.store(true, std::memory_order_relaxed);
    }

private:
    std::chrono::milliseconds limit_;
    std::atomic<bool> answered_{false};
};

/// Throws `invalid_argument_error` unless it is 1 ms to a day.
inline void require_command_timeout(std::string_view of, std::string_view name, std::chrono::milliseconds time) {
    using namespace std::chrono_literals;
    if (time >= 1ms && time <= 24h) return;
    throw invalid_argument_error(
        fmt::format("{} '{}': command_timeout must be 1 ms to 1 day, not {} ms", of, name, time.count()));
}

}  // namespace lockstep::detail
