#pragma once

// Keys that are known to be over their limit, and until when: a refusal that needs no server. Any thread.

#include <lockstep/rate_limiter.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

namespace lockstep::detail {

/// A refusal, so long after it was asked for: what is left of its times.
inline rate_decision repeated(rate_decision said, std::chrono::steady_clock::duration after) noexcept {
    auto const passed = std::chrono::floor<std::chrono::microseconds>(after);
    said.retry_after = std::max(said.retry_after - passed, std::chrono::microseconds{1});
    said.reset = std::max(said.reset - passed, std::chrono::microseconds{0});
    said.local = true;
    return said;
}

class block_cache {
public:
    using clock = std::chrono::steady_clock;

    /// `longest`: the largest one is as long as the server says, which is never more than some 10 years.
    block_cache(std::size_t capacity, std::chrono::milliseconds longest) noexcept
        : capacity_(capacity), longest_(std::min<std::chrono::milliseconds>(longest, std::chrono::hours{24 * 366 * 20})) {}

    /// The refusal that still holds for this cost, with what is left of its times.
    std::optional<rate_decision> find(std::string_view key, std::int64_t cost, clock::time_point now) {
        if (size_.load(std::memory_order_relaxed) == 0) return std::nullopt;
        std::lock_guard const guard{mutex_};
        auto const at = blocked_.find(key);
        if (at == blocked_.end()) return std::nullopt;
        auto const& known = at->second;
        if (now >= known.until) {
            erase(at);
            return std::nullopt;
        }
        if (cost < known.cost) return std::nullopt;
        return repeated(known.said, now - known.asked);
    }

    /// `asked`: before the question was sent, so that it ends here before it ends there; `removals` then: what was removed since may be what this says.
    void add(std::string_view key, std::int64_t cost, rate_decision const& said, clock::time_point asked, std::uint64_t removals) {
        if (capacity_ == 0) return;
        auto const until = asked + std::min<clock::duration>(said.retry_after, longest_);
        std::lock_guard const guard{mutex_};
        if (removals != removals_.load(std::memory_order_relaxed)) return;
        auto at = blocked_.find(key);
        if (at == blocked_.end()) {
            if (blocked_.size() >= capacity_) erase(blocked_.begin());
            at = blocked_.emplace(std::string{key}, entry{}).first;
        } else if (at->second.until >= until && at->second.cost <= cost) {
            return;  // what is known says more
        }
        at->second = {.said = said, .cost = cost, .asked = asked, .until = until};
        size_.store(blocked_.size(), std::memory_order_relaxed);
    }

    void remove(std::string_view key) {
        std::lock_guard const guard{mutex_};
        removals_.fetch_add(1, std::memory_order_relaxed);
        if (auto const at = blocked_.find(key); at != blocked_.end()) erase(at);
    }
    std::uint64_t removals() const noexcept { return removals_.load(std::memory_order_relaxed); }

    std::size_t size() const noexcept { return size_.load(std::memory_order_relaxed); }

private:
    struct entry {
        rate_decision said{};
        std::int64_t cost = 0;
        clock::time_point asked{};
        clock::time_point until{};
    };
    struct hash {
        using is_transparent = void;
        std::size_t operator()(std::string_view text) const noexcept { return std::hash<std::string_view>{}(text); }
    };
    using table = std::unordered_map<std::string, entry, hash, std::equal_to<>>;

    void erase(table::iterator at) {
        blocked_.erase(at);
        size_.store(blocked_.size(), std::memory_order_relaxed);
    }

    std::size_t const capacity_;
    std::chrono::milliseconds const longest_;
    std::mutex mutex_;
    table blocked_;
    std::atomic<std::size_t> size_{0};
    std::atomic<std::uint64_t> removals_{0};  ///< changes with the lock
};

}  // namespace lockstep::detail
