#pragma once

// The leases that `lock()` took, by thread: an `unlock()` after a loss must not unlock whoever came next.

#include <lockstep/lease.hpp>

#include <cstdint>
#include <mutex>
#include <stop_token>
#include <thread>
#include <utility>
#include <vector>

namespace lockstep::detail {

class thread_leases {
public:
    explicit thread_leases(bool reentrant = false) noexcept : reentrant_(reentrant) {}

    /// Throws would_deadlock_error when this thread has one that is still valid and may not have two.
    void require_none() const;
    void put(lease held);
    /// The calling thread's (its last), or an empty one.
    lease take() noexcept;
    std::uint64_t fence() const;
    std::stop_token stop_token() const;

private:
    lease const& mine() const;  // with the lock held

    bool reentrant_;
    mutable std::mutex mutex_;
    std::vector<std::pair<std::thread::id, lease>> held_;
};

/// Gives it back, waits for that a second at most and never on an I/O thread.
void release_quietly(lease held) noexcept;

}  // namespace lockstep::detail
