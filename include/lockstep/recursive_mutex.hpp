#pragma once

/// `recursive_mutex`: a mutex whose owner may take it again. Every acquire needs a release of its own; re-entry keeps the fence.
///
///     lockstep::recursive_mutex mutex{client, "account-7"};
///     std::scoped_lock outer{mutex};             // the owner is this thread
///     std::scoped_lock inner{mutex};             // so this does not wait
///
///     auto mine = mutex.as("order-4711");        // the owner is whoever uses this name: coroutines, call chains across processes
///     auto lease = co_await mine.async_acquire();
///
/// What is held is a set of leases under one owner: it is free for others when the last of them has ended, by release or because its
/// holder died. Without an explicit owner only the blocking forms exist, since a coroutine has no thread of its own. One owner should
/// not wait for the same name in two places at once.
///
/// Failure and threads: as for `mutex`.

#include <lockstep/client.hpp>
#include <lockstep/detail/acquirable.hpp>
#include <lockstep/lease_options.hpp>

#include <string_view>

namespace lockstep {

class recursive_mutex {
public:
    recursive_mutex(client& by, std::string_view name, lease_options const& options = {});
    ~recursive_mutex();
    recursive_mutex(recursive_mutex&&) noexcept;
    recursive_mutex& operator=(recursive_mutex&&) noexcept;

    /// The mutex in the hands of one owner: all the ways to acquire it, blocking and `async_`.
    class owner : public detail::acquirable {
    private:
        friend class recursive_mutex;
        explicit owner(std::shared_ptr<engine::target const> what) noexcept : acquirable(std::move(what)) {}
    };
    /// `id`: 1 to 256 bytes without spaces and control characters, the same for all that act as one owner.
    owner as(std::string_view id) const;

    // The owner is the calling thread.
    lease acquire(std::stop_token token = {}) { return this_thread().acquire(std::move(token)); }
    std::optional<lease> try_acquire(std::stop_token token = {}) { return this_thread().try_acquire(std::move(token)); }
    template <class Duration>
    std::optional<lease> try_acquire_for(Duration time, std::stop_token token = {}) {
        return this_thread().try_acquire_for(time, std::move(token));
    }
    template <class Time>
    std::optional<lease> try_acquire_until(Time time, std::stop_token token = {}) {
        return this_thread().try_acquire_until(time, std::move(token));
    }

    // TimedLockable; each lock needs an unlock.
    void lock() { put(this_thread().acquire()); }
    bool try_lock() { return put(this_thread().try_acquire()); }
    template <class Duration>
    bool try_lock_for(Duration const& time) {
        return put(this_thread().try_acquire_for(time));
    }
    template <class Time>
    bool try_lock_until(Time const& time) {
        return put(this_thread().try_acquire_until(time));
    }
    /// Never throws and waits a second at most. A thread that does not hold it does nothing.
    void unlock() noexcept;
    /// Of the calling thread's `lock()`. Throw `not_held_error` without one.
    std::uint64_t fence() const;
    std::stop_token stop_token() const;

private:
    owner this_thread() const;
    bool put(std::optional<lease> held);

    std::shared_ptr<engine::target const> what_;
    std::unique_ptr<detail::thread_leases> held_;
};

}  // namespace lockstep
