#pragma once

// Keys that are known to be over their limit, for which costs and until when: a refusal that needs no server. Any thread.

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
#include <vector>

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

    /// The refusal of this very cost that still holds, with what is left of its times. What a smaller one was told is too little for this one.
    std::optional<rate_decision> find(std::string_view key, std::int64_t cost, clock::time_point now) {
        if (size_.load(std::memory_order_relaxed) == 0) return std::nullopt;
        std::lock_guard const guard{mutex_};
        auto const at = blocked_.find(key);
        if (at == blocked_.end()) return std::nullopt;
        auto& refusals = at->second;
        std::erase_if(refusals, [now](refusal const& one) { return now >= one.until; });
        if (refusals.empty()) {
            erase(at);
            return std::nullopt;
        }
        auto const known = of_cost(refusals, cost);
        if (known == refusals.end()) return std::nullopt;
        return repeated(known->decision, now - known->asked);
    }

    /// `asked`: before the question was sent, so that it ends here before it ends there; `removals` then: what was removed since may be what this says.
    void add(std::string_view key, std::int64_t cost, rate_decision const& decision, clock::time_point asked, std::uint64_t removals) {
        if (capacity_ == 0) return;
        auto const until = asked + std::min<clock::duration>(decision.retry_after, longest_);
        std::lock_guard const guard{mutex_};
        if (removals != removals_.load(std::memory_order_relaxed)) return;
        auto at = blocked_.find(key);
        if (at == blocked_.end()) {
            if (blocked_.size() >= capacity_) erase(blocked_.begin());
            at = blocked_.try_emplace(std::string{key}).first;
            size_.store(blocked_.size(), std::memory_order_relaxed);
        }
        auto& refusals = at->second;
        auto place = of_cost(refusals, cost);
        if (place != refusals.end() && place->until >= until) return;  // what is known says more
        if (place == refusals.end() && refusals.size() < most_costs) place = refusals.emplace(place);
        if (place == refusals.end()) place = std::min_element(refusals.begin(), refusals.end(), [](auto const& a, auto const& b) { return a.until < b.until; });
        *place = {.decision = decision, .cost = cost, .asked = asked, .until = until};
    }

    void remove(std::string_view key) {
        std::lock_guard const guard{mutex_};
        removals_.fetch_add(1, std::memory_order_relaxed);
        if (auto const at = blocked_.find(key); at != blocked_.end()) erase(at);
    }
    std::uint64_t removals() const noexcept { return removals_.load(std::memory_order_relaxed); }

    std::size_t size() const noexcept { return size_.load(std::memory_order_relaxed); }

private:
    static constexpr std::size_t most_costs = 8;  // of a key; with more of them in use, some are asked for more often
    struct refusal {
        rate_decision decision{};
        std::int64_t cost = 0;
        clock::time_point asked{};
        clock::time_point until{};
    };
    struct hash {
        using is_transparent = void;
        std::size_t operator()(std::string_view text) const noexcept { return std::hash<std::string_view>{}(text); }
    };
    using table = std::unordered_map<std::string, std::vector<refusal>, hash, std::equal_to<>>;

    static std::vector<refusal>::iterator of_cost(std::vector<refusal>& all, std::int64_t cost) noexcept {
        return std::find_if(all.begin(), all.end(), [cost](refusal const& one) { return one.cost == cost; });
    }
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
