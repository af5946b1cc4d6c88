#pragma once

/// `broadcast_event`: a flag that wakes all who wait for it, in all programs that use the same server.
///
///     lockstep::broadcast_event ready{client, "index-ready"};
///     ready.set();                       // here, once
///     ready.wait();                      // everywhere
///
/// `set()` wakes all who wait and stays until `clear()`: who comes meanwhile does not wait. Who waited when it was set is woken, also if it is
/// cleared before the wake-up arrives. Nobody polls: the server tells each process once, however many wait in it. An event that no
/// process has an object of is forgotten `retention` after its last use (up to twice that), and then counts as cleared. For a signal that only
/// one waiter gets, see `event`.
///
/// Failure: false from `wait_for` and `wait_until` means "not set in time". Everything else is thrown: `timeout_error` (from `wait` with a
/// `wait_limit`), `unavailable_error` (no server), `cancelled_error` (stop token, cancellation slot, client closed), `indeterminate_error` (from
/// `set` and `clear`: the answer did not come in time; it may have happened), `server_error`. A lost reply loses nothing: it is asked again.
///
/// Threads: everything may be called from any thread. The object may be destroyed while its tasks go on. Of `lease_options` only `retention`
/// and `wait_limit` count.

#include <lockstep/client.hpp>
#include <lockstep/detail/time_after.hpp>
#include <lockstep/lease_options.hpp>
#include <lockstep/task.hpp>

#include <chrono>
#include <memory>
#include <stop_token>
#include <string_view>
#include <utility>

namespace lockstep {

namespace engine {
struct gate_target;
}

class broadcast_event {
public:
    /// Does not ask the server. Throws `invalid_argument_error` for a name that is not 1 to 512 bytes, or options out of range.
    broadcast_event(client& by, std::string_view name, lease_options const& options = {});

    void set(std::stop_token token = {});
    task<void> async_set();
    void clear(std::stop_token token = {});
    task<void> async_clear();
    bool is_set(std::stop_token token = {}) const;
    task<bool> async_is_set() const;

    /// Until it is set; as long as `wait_limit` allows, then `timeout_error`.
    void wait(std::stop_token token = {}) const;
    task<void> async_wait() const;
    /// False: it was not set in time.
    template <class Rep, class Period>
    bool wait_for(std::chrono::duration<Rep, Period> time, std::stop_token token = {}) const {
        return wait_until_steady(detail::time_after(time), std::move(token));
    }
    template <class Rep, class Period>
    task<bool> async_wait_for(std::chrono::duration<Rep, Period> time) const {
        return async_wait_until_steady(detail::time_after(time));
    }
    template <class Clock, class Duration>
    bool wait_until(std::chrono::time_point<Clock, Duration> time, std::stop_token token = {}) const {
        return wait_until_steady(detail::time_after(time - Clock::now()), std::move(token));
    }
    template <class Clock, class Duration>
    task<bool> async_wait_until(std::chrono::time_point<Clock, Duration> time) const {
        return async_wait_until_steady(detail::time_after(time - Clock::now()));
    }

private:
    bool wait_until_steady(std::chrono::steady_clock::time_point until, std::stop_token token) const;
    task<bool> async_wait_until_steady(std::chrono::steady_clock::time_point until) const;

    std::shared_ptr<engine::gate_target const> what_;
};

}  // namespace lockstep
