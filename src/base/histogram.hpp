#pragma once

// How long things took, as counts in buckets: four for each doubling, so that a percentile is known to within an eighth. Only buckets that
// are used take room, and that is kept when it is cleared.

#include <algorithm>
#include <bit>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace lockstep::base {

class histogram {
public:
    struct bucket {
        std::uint8_t index;
        std::uint64_t count;
    };

    void add(std::chrono::nanoseconds time) {
        auto const us = static_cast<std::uint64_t>(std::max<std::int64_t>(0, time.count() / 1'000));
        auto const index = index_of(us);
        if (latest_ < buckets.size() && buckets[latest_].index == index) {  // most often as long as the one before
            ++buckets[latest_].count;
            ++count;
        } else {
            add(index, 1);
        }
        sum_us += us;
        max_us = std::max(max_us, us);
    }
    void add(std::uint8_t index, std::uint64_t more) {
        auto at = std::lower_bound(buckets.begin(), buckets.end(), index, [](bucket const& one, std::uint8_t wanted) { return one.index < wanted; });
        if (at == buckets.end() || at->index != index) at = buckets.insert(at, {index, 0});
        at->count += more;
        latest_ = static_cast<std::size_t>(at - buckets.begin());
        count += more;
    }
    void add(histogram const& other) {
        for (auto const& one : other.buckets) add(one.index, one.count);
        sum_us += other.sum_us;
        max_us = std::max(max_us, other.max_us);
    }
    void clear() noexcept {
        buckets.clear();
        count = sum_us = max_us = 0;
    }

    /// So many of a hundred took no longer, 0 to 100.
    std::chrono::microseconds percentile(double part) const noexcept {
        auto const wanted = part / 100 * static_cast<double>(count);
        double before = 0;
        for (auto const& one : buckets) {
            auto const here = static_cast<double>(one.count);
            if (before + here >= wanted) {
                auto const low = static_cast<double>(least_of(one.index));
                auto const high = static_cast<double>(std::min(least_of(one.index + 1U), max_us + 1)) - 1;
                auto const at = low + std::max(0.0, high - low) * std::clamp((wanted - before) / here, 0.0, 1.0);
                return std::chrono::microseconds{static_cast<std::int64_t>(at)};
            }
            before += here;
        }
        return std::chrono::microseconds{static_cast<std::int64_t>(max_us)};
    }
    std::chrono::microseconds average() const noexcept {
        return std::chrono::microseconds{static_cast<std::int64_t>(count == 0 ? 0 : sum_us / count)};
    }

    static constexpr std::uint8_t index_of(std::uint64_t us) noexcept {
        if (us < 4) return static_cast<std::uint8_t>(us);
        auto const top = static_cast<unsigned>(std::bit_width(us)) - 1;
        return static_cast<std::uint8_t>(std::min(4 * (top - 1) + static_cast<unsigned>(us >> (top - 2) & 3), last));
    }
    /// The smallest time, in µs, that falls into this bucket.
    static constexpr std::uint64_t least_of(unsigned index) noexcept {
        if (index < 4) return index;
        auto const top = index / 4 + 1;
        return (std::uint64_t{4} + index % 4) << (top - 2);
    }
    static constexpr unsigned last = 175;  // 2 years

    std::vector<bucket> buckets;  ///< by index
    std::uint64_t count = 0;
    std::uint64_t sum_us = 0;
    std::uint64_t max_us = 0;

private:
    std::size_t latest_ = 0;
};

}  // namespace lockstep::base
