#pragma once

#include <lockstep/task.hpp>

#include <coroutine>

namespace lockstep::detail {

/// `co_await own_cancellation{}`: that of the coroutine itself; null where it has none. Does not suspend.
struct own_cancellation {
    cancel_state* state = nullptr;

    bool await_ready() const noexcept { return false; }
    template <class Promise>
    bool await_suspend(std::coroutine_handle<Promise> awaiting) noexcept {
        state = cancellation_of(awaiting);
        return false;
    }
    cancel_state* await_resume() const noexcept { return state; }
};

}  // namespace lockstep::detail
