#pragma once

/// `latch`: opens once, when it was counted down so many times by all programs together.
///
///     lockstep::latch loaded{client, "shards-loaded", 16};
///     loaded.count_down();               // by each of the 16 that has loaded its shard
///     loaded.wait();                     // by all who need the whole
///
/// The first use by anybody creates it; the count must be the same for all. It does not close again. Nobody polls: the server tells each
/// process once, however many wait in it. A latch that no process has an object of is forgotten `retention` after its last
/// use (up to twice that), open or not: whoever uses the name after that has a new latch, closed, with the full count. So a name is for one occasion:
/// put a run's number into it.
///
/// Who dies without having counted down leaves the others waiting: a latch does not know who is meant to come. See `barrier`.
///
/// Failure: false from `wait_for`, `wait_until` and `try_wait` means "not open by then". Everything else is thrown: `timeout_error` (from `wait`
/// with a `wait_limit`), `count_mismatch_error` (it exists with another count), `invalid_argument_error` (counted down by more than is
/// left; nothing was counted), `unavailable_error` (no server), `cancelled_error` (stop token, cancellation slot, client closed; a count
/// may have been taken), `indeterminate_error` (from `count_down`: the answer did not come in time; it may have counted, once),
/// `server_error`. A lost reply loses no count and adds none.
///
/// Threads: everything may be called from any thread. The object may be destroyed while its tasks go on. Of `lease_options` only `retention`
/// and `wait_limit` count.

#include <lockstep/client.hpp>
#include <lockstep/detail/time_after.hpp>
#include <lockstep/lease_options.hpp>
#include <lockstep/task.hpp>

#include <chrono>
#include <cstdint>
#include <memory>
#include <stop_token>
#include <string_view>
#include <utility>

namespace lockstep {

namespace detail {
struct latch_state;
}

class latch {
public:
    /// Does not ask the server. Throws `invalid_argument_error` for a count that is not 0 to 10^12, a name that is not 1 to 512 bytes, or
    /// options out of range.
    latch(client& by, std::string_view name, std::int64_t count, lease_options const& options = {});

    /// By at least 1 and at most what is left.
    void count_down(std::int64_t n = 1, std::stop_token token = {});
    task<void> async_count_down(std::int64_t n = 1);

    /// Is it open?
    bool try_wait(std::stop_token token = {}) const;
    task<bool> async_try_wait() const;

    /// Until it is open; as long as `wait_limit` allows, then `timeout_error`.
    void wait(std::stop_token token = {}) const;
    task<void> async_wait() const;
    /// False: it was not open in time.
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

    /// count_down(n), then wait(). A count that was taken stays when the wait fails.
    void arrive_and_wait(std::int64_t n = 1, std::stop_token token = {});
    task<void> async_arrive_and_wait(std::int64_t n = 1);

private:
    bool wait_until_steady(std::chrono::steady_clock::time_point until, std::stop_token token) const;
    task<bool> async_wait_until_steady(std::chrono::steady_clock::time_point until) const;

    std::shared_ptr<detail::latch_state> state_;
};

}  // namespace lockstep
