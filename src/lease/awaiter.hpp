#pragma once

// A coroutine that waits for something of this engine, as an object in its frame. What waiter, visitor, pause and caller share.
//
// It arrives in a turn and enters where it waits. There it gets what it came for, or fails, or its time is over, or it is cancelled: always
// in a turn, and it is resumed at the end of that one. Its frame may be destroyed at any time by any thread: then it leaves.

#include "redis/reactor.hpp"

#include <lockstep/detail/task_promise.hpp>
#include <lockstep/error.hpp>

#include <coroutine>
#include <cstdint>
#include <exception>
#include <memory>
#include <string_view>

namespace lockstep::detail {
class core;
}

namespace lockstep::engine {

class awaiter : public redis::arrival, detail::parked {
public:
    using clock = redis::reactor::clock;

    awaiter(awaiter const&) = delete;

    bool await_ready() const noexcept { return false; }
    template <class Promise>
    bool await_suspend(std::coroutine_handle<Promise> awaiting) {
        return begin(awaiting, detail::cancellation_of(awaiting));
    }
    /// Throws what it failed with.
    void await_resume() const {
        if (error_) std::rethrow_exception(error_);
    }

    // In turns:
    clock::time_point since() const noexcept { return since_; }
    void fail(std::exception_ptr problem) noexcept;
    void fail(errc reason, std::string_view why) noexcept;

protected:
    awaiter() = default;
    ~awaiter() = default;

    /// False: it has failed already. Without `cancel` it can't be cancelled.
    bool begin(std::coroutine_handle<> awaiting, detail::cancel_state* cancel);
    /// First thing in the destructor of the class that can be made.
    void withdraw() noexcept;
    /// It does not wait any more.
    void resume_soon() noexcept;

    // In turns, unless said otherwise:
    virtual std::shared_ptr<detail::core> const& owner() const noexcept = 0;  ///< from any thread
    virtual clock::time_point deadline() const noexcept { return clock::time_point::max(); }
    virtual void enter() = 0;
    /// It gets nothing any more.
    virtual void leave() noexcept {}
    /// After it has left.
    virtual void time_is_over() noexcept {}
    virtual void is_cancelled() noexcept {}

private:
    enum class stage : std::uint8_t { outside, arriving, inside, resuming };

    void arrive() noexcept final;  // to enter; then again, to resume
    void fire() noexcept final;
    void cancel_requested(std::shared_ptr<detail::cancel_state> state) noexcept final;
    void cancel_here() noexcept final;

    clock::time_point since_{};
    std::coroutine_handle<> awaiting_;
    detail::cancel_state* cancel_ = nullptr;
    std::exception_ptr error_;
    stage stage_ = stage::outside;  // in turns; before the first one nobody else knows of it
    bool parked_ = false;
    bool begun_ = false;  // and not resumed; what a destructor on another thread may read while a turn uses the rest
};

}  // namespace lockstep::engine
