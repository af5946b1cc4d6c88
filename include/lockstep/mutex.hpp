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
/// `acquire`, `try_acquire`, `try_acquire_for`, `try_acquire_until` and their `async_` twins return leases; `lock`, `try_lock`,
/// `try_lock_for`, `try_lock_until` and `unlock` make it TimedLockable (<lockstep/detail/acquirable.hpp>). A lock keeps its lease in this
/// object under the calling thread's id, so it is for threads and not for coroutines.
///
/// Failure: nothing (`std::nullopt`) from the `try_` forms means "not obtained in time". Everything else is thrown: `timeout_error` (from
/// `acquire` with a `wait_limit` or `attempts`), `unavailable_error` (no server), `cancelled_error` (stop token, cancellation slot,
/// client closed), `server_error` (with prefix LOCKSTEP_WAITERS: too many wait), `would_deadlock_error` (a blocking form on the I/O
/// thread, or a thread that locks twice: see `recursive_mutex`).
/// Threads: everything may be called from any thread. The object may be destroyed while its leases live on.

#include <lockstep/client.hpp>
#include <lockstep/detail/acquirable.hpp>
#include <lockstep/lease_options.hpp>

#include <string_view>

namespace lockstep {

class mutex : public detail::lockable {
public:
    /// Does not ask the server. Throws `invalid_argument_error` for a name that is not 1 to 512 bytes, or options out of range.
    mutex(client& by, std::string_view name, lease_options const& options = {});
};

}  // namespace lockstep
