#pragma once

// Options with every default filled in and every value checked.

#include <lockstep/lease_options.hpp>

#include <chrono>
#include <cstdint>
#include <string_view>

namespace lockstep::engine {

struct settings {
    std::chrono::milliseconds ttl;
    std::chrono::milliseconds renew_every;
    std::chrono::milliseconds max_hold;
    std::chrono::milliseconds wait_limit;
    std::chrono::milliseconds retry_delay;
    std::chrono::milliseconds retry_jitter;
    std::chrono::milliseconds cohort_time;
    std::chrono::milliseconds claim_window;
    std::chrono::milliseconds retention;
    std::uint32_t max_waiters;
    std::uint32_t attempts;
    std::uint16_t cohort_passes;
    bool renew;
    bool report;
    std::chrono::milliseconds trust_for;  ///< since the last renewal was sent: then it is lost here; nine tenths of its length at most. 0: so long

    bool has_cohort() const noexcept { return cohort_passes != 0; }
};

/// Throws invalid_argument_error that names the object, the option and what is allowed.
settings resolve(lease_options const& own, lease_options const& defaults, std::string_view name);

}  // namespace lockstep::engine
