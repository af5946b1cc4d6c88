#pragma once

/// `redlock_lease`: a lock held on a majority of nodes, until it is released, lost or destroyed. See <lockstep/redlock.hpp>.
///
/// It belongs to whoever has the object, not to a thread. Destruction releases: the requests are queued and the destructor returns at once;
/// they are owed to nodes that can't be reached for as long as the lock could live there. `release()` waits for a majority. Whatever is
/// the last to go of some `redlock_nodes`, their locks and leases waits a second at most for what is queued, and drops the rest, which
/// ends with its ttl; on a thread that does the nodes' I/O it does not wait, and what is queued goes on.
///
/// Threads: const functions from any thread; of the others one at a time, and the next when its task has ended.

#include <lockstep/task.hpp>

#include <chrono>
#include <cstdint>
#include <memory>
#include <stop_token>
#include <string>

namespace lockstep {

namespace quorum {
class grip;
struct anchor;
struct target;
}  // namespace quorum

class [[nodiscard]] redlock_lease {
public:
    /// Holds nothing.
    redlock_lease() noexcept = default;
    redlock_lease(redlock_lease&& other) noexcept;
    redlock_lease& operator=(redlock_lease&& other) noexcept;
    ~redlock_lease();

    /// False when there is nothing to release: default, moved from, released. A lost lease is still true: see `valid`.
    explicit operator bool() const noexcept { return held_ != nullptr; }

    /// Still ours, as far as can be known here: not lost, and its time is not over.
    bool valid() const noexcept;
    /// How long it stays valid if it is not extended any more; 0 when it is not valid.
    std::chrono::milliseconds remaining() const noexcept;
    /// The value of the keys, random: nobody else can release or extend them.
    std::string token() const;
    /// Grows with every hold of its resources, while nodes keep their data. Throws `invalid_argument_error` unless the lock was made with
    /// `.fence = true`: without the second round there is no number that grows.
    std::uint64_t fence() const;

    /// Trips when the majority is lost, or could not be asked in time: then a tenth of the ttl before others can have it, which is also
    /// when it is not valid any more. Callbacks run on a thread of Lockstep's own.
    std::stop_token stop_token() const;
    /// Trips earlier: an extension was missed.
    std::stop_token at_risk_token() const;

    /// Gives it back on all nodes and waits until a majority has done so. Throws `lease_lost_error` if it was lost before, `not_held_error`
    /// on an empty one, `unavailable_error` when too few answer within a second (or twice `node_timeout`) to know: what is left there then
    /// ends with its ttl, or earlier when the nodes are back. It is empty afterwards, whatever was thrown.
    void release();
    task<void> async_release();

    /// Moves its end to `length` from now (10 ms to 30 days), on a majority. Throws `lease_lost_error`, or `unavailable_error` when no majority
    /// answered: then its end is as before, or `length` from the call if that is earlier, because nodes may have done it. What is extended
    /// in the background after that is extended to `ttl`, and never to less than it has.
    void extend(std::chrono::milliseconds length);
    task<void> async_extend(std::chrono::milliseconds length);

private:
    friend class quorum::grip;
    redlock_lease(quorum::grip* held, std::shared_ptr<quorum::anchor> nodes) noexcept;
    quorum::grip& required() const;

    quorum::grip* held_ = nullptr;
    std::shared_ptr<quorum::anchor> nodes_;
};

}  // namespace lockstep
