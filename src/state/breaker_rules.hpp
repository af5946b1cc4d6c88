#pragma once

// When a circuit breaker opens, by numbers. The server decides by its own copy of these rules (src/scripts/breaker_report.lua); here they tell
// when it must be asked at once, whether this process by itself sees it fail, and what to do without a server.

#include <lockstep/circuit_breaker.hpp>
#include <lockstep/error.hpp>

#include <array>
#include <chrono>
#include <cstdint>

namespace lockstep::detail {

struct outcome_counts {
    std::int64_t ok = 0;
    std::int64_t failed = 0;

    std::int64_t all() const noexcept { return ok + failed; }
    outcome_counts& operator+=(outcome_counts const& more) noexcept {
        ok += more.ok;
        failed += more.failed;
        return *this;
    }
};

/// It can't be asked, or does nothing but refuse (out of memory, no replicas): what was counted here decides until it takes a write again.
inline bool is_silence(error const& problem) noexcept {
    return problem.reason() == errc::unavailable || problem.reason() == errc::timeout || problem.reason() == errc::server;
}

/// `share`: of how many reporters this is one.
inline bool is_bad(circuit_breaker_options const& how, outcome_counts const& seen, int share = 1) noexcept {
    auto const part = [share](std::int64_t whole) { return (whole + share - 1) / share; };
    if (seen.failed == 0) return false;
    if (how.failure_threshold > 0 && seen.failed >= part(how.failure_threshold)) return true;
    return how.failure_ratio > 0 && seen.all() >= part(how.minimum_calls) &&
           static_cast<double>(seen.failed) >= how.failure_ratio * static_cast<double>(seen.all()) - 1e-9;
}

/// Counts of the latest `length`, and of a ninth of it more at most: it is cut into nine slices, and a tenth has just begun.
class outcome_window {
public:
    using clock = std::chrono::steady_clock;

    explicit outcome_window(std::chrono::milliseconds length) noexcept : slice_((clock::duration{length} + clock::duration{slices - 2}) / (slices - 1)) {}

    void add(outcome_counts const& more, clock::time_point now) noexcept {
        auto const number = now.time_since_epoch() / slice_;
        auto& at = slots_[static_cast<std::size_t>(number % slices)];
        if (at.number != number) at = {.number = number};
        at.counts += more;
    }
    outcome_counts sum(clock::time_point now) const noexcept {
        auto const number = now.time_since_epoch() / slice_;
        outcome_counts all;
        for (auto const& one : slots_) {
            if (one.number > number - slices && one.number <= number) all += one.counts;
        }
        return all;
    }
    void clear() noexcept { slots_ = {}; }

private:
    static constexpr std::int64_t slices = 10;
    struct slot {
        std::int64_t number = -slices;
        outcome_counts counts{};
    };
    clock::duration slice_;
    std::array<slot, slices> slots_{};
};

}  // namespace lockstep::detail
