#pragma once

/// How many of N nodes said yes, and what that decides. Without sockets.
///
/// A round asks all nodes at once. It is won as soon as a quorum of N/2+1 said yes: two holders would need two quorums, which have a node
/// in common. It is lost as soon as no quorum can say yes any more. A node that is silent (unreachable, too slow, an answer that was
/// lost, an error) is no yes; where so many are silent that those who answer are no quorum, nothing is known about the others' holds.

#include "base/clock.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>

namespace lockstep::quorum {

enum class vote : std::uint8_t { yes, no, silent };
enum class decision : std::uint8_t { open, won, lost };

class ballot {
public:
    static constexpr std::size_t quorum_of(std::size_t nodes) noexcept { return nodes / 2 + 1; }

    ballot() noexcept = default;
    explicit ballot(std::size_t nodes) noexcept : nodes_(nodes) {}

    void cast(vote one) noexcept { ++counts_[static_cast<std::size_t>(one)]; }

    std::size_t yes() const noexcept { return counts_[0]; }
    std::size_t no() const noexcept { return counts_[1]; }
    std::size_t silent() const noexcept { return counts_[2]; }
    std::size_t missing() const noexcept { return nodes_ - yes() - no() - silent(); }

    decision now() const noexcept {
        if (nodes_ == 0) return decision::open;
        if (yes() >= quorum_of(nodes_)) return decision::won;
        return yes() + missing() < quorum_of(nodes_) ? decision::lost : decision::open;
    }
    /// Those who said no are alone enough that no quorum can say yes: it does not help to ask the silent ones again.
    bool is_refused() const noexcept { return nodes_ - no() < quorum_of(nodes_); }
    /// Those who answered are no quorum.
    bool is_out_of_reach() const noexcept { return nodes_ - silent() < quorum_of(nodes_); }

private:
    std::size_t nodes_ = 0;
    std::size_t counts_[3] = {};
};

/// What is taken off a ttl: clocks that do not run equally fast, and 2 ms because servers expire keys to the millisecond.
inline std::chrono::nanoseconds drift_of(std::chrono::milliseconds ttl, double factor) noexcept {
    return std::chrono::nanoseconds{static_cast<std::int64_t>(static_cast<double>(std::chrono::nanoseconds{ttl}.count()) * factor)} +
           std::chrono::milliseconds{2};
}

/// What is taken off besides, as of every lease: whoever hears of the end has that long to stop before somebody else can have it.
inline std::chrono::milliseconds margin_of(std::chrono::milliseconds ttl) noexcept { return ttl / 10; }

/// Until when it is valid. That counts from before the first request left: a node may have begun to count right then.
inline base::boot_clock::time_point end_of_validity(base::boot_clock::time_point sent, std::chrono::milliseconds ttl,
                                                    double drift_factor) noexcept {
    return sent + ttl - drift_of(ttl, drift_factor) - margin_of(ttl);
}

}  // namespace lockstep::quorum
