#pragma once

// What a rate limiter decides by itself while there is no server: for each key a bucket of its own (GCRA by the steady clock). Any thread.

#include "state/rate_asking.hpp"

#include <lockstep/rate_limiter.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

namespace lockstep::detail {

class local_limits {
public:
    using clock = std::chrono::steady_clock;

    explicit local_limits(rate_rules const& rules) noexcept : interval_(rules.interval), most_(rules.most()) {}

    /// All of them or none, for different keys. `is_taken`: false: only looks.
    std::vector<rate_decision> decide(std::span<std::string const> keys, std::int64_t cost, bool is_taken,
                                      clock::time_point now) {
        std::lock_guard const guard{mutex_};
        auto const ticks =
            std::chrono::floor<std::chrono::microseconds>(now.time_since_epoch()).count() * rate_rules::ticks_per_us;
        auto const full = interval_ * most_;
        auto const level = [&](std::string const& key) {  // how much of it is used up, in ticks
            auto const known = brought_to_.find(key);
            return known == brought_to_.end() ? 0 : std::max<std::int64_t>(known->second - ticks, 0);
        };
        bool const fits = std::all_of(keys.begin(), keys.end(),
                                      [&](auto const& key) { return level(key) + interval_ * cost <= full; });
        std::vector<rate_decision> made;
        made.reserve(keys.size());
        for (auto const& key : keys) {
            auto const before = level(key);
            auto const after = before + interval_ * cost;
            auto const left = fits && is_taken ? after : before;
            made.push_back({.allowed = fits,
                            .limit = most_,
                            .remaining = (full - left) / interval_,
                            .retry_after = in_us(std::max<std::int64_t>(after - full, 0)),
                            .reset = in_us(left),
                            .at = std::chrono::system_clock::now(),
                            .local = true});
            if (!fits || !is_taken) continue;
            if (brought_to_.size() >= most_keys && !brought_to_.contains(key)) make_room(ticks);
            brought_to_[key] = ticks + after;
        }
        return made;
    }

private:
    static constexpr std::size_t most_keys = 10'000;

    static std::chrono::microseconds in_us(std::int64_t ticks) noexcept {
        return std::chrono::microseconds{(ticks + rate_rules::ticks_per_us - 1) / rate_rules::ticks_per_us};
    }
    /// Those that are full again first; the whole is looked at once a second at most.
    void make_room(std::int64_t ticks) {
        if (ticks >= next_sweep_) {
            next_sweep_ = ticks + 1'000'000 * rate_rules::ticks_per_us;
            std::erase_if(brought_to_, [ticks](auto const& one) { return one.second <= ticks; });
        }
        if (brought_to_.size() >= most_keys) brought_to_.erase(brought_to_.begin());
    }

    std::int64_t interval_;
    std::int64_t most_;
    std::mutex mutex_;
    std::unordered_map<std::string, std::int64_t> brought_to_;  ///< ticks: when it is full again
    std::int64_t next_sweep_ = 0;
};

}  // namespace lockstep::detail
