#pragma once

// Slows down a worker whose handlers mostly fail, so that work goes to workers that can do it. No I/O: events and the time in, a delay out.
//
//     while (true) {
//         if (auto const delay = throttle.delay(now); delay > 0ms) { sleep(delay); continue; }
//         if (throttle.is_slow(now) && in_progress > 0) { ...wait...; continue; }   // one item at a time until one succeeds
//         auto item = take();
//         handle(item) ? throttle.succeeded(now) : throttle.failed(now);
//     }
//
// A failure raises the level by one and a success lowers it by four, so it stays high only while more than four of five handlers fail. From the sixth level
// on there is a delay between items, which doubles with each further level up to 5 s. Several failures within one delay count as one: handlers that were
// running when the trouble began are no new evidence. A minute without any failure forgets the level.
//
// Thread-safe.

#include <algorithm>
#include <chrono>
#include <mutex>

namespace lockstep::detail {

class failure_throttle {
public:
    using clock = std::chrono::steady_clock;
    using time_point = clock::time_point;
    using duration = std::chrono::milliseconds;

    static constexpr duration min_delay{50};
    static constexpr duration max_delay{5'000};
    static constexpr std::chrono::minutes memory{1};

    void succeeded(time_point now) noexcept {
        std::lock_guard const guard{mutex_};
        level_ = std::max(0, level_at(now) - success_weight);
    }

    void failed(time_point now) noexcept {
        std::lock_guard const guard{mutex_};
        level_ = level_at(now);
        if (level_ >= first_slow_level && now - last_failure_ < interval(level_)) return;
        level_ = std::min(level_ + 1, max_level);
        last_failure_ = now;
    }

    /// How long the next item is to wait, counted from now on; zero: not at all.
    duration delay(time_point now) const noexcept {
        std::lock_guard const guard{mutex_};
        auto const left = std::chrono::ceil<duration>(last_failure_ + interval(level_at(now)) - now);
        return level_at(now) < first_slow_level ? duration{0} : std::max(left, duration{0});
    }

    /// Most handlers fail: only one item at a time is to be in progress.
    bool is_slow(time_point now) const noexcept {
        std::lock_guard const guard{mutex_};
        return level_at(now) >= first_slow_level;
    }

private:
    static constexpr int first_slow_level = 6;
    static constexpr int max_level = 13;
    static constexpr int success_weight = 4;

    int level_at(time_point now) const noexcept { return level_ > 0 && now - last_failure_ >= memory ? 0 : level_; }
    static duration interval(int level) noexcept {
        return level < first_slow_level ? duration{0} : std::min(min_delay * (1 << (level - first_slow_level)), max_delay);
    }

    mutable std::mutex mutex_;
    int level_ = 0;
    time_point last_failure_{};
};

}  // namespace lockstep::detail
