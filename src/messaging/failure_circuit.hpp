#pragma once

// Slows a consumer down whose handlers fail: what it would read others may be able to handle.
//
// It opens after `failures_to_open` failures without a success between them. While it is open, one entry is tried at growing intervals. The first success
// closes it. It is given the time, and is not thread-safe.

#include "base/random.hpp"

#include <algorithm>
#include <chrono>
#include <cstdint>

namespace lockstep::detail {

class failure_circuit {
public:
    using clock = std::chrono::steady_clock;
    using milliseconds = std::chrono::milliseconds;
    static constexpr int failures_to_open = 10;

    failure_circuit(milliseconds shortest, milliseconds longest) noexcept : shortest_(shortest), longest_(std::max(shortest, longest)) {}

    bool is_open() const noexcept { return open_; }
    /// While it is open: when the next entry may be tried.
    clock::time_point next_probe() const noexcept { return next_probe_; }

    /// True: this closed it.
    bool succeeded() noexcept {
        failures_ = 0;
        bool const was_open = open_;
        open_ = false;
        return was_open;
    }
    /// Of an entry whose handler began at that time. True: this opened it.
    bool failed(clock::time_point begun, clock::time_point now) noexcept {
        if (open_) {
            // Those that had begun before it opened tell nothing new.
            if (begun >= opened_) lengthen(now);
            return false;
        }
        if (++failures_ < failures_to_open) return false;
        open_ = true;
        opened_ = now;
        interval_ = shortest_;
        next_probe_ = now + jittered();
        return true;
    }
    /// While it is open: may an entry be tried now? If so, the next one may not before the interval has passed.
    bool try_probe(clock::time_point now) noexcept {
        if (now < next_probe_) return false;
        next_probe_ = now + jittered();
        return true;
    }

private:
    void lengthen(clock::time_point now) noexcept {
        interval_ = std::min(2 * interval_, longest_);
        next_probe_ = now + jittered();
    }
    milliseconds jittered() const {
        return interval_ - milliseconds{base::random_below(static_cast<std::uint64_t>(interval_.count()) / 4 + 1)};
    }

    milliseconds shortest_;
    milliseconds longest_;
    milliseconds interval_{};
    int failures_ = 0;
    bool open_ = false;
    clock::time_point opened_{};
    clock::time_point next_probe_{};
};

}  // namespace lockstep::detail
