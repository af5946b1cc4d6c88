#pragma once

/// A clock that goes on while the machine sleeps.
///
/// A lease must end here before it ends on the server (DESIGN: invariant 3), and the server's clock does not stop when this
/// machine is suspended. `std::chrono::steady_clock` is CLOCK_MONOTONIC, which does: a laptop that slept an hour would wake
/// up believing it still holds the lock. Deadlines that belong to leases are therefore kept on this clock.

#include <time.h>

#include <chrono>

namespace lockstep::base {

struct boot_clock {
    using duration = std::chrono::nanoseconds;
    using rep = duration::rep;
    using period = duration::period;
    using time_point = std::chrono::time_point<boot_clock>;
    static constexpr bool is_steady = true;

    static time_point now() noexcept {
        timespec since_boot{};
        ::clock_gettime(CLOCK_BOOTTIME, &since_boot);  // cannot fail: the clock exists since Linux 2.6.39
        return time_point{std::chrono::seconds{since_boot.tv_sec} + std::chrono::nanoseconds{since_boot.tv_nsec}};
    }
};

}  // namespace lockstep::base
