#pragma once

// What mutexes, shared mutexes and their like have in common: the ways to acquire a lease, and the standard library's Lockable on
// top of it. The public headers say what each promises.

#include <lockstep/detail/time_after.hpp>
#include <lockstep/lease.hpp>
#include <lockstep/task.hpp>

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <stop_token>
#include <utility>

namespace lockstep {

namespace engine {
struct target;
}

namespace detail {

class thread_leases;

class acquirable {
public:
    /// Waits as long as the options allow (`wait_limit`, `attempts`), then throws `timeout_error`.
    lease acquire(std::stop_token token = {});
    task<lease> async_acquire();

    /// Once, without waiting.
    std::optional<lease> try_acquire(std::stop_token token = {}) { return try_until({}, std::move(token)); }
    task<std::optional<lease>> async_try_acquire() { return async_try_until({}); }

    template <class Rep, class Period>
    std::optional<lease> try_acquire_for(std::chrono::duration<Rep, Period> time, std::stop_token token = {}) {
        return try_until(time_after(time), std::move(token));
    }
    template <class Rep, class Period>
    task<std::optional<lease>> async_try_acquire_for(std::chrono::duration<Rep, Period> time) {
        return async_try_until(time_after(time));
    }
    template <class Clock, class Duration>
    std::optional<lease> try_acquire_until(std::chrono::time_point<Clock, Duration> time, std::stop_token token = {}) {
        return try_until(time_after(time - Clock::now()), std::move(token));
    }
    template <class Clock, class Duration>
    task<std::optional<lease>> async_try_acquire_until(std::chrono::time_point<Clock, Duration> time) {
        return async_try_until(time_after(time - Clock::now()));
    }

protected:
    explicit acquirable(std::shared_ptr<engine::target const> what) noexcept : what_(std::move(what)) {}
    ~acquirable() = default;
    acquirable(acquirable&&) noexcept = default;
    acquirable& operator=(acquirable&&) noexcept = default;

    std::optional<lease> try_until(std::chrono::steady_clock::time_point until, std::stop_token token);
    task<std::optional<lease>> async_try_until(std::chrono::steady_clock::time_point until);

    std::shared_ptr<engine::target const> what_;
};

/// TimedLockable. The lease is kept here under the calling thread's id: for threads, not for coroutines.
class lockable : public acquirable {
public:
    /// A thread that locks twice throws `would_deadlock_error`.
    void lock();
    bool try_lock() { return lock_until({}); }
    template <class Rep, class Period>
    bool try_lock_for(std::chrono::duration<Rep, Period> const& time) {
        return lock_until(time_after(time));
    }
    template <class Clock, class Duration>
    bool try_lock_until(std::chrono::time_point<Clock, Duration> const& time) {
        return lock_until(time_after(time - Clock::now()));
    }
    /// Never throws and waits a second at most. A thread that does not hold it does nothing.
    void unlock() noexcept;

    /// Of the calling thread's `lock()`. Throw `not_held_error` without one.
    std::uint64_t fence() const;
    std::stop_token stop_token() const;

protected:
    explicit lockable(std::shared_ptr<engine::target const> what);
    ~lockable();
    lockable(lockable&&) noexcept;
    lockable& operator=(lockable&&) noexcept;

private:
    bool lock_until(std::chrono::steady_clock::time_point until);

    std::unique_ptr<thread_leases> held_;
};

}  // namespace detail
}  // namespace lockstep
