#pragma once

/// `event`: a signal that wakes exactly one waiter, among all programs that use the same server.
///
///     lockstep::event ready{client, "batch-ready"};
///     ready.set();                       // here
///     ready.wait();                      // there
///
/// Signals are counted: each `set()` ends one `wait()`, and is kept while nobody waits. Waiters are served in the order they came. A signal
/// offered to a waiter that dies before it takes it goes to the next one; a process that is killed after it has taken it takes it along
/// (use a queue where that must not happen). An event that no process has an object of is forgotten `retention` after its last
/// use, with its signals.
///
/// Failure: as for `mutex`; `indeterminate_error` from `set` when its reply was lost and could not be had again in time; after
/// `cancelled_error` from `set` or `clear` it may have been done. Otherwise a lost
/// reply loses no signal and adds none, if the client reaches the server again within `ttl`. Threads: everything may be called from any thread.

#include <lockstep/client.hpp>
#include <lockstep/detail/acquirable.hpp>
#include <lockstep/lease_options.hpp>

#include <string_view>

namespace lockstep {

class event {
public:
    event(client& by, std::string_view name, lease_options const& options = {});

    void set(std::stop_token token = {});
    task<void> async_set();
    /// Drops the signals that nobody has taken. Returns how many.
    std::int64_t clear(std::stop_token token = {});
    task<std::int64_t> async_clear();
    /// Is there a signal that nobody has taken?
    bool is_set(std::stop_token token = {}) const;
    task<bool> async_is_set() const;

    /// Waits for a signal and takes it; as long as `wait_limit` allows, then `timeout_error`.
    void wait(std::stop_token token = {});
    task<void> async_wait();
    /// False: there was none in time.
    template <class Rep, class Period>
    bool wait_for(std::chrono::duration<Rep, Period> time, std::stop_token token = {}) {
        return wait_until_steady(detail::time_after(time), std::move(token));
    }
    template <class Rep, class Period>
    task<bool> async_wait_for(std::chrono::duration<Rep, Period> time) {
        return async_wait_until_steady(detail::time_after(time));
    }
    template <class Clock, class Duration>
    bool wait_until(std::chrono::time_point<Clock, Duration> time, std::stop_token token = {}) {
        return wait_until_steady(detail::time_after(time - Clock::now()), std::move(token));
    }
    template <class Clock, class Duration>
    task<bool> async_wait_until(std::chrono::time_point<Clock, Duration> time) {
        return async_wait_until_steady(detail::time_after(time - Clock::now()));
    }

private:
    bool wait_until_steady(std::chrono::steady_clock::time_point until, std::stop_token token);
    task<bool> async_wait_until_steady(std::chrono::steady_clock::time_point until);

    std::shared_ptr<engine::target const> what_;
};

}  // namespace lockstep
