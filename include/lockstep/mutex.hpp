#pragma once

/// `mutex`: at most one holder of a name among all programs that use the same server.
///
///     lockstep::mutex mutex{client, "nightly-report"};
///     std::scoped_lock guard{mutex};                       // the standard library's guards work
///     if (auto lease = mutex.try_acquire_for(5s)) ...      // the lease is the richer form
///     auto lease = co_await mutex.async_acquire();
///
/// Waiters queue at the server and are woken by it, first come, first served between processes; inside a process a lease may be passed
/// on directly for a short while (`lease_options::cohort_passes`). Nobody polls. A holder that dies is freed within its ttl, a
/// waiter that dies is passed over. Each hold has a larger fence than all before it: the guarded resource should check it.
///
/// Failure: nothing (`std::nullopt`) from the `try_` forms means "not obtained in time". Everything else is thrown: `timeout_error` (from
/// `acquire` with a `wait_limit` or `attempts`), `unavailable_error` (no server), `cancelled_error` (stop token, cancellation slot,
/// client closed), `server_error` (with prefix LOCKSTEP_WAITERS: too many wait), `would_deadlock_error`.
///
/// `lock()` and `unlock()` keep the lease in this object under the calling thread's id; they are for threads, not for coroutines.
/// Threads: everything may be called from any thread. The object may be destroyed while its leases live on.

#include <lockstep/client.hpp>
#include <lockstep/detail/time_after.hpp>
#include <lockstep/lease.hpp>
#include <lockstep/lease_options.hpp>
#include <lockstep/task.hpp>

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <stop_token>
#include <string_view>

namespace lockstep {

namespace engine {
struct target;
}
namespace detail {
class thread_leases;
}  // namespace detail

class mutex {
public:
    /// Does not ask the server. Throws `invalid_argument_error` for a name that is not 1 to 512 bytes, or options out of range.
    mutex(client& by, std::string_view name, lease_options const& options = {});
    ~mutex();
    mutex(mutex&&) noexcept;
    mutex& operator=(mutex&&) noexcept;

    lease acquire(std::stop_token token = {});
    task<lease> async_acquire();

    /// Once, without waiting.
    std::optional<lease> try_acquire(std::stop_token token = {});
    task<std::optional<lease>> async_try_acquire();

    template <class Rep, class Period>
    std::optional<lease> try_acquire_for(std::chrono::duration<Rep, Period> time, std::stop_token token = {}) {
        return try_until(detail::time_after(time), std::move(token));
    }
    template <class Rep, class Period>
    task<std::optional<lease>> async_try_acquire_for(std::chrono::duration<Rep, Period> time) {
        return async_try_until(detail::time_after(time));
    }
    template <class Clock, class Duration>
    std::optional<lease> try_acquire_until(std::chrono::time_point<Clock, Duration> time, std::stop_token token = {}) {
        return try_until(detail::time_after(time - Clock::now()), std::move(token));
    }
    template <class Clock, class Duration>
    task<std::optional<lease>> async_try_acquire_until(std::chrono::time_point<Clock, Duration> time) {
        return async_try_until(detail::time_after(time - Clock::now()));
    }

    // TimedLockable. A thread that locks twice throws `would_deadlock_error`; it uses `recursive_mutex`.
    void lock();
    bool try_lock();
    template <class Rep, class Period>
    bool try_lock_for(std::chrono::duration<Rep, Period> const& time) {
        return lock_until(detail::time_after(time));
    }
    template <class Clock, class Duration>
    bool try_lock_until(std::chrono::time_point<Clock, Duration> const& time) {
        return lock_until(detail::time_after(time - Clock::now()));
    }
    /// Never throws and waits a second at most. A thread that does not hold it does nothing.
    void unlock() noexcept;
    /// Of the calling thread's `lock()`. Throws `not_held_error` without one.
    std::uint64_t fence() const;
    std::stop_token stop_token() const;

private:
    std::optional<lease> try_until(std::chrono::steady_clock::time_point until, std::stop_token token);
    task<std::optional<lease>> async_try_until(std::chrono::steady_clock::time_point until);
    bool lock_until(std::chrono::steady_clock::time_point until);

    std::shared_ptr<engine::target const> what_;
    std::unique_ptr<detail::thread_leases> held_;
};

}  // namespace lockstep
