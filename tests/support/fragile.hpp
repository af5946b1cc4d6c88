// A coroutine that somebody else may destroy while it waits.
//
//     fragile wait(client& on) { co_await on.async_command("PING"); }
#pragma once

#include <coroutine>
#include <utility>

namespace lockstep::test {

class fragile {
public:
    struct promise_type {
        fragile get_return_object() { return fragile{std::coroutine_handle<promise_type>::from_promise(*this)}; }
        std::suspend_never initial_suspend() noexcept { return {}; }
        std::suspend_always final_suspend() noexcept { return {}; }
        void return_void() {}
        void unhandled_exception() {}
    };

    explicit fragile(std::coroutine_handle<promise_type> frame) : frame_{frame} {}
    fragile(fragile&& other) noexcept : frame_{std::exchange(other.frame_, nullptr)} {}
    fragile& operator=(fragile&& other) noexcept {
        std::swap(frame_, other.frame_);
        return *this;
    }
    ~fragile() { destroy(); }

    void destroy() {
        if (auto const frame = std::exchange(frame_, nullptr)) frame.destroy();
    }
    [[nodiscard]] bool waits() const { return frame_ && !frame_.done(); }

private:
    std::coroutine_handle<promise_type> frame_;
};

}  // namespace lockstep::test
