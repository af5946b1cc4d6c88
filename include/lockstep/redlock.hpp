#pragma once

/// `redlock`: a lock over several independent Redis servers, in the protocol that lock libraries of other languages use too.
///
///     lockstep::redlock_nodes nodes{"redis://a", "redis://b", "redis://c"};
///     lockstep::redlock lock{nodes, "report", {.ttl = 10s}};
///     auto lease = lock.acquire();                           // held on two of the three at least
///     crunch(lease.stop_token());                            // trips when the majority is lost, before somebody else can have it
///
///     lockstep::redlock both{nodes, {"account-7", "account-9"}};   // several resources, all or none
///     lockstep::redlock plain{client, "report"};             // one server: the plain Redis lock
///
/// Per node `SET key token NX PX ttl`, and scripts that compare the token before they delete or extend; the key is the resource's name as it
/// is. So it excludes node-redlock, redis-semaphore's Mutex, redis-py's Lock and their like on the same name. All nodes are asked at once;
/// N/2+1 of them decide, the others are not waited for. The lease is valid for nine tenths of its ttl less the time that passed since before
/// the nodes were asked, less `drift_factor`. It is extended in the background; a node that has lost the key gets it again if it is not taken there.
///
/// What that assumes, and when a `mutex` with its fences is the better choice, is in docs/redlock.md. In short: it holds while most nodes
/// keep their data, clocks run about equally fast, and nobody acts on a lease that is not valid any more.
///
/// Waiters of programs that use Lockstep are woken when the lock is released; releases by others are found out by trying again.
///
/// Failure: nothing (`std::nullopt`) from the `try_` forms means "not obtained in time". Thrown are `timeout_error` (`acquire` with a
/// `wait_limit` or `attempts`), `unavailable_error` (no majority of nodes could be reached), `cancelled_error`, `server_error` (most nodes
/// refuse, for instance for want of rights), `would_deadlock_error`. Threads: everything may be called from any thread.

#include <lockstep/client.hpp>
#include <lockstep/detail/time_after.hpp>
#include <lockstep/redlock_lease.hpp>
#include <lockstep/task.hpp>

#include <chrono>
#include <cstddef>
#include <initializer_list>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace lockstep {

struct redlock_options {
    std::chrono::milliseconds ttl{30'000};       ///< how long nodes keep the lock of a holder that is gone, 10 ms to 30 days
    bool renew = true;                           ///< extend it for as long as it is held; false: it ends after `ttl` unless `extend` is called
    std::chrono::milliseconds renew_every{0};    ///< with ±20 % of jitter, at most every half of `ttl`; 0: every third of it
    double drift_factor = 0.01;                  ///< by how much clocks may run apart, 0 to 0.5
    std::chrono::milliseconds node_timeout{0};   ///< how long to wait for a node; 0: a tenth of `ttl`, 20 ms to 1 s
    std::chrono::milliseconds wait_limit{0};     ///< how long `acquire()` and `lock()` wait; 0: for ever
    unsigned attempts = 0;                       ///< how often they try; 0: as often as time allows
    std::chrono::milliseconds retry_delay{200};  ///< between two tries where nobody wakes us: so long,
    std::chrono::milliseconds retry_jitter{100};  ///< plus or minus up to so long
    bool fence = false;                          ///< a fence for each hold; costs a second round to the nodes (docs/redlock.md)
};
static_assert(std::is_trivially_destructible_v<redlock_options>);

/// The nodes: made once, shared by all locks over them. Each is a server of its own, in no way a replica of another. Connections open when
/// they are first used, so construction does not block. A copy is the same set of nodes. Throws `invalid_argument_error` for no node, more
/// than 63, or the same server twice.
class redlock_nodes {
public:
    /// By URL, or by options where they need more; these have one I/O thread together.
    redlock_nodes(std::initializer_list<std::string_view> urls);
    explicit redlock_nodes(std::span<std::string const> urls);
    explicit redlock_nodes(std::span<client_options const> nodes);
    /// By clients that exist, and their connections. One that is closed is a node that can't be reached.
    explicit redlock_nodes(std::span<client* const> nodes);
    explicit redlock_nodes(client& node);

    std::size_t size() const noexcept;
    std::size_t quorum() const noexcept;
    /// For logs: without secrets.
    std::string description() const;

private:
    friend class redlock;
    friend class election;
    std::shared_ptr<quorum::anchor> nodes_;
};

class redlock {
public:
    /// Does not ask any server. Throws `invalid_argument_error` for a name that is not 1 to 512 bytes, more than 100 of them, the same
    /// twice, or options out of range.
    redlock(redlock_nodes const& nodes, std::string_view resource, redlock_options const& options = {});
    redlock(redlock_nodes const& nodes, std::initializer_list<std::string_view> resources, redlock_options const& options = {});
    redlock(redlock_nodes const& nodes, std::vector<std::string> const& resources, redlock_options const& options = {});
    redlock(client& node, std::string_view resource, redlock_options const& options = {});
    ~redlock();
    redlock(redlock&&) noexcept;
    redlock& operator=(redlock&&) noexcept;

    /// Waits as long as the options allow, then throws `timeout_error`.
    redlock_lease acquire(std::stop_token token = {});
    task<redlock_lease> async_acquire();
    /// Once, without waiting.
    std::optional<redlock_lease> try_acquire(std::stop_token token = {}) { return try_until({}, std::move(token)); }
    task<std::optional<redlock_lease>> async_try_acquire() { return async_try_until({}); }

    template <class Rep, class Period>
    std::optional<redlock_lease> try_acquire_for(std::chrono::duration<Rep, Period> time, std::stop_token token = {}) {
        return try_until(detail::time_after(time), std::move(token));
    }
    template <class Rep, class Period>
    task<std::optional<redlock_lease>> async_try_acquire_for(std::chrono::duration<Rep, Period> time) {
        return async_try_until(detail::time_after(time));
    }
    template <class Clock, class Duration>
    std::optional<redlock_lease> try_acquire_until(std::chrono::time_point<Clock, Duration> time, std::stop_token token = {}) {
        return try_until(detail::time_after(time - Clock::now()), std::move(token));
    }
    template <class Clock, class Duration>
    task<std::optional<redlock_lease>> async_try_acquire_until(std::chrono::time_point<Clock, Duration> time) {
        return async_try_until(detail::time_after(time - Clock::now()));
    }

    // TimedLockable. The lease is kept here under the calling thread's id: for threads, not for coroutines.
    /// A thread that locks twice throws `would_deadlock_error`.
    void lock();
    bool try_lock() { return lock_until({}); }
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
    std::stop_token stop_token() const;

private:
    class thread_leases;
    std::optional<redlock_lease> try_until(std::chrono::steady_clock::time_point until, std::stop_token token);
    task<std::optional<redlock_lease>> async_try_until(std::chrono::steady_clock::time_point until);
    bool lock_until(std::chrono::steady_clock::time_point until);

    std::shared_ptr<quorum::target const> what_;
    std::unique_ptr<thread_leases> held_;
};

}  // namespace lockstep
