#pragma once

/// `lease`: something held, until it is released, lost or destroyed.
///
///     auto lease = mutex.acquire();
///     database.write(row, lease.fence());   // the resource refuses smaller fences than it has seen
///     crunch(lease.stop_token());           // stops before the lease can run out, even when Redis can't be reached
///
/// A lease belongs to whoever has the object, not to a thread: move it where you like. It is renewed by its client in the background.
/// It ends here before it ends at the server: at nine tenths of its ttl since the last renewal was sent, it is lost, on a clock that
/// goes on while the machine sleeps. A lost lease stays lost; somebody else may hold the name from then on.
///
/// Destruction releases: the request is queued and the destructor returns at once; the client owes it until the lease would have
/// ended anyway. `release()` waits for it. Closing the client releases what is held.
///
/// Threads: const functions from any thread; of the others one at a time, and the next when its task has ended. In a child made by fork() a lease does nothing.

#include <lockstep/task.hpp>

#include <chrono>
#include <cstdint>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>

namespace lockstep {

class client;

namespace engine {
class hold;
}

class [[nodiscard]] lease {
public:
    /// Holds nothing.
    lease() noexcept = default;
    lease(lease&& other) noexcept
        : hold_(std::exchange(other.hold_, nullptr)), tenancy_(other.tenancy_), fence_(other.fence_) {}
    lease& operator=(lease&& other) noexcept;
    ~lease();

    /// False when there is nothing to release: default, moved from, released, detached. A lost lease is still true: see `valid`.
    explicit operator bool() const noexcept { return hold_ != nullptr; }

    /// Grows with every new hold of this name, also after failover and expiry. Kept by renewal and re-entry; adopting may raise it.
    std::uint64_t fence() const noexcept { return fence_; }
    /// Still ours, as far as can be known here: not lost, and its time is not over.
    bool valid() const noexcept;
    /// How long it stays valid if no renewal succeeds any more; 0 when it is not valid.
    std::chrono::milliseconds remaining() const noexcept;
    /// What is held.
    std::string name() const;

    /// Trips when the lease is lost. Callbacks run on a thread of Lockstep's own; one that blocks does not stop renewals.
    std::stop_token stop_token() const;
    /// Trips earlier: a renewal was missed, the lease may be lost soon.
    std::stop_token at_risk_token() const;

    /// Gives it back and waits until the server has done so. Throws `lease_lost_error` if it was lost before; `not_held_error` on an
    /// empty lease; `unavailable_error`, or `indeterminate_error` if it may have been done, when the server could not be reached for as long
    /// as the lease could have lasted (5 s at least). It is empty afterwards, whatever was thrown.
    void release();
    task<void> async_release();

    /// Moves its end to `length` from now (10 ms to 30 days): the way to keep a lease that is not renewed. Throws `lease_lost_error`.
    void extend(std::chrono::milliseconds length);
    task<void> async_extend(std::chrono::milliseconds length);

    /// Gives up the object but not the hold: the lease gets a full ttl from now, is not renewed any more, and whoever calls
    /// `adopt` with the token first has it, in any thread, process or program. Throws `lease_lost_error`; whatever it throws, the lease is given back.
    std::string detach();
    task<std::string> async_detach();
    /// Takes over what was detached, with its fence or a larger one. A token works once: afterwards, or too late, `lease_lost_error`.
    static lease adopt(client& by, std::string_view token);
    static task<lease> async_adopt(client& by, std::string_view token);

private:
    friend class engine::hold;
    lease(engine::hold* held, std::uint64_t tenancy, std::uint64_t fence) noexcept : hold_(held), tenancy_(tenancy), fence_(fence) {}
    engine::hold& required() const;

    engine::hold* hold_ = nullptr;
    std::uint64_t tenancy_ = 0;
    std::uint64_t fence_ = 0;
};

}  // namespace lockstep
