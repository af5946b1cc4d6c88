#pragma once

/// How a request to stop reaches the place where a chain of tasks is parked.
///
/// A chain of tasks that await each other is parked in at most one place at a time. The chain carries a `cancel_state`; the place
/// registers there while it waits. A request may come from any thread; it is handed to the thread that owns the place
/// and ends the wait there, so that completion and cancellation never race.

#include <memory>
#include <mutex>

namespace lockstep::detail {

class cancel_state;

/// A place where a task waits.
class parked {
public:
    /// Called at most once per parking, from any thread, under the state's lock: arrange that the thread which owns this
    /// place calls `state->deliver()`. Must not resume anything itself.
    virtual void cancel_requested(std::shared_ptr<cancel_state> state) noexcept = 0;
    /// Called by `deliver`, without the lock: end the wait now.
    virtual void cancel_here() noexcept = 0;

protected:
    ~parked() = default;
};

class cancel_state : public std::enable_shared_from_this<cancel_state> {
public:
    void request() noexcept;
    bool requested() const noexcept;

    /// False if a stop was requested already: then nothing is registered and the place must not wait.
    bool park(parked& place) noexcept;
    /// The wait is over. On the thread that owns the place.
    void unpark() noexcept;
    /// On the thread that owns the place: ends the wait if it is not over yet.
    void deliver() noexcept;

private:
    mutable std::mutex mutex_;
    bool requested_ = false;
    parked* place_ = nullptr;
};

/// Passes a request of an outer chain on to an inner state, for as long as it lives.
class cancel_link final : parked {
public:
    cancel_link() = default;
    cancel_link(cancel_link const&) = delete;
    ~cancel_link() { unlink(); }
    void link(cancel_state* outer, std::shared_ptr<cancel_state> inner) noexcept;
    void unlink() noexcept;

private:
    void cancel_requested(std::shared_ptr<cancel_state>) noexcept override { inner_->request(); }
    void cancel_here() noexcept override {}

    cancel_state* outer_ = nullptr;
    std::shared_ptr<cancel_state> inner_;
};

/// Does this thread do I/O at the moment, for any client?
bool on_io_thread() noexcept;
/// Throws `would_deadlock_error` on a thread that does Lockstep's I/O: whoever blocks there waits for himself.
void require_blocking_is_allowed();

/// Marks the current thread as one that does I/O while it lives.
class io_thread_mark {
public:
    io_thread_mark() noexcept;
    ~io_thread_mark();
    io_thread_mark(io_thread_mark const&) = delete;

private:
    bool before_;
};

}  // namespace lockstep::detail
