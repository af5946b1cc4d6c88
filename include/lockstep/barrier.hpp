#pragma once

/// `barrier`: so many participants meet, in all programs together; when all have arrived, all go on, and it begins anew.
///
///     lockstep::barrier step{client, "simulation", 8};
///     while (work()) step.arrive_and_wait();               // nobody is a step ahead
///
///     lockstep::barrier step{client, "simulation", 8, [] { publish_results(); }};   // run once per meeting, by the last one to arrive
///
/// Each meeting is a generation, and it ends the same way for all that arrived: complete, or broken. It is broken when one of them dies (within
/// its ttl; arrivals are renewed while their process lives), runs out of time, is cancelled, or when the completion function throws. The
/// next arrival belongs to the next generation, which starts empty: after `broken_barrier_error` participants may simply arrive again.
/// Nobody polls.
///
/// The completion function runs between the last arrival and the release of all: in the blocking forms on the calling thread, in the
/// `async_` forms on the I/O thread, where it must not block. Whoever arrives last runs its own, so give the same one to all. Its exception
/// goes to the one who ran it. It runs at most once per generation; if its runner dies meanwhile, the generation is broken.
///
/// Failure: `broken_barrier_error` as above; `timeout_error` (from `arrive_and_wait` with a `wait_limit`); `count_mismatch_error` (it exists
/// for another number, or all have dropped out); `unavailable_error` (no server; not arrived); `cancelled_error` (stop token, cancellation
/// slot, client closed: the arrival is taken back, which breaks the generation); `indeterminate_error` (it arrived, or may have, and the
/// outcome could not be learnt: the others may have gone on); `server_error`. A lost reply loses no arrival and adds none.
///
/// A barrier that no process has an object of is forgotten `retention` after its last use. Of `lease_options` ttl, renew, renew_every, retention and wait_limit count.
/// Threads: everything may be called from any thread; each call is one participant. The object may be destroyed while its tasks go on.

#include <lockstep/client.hpp>
#include <lockstep/detail/time_after.hpp>
#include <lockstep/lease_options.hpp>
#include <lockstep/task.hpp>

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <stop_token>
#include <string_view>
#include <utility>

namespace lockstep {

namespace detail {
struct barrier_state;
}

class barrier {
public:
    /// Does not ask the server. Throws `invalid_argument_error` unless parties are 1 to 2,000, for a name that is not 1 to 512 bytes, or
    /// options out of range.
    barrier(client& by, std::string_view name, std::int64_t parties, lease_options const& options = {});
    barrier(client& by, std::string_view name, std::int64_t parties, std::function<void()> completion, lease_options const& options = {});

    /// As long as `wait_limit` allows.
    void arrive_and_wait(std::stop_token token = {});
    task<void> async_arrive_and_wait();
    /// False: not all came in time. If this one had arrived, the generation is broken by that.
    template <class Rep, class Period>
    bool arrive_and_wait_for(std::chrono::duration<Rep, Period> time, std::stop_token token = {}) {
        return meet_until(detail::time_after(time), std::move(token));
    }
    template <class Rep, class Period>
    task<bool> async_arrive_and_wait_for(std::chrono::duration<Rep, Period> time) {
        return async_meet_until(detail::time_after(time));
    }
    template <class Clock, class Duration>
    bool arrive_and_wait_until(std::chrono::time_point<Clock, Duration> time, std::stop_token token = {}) {
        return meet_until(detail::time_after(time - Clock::now()), std::move(token));
    }
    template <class Clock, class Duration>
    task<bool> async_arrive_and_wait_until(std::chrono::time_point<Clock, Duration> time) {
        return async_meet_until(detail::time_after(time - Clock::now()));
    }

    /// Arrives for the last time, without waiting: from the next generation on one less must arrive. (Runs the completion function if it is
    /// the last to arrive.)
    void arrive_and_drop(std::stop_token token = {});
    task<void> async_arrive_and_drop();

private:
    bool meet_until(std::chrono::steady_clock::time_point until, std::stop_token token);
    task<bool> async_meet_until(std::chrono::steady_clock::time_point until);

    std::shared_ptr<detail::barrier_state const> state_;
};

}  // namespace lockstep
