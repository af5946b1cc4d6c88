#pragma once

// co_await pause{core, time}: goes on in a turn, after so long (0: in the next one); a cancellation ends it early with `cancelled_error`.

#include "redis/reactor.hpp"

#include <lockstep/detail/task_promise.hpp>

#include <chrono>
#include <coroutine>
#include <memory>

namespace lockstep::detail {
class core;
}

namespace lockstep::engine {

class pause final : public redis::arrival, detail::parked {
public:
    pause(std::shared_ptr<detail::core> owner, std::chrono::milliseconds time) noexcept;
    ~pause();
    pause(pause const&) = delete;

    bool await_ready() const noexcept { return false; }
    template <class Promise>
    bool await_suspend(std::coroutine_handle<Promise> awaiting) {
        awaiting_ = awaiting;
        cancel_ = detail::cancellation_of(awaiting);
        return begin();
    }
    /// In a turn: the client closes.
    void close() noexcept { end(true); }
    void await_resume() const {
        if (cancelled_) throw cancelled_error("waiting was cancelled");
    }

private:
    bool begin();
    void arrive() noexcept override;
    void fire() noexcept override { end(false); }
    void cancel_requested(std::shared_ptr<detail::cancel_state> state) noexcept override;
    void cancel_here() noexcept override;
    void end(bool cancelled) noexcept;

    std::shared_ptr<detail::core> owner_;
    std::chrono::milliseconds time_;
    std::coroutine_handle<> awaiting_;
    detail::cancel_state* cancel_ = nullptr;
    bool begun_ = false;
    bool parked_ = false;
    bool cancelled_ = false;
};

}  // namespace lockstep::engine
