#pragma once

/// How long to wait before the next attempt: not at all, then `min`, doubled each time up to `max`.
///
/// The first retry is immediate because most broken connections are healthy again at once (a restart, an idle timeout).
/// Every other wait is drawn between half and all of its length, so that a thousand clients that lost the same server
/// do not come back in the same millisecond. Not for use by several threads at once.

#include <algorithm>
#include <chrono>
#include <cstdint>

#include "base/random.hpp"

namespace lockstep::base {

class backoff {
public:
    using duration = std::chrono::microseconds;

    /// A `min` below 1 ms counts as 1 ms: never a busy loop. A `max` below `min` counts as `min`.
    backoff(duration min, duration max)
        : min_(std::max<duration>(min, std::chrono::milliseconds{1})), max_(std::max(max, min_)) {}

    duration next() {
        auto const full = upcoming_;
        upcoming_ = full == duration::zero() ? min_ : full > max_ / 2 ? max_ : full * 2;
        auto const half = full / 2;
        return full - duration{static_cast<duration::rep>(random_below(static_cast<std::uint64_t>(half.count()) + 1))};
    }

    void reset() { upcoming_ = duration::zero(); }

private:
    duration min_;
    duration max_;
    duration upcoming_{0};
};

}  // namespace lockstep::base
