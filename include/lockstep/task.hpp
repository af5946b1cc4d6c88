#pragma once

/// `task<T>`: what every `async_` function returns.
///
/// Lazy (nothing happens until it is awaited or started), move-only, awaited at most once, in any C++20 coroutine:
///
///     my::task<void> work(lockstep::client& client) {
///         auto value = co_await client.async_command("GET", "key");
///     }
///
/// The awaiting coroutine resumes on the thread that completed the operation, which is the client's I/O thread for Lockstep's own
/// operations: it must not block there (a blocking form called there throws `would_deadlock_error`). `<lockstep/asio.hpp>`
/// resumes on an executor instead. Errors are thrown by the `co_await`.
///
/// A task that was started ends by completing. Destroying a coroutine that awaits one unlinks it: nothing resumes later;
/// what was already sent to the server may still run there. Not safe: destroying it while another thread resumes it.
///
/// Outside of coroutines: `sync_wait` blocks, `start` takes a callback. `with_stop_token` ends a task with `cancelled_error`.

#include <lockstep/detail/gathering.hpp>
#include <lockstep/detail/task_promise.hpp>

#include <cstddef>
#include <optional>
#include <stop_token>
#include <type_traits>
#include <utility>
#include <vector>

namespace lockstep {

template <class T>
class [[nodiscard]] task {
    static_assert(!std::is_reference_v<T>, "a task outlives the expression that made it: return a value or a pointer");

public:
    using value_type = T;
    using promise_type = detail::task_promise<T>;

    task() noexcept = default;
    task(task&& other) noexcept : frame_(std::exchange(other.frame_, nullptr)) {}
    task& operator=(task&& other) noexcept {
        if (this != &other) {
            reset();
            frame_ = std::exchange(other.frame_, nullptr);
        }
        return *this;
    }
    ~task() { reset(); }

    /// False after it was moved from.
    explicit operator bool() const noexcept { return frame_ != nullptr; }

    auto operator co_await() && noexcept { return detail::task_awaiter<T>{frame_}; }

private:
    friend promise_type;
    friend struct detail::task_access;
    explicit task(std::coroutine_handle<promise_type> frame) noexcept : frame_(frame) {}
    void reset() noexcept {
        if (auto const frame = std::exchange(frame_, nullptr)) frame.destroy();
    }

    std::coroutine_handle<promise_type> frame_;
};

inline task<void> detail::task_promise<void>::get_return_object() noexcept {
    return task<void>{std::coroutine_handle<task_promise>::from_promise(*this)};
}

/// Runs a task to its end on this thread and returns its value or throws its error.
/// A stop token ends it early with `cancelled_error`. Throws `would_deadlock_error` on an I/O thread.
template <class T>
T sync_wait(task<T> work, std::stop_token token = {}) {
    detail::require_blocking_is_allowed();
    detail::blocking_result<T> result;
    detail::stop_bridge const bridge{std::move(token)};
    detail::run_root(std::move(work), bridge.state(), [&result](std::exception_ptr error, detail::stored<T> value) {
        result.set(std::move(error), std::move(value));
    });
    return result.take();
}

/// Starts a task. `done(std::exception_ptr, std::optional<T>)` (for void: `done(std::exception_ptr)`) is called once, on the
/// thread that completed it; it must not throw.
template <class T, class F>
void start(task<T> work, F done) {
    detail::run_root(std::move(work), nullptr, [done = std::move(done)](std::exception_ptr error, detail::stored<T> value) mutable {
        if constexpr (std::is_void_v<T>) {
            done(std::move(error));
        } else {
            done(std::move(error), std::move(value));
        }
    });
}

/// The same task, ended by `cancelled_error` when a stop is requested.
template <class T>
task<T> with_stop_token(task<T> work, std::stop_token token) {
    detail::stop_bridge const bridge{std::move(token)};
    co_return co_await detail::under(std::move(work), bridge.state());
}

/// Runs all at once and ends when all have ended. If one fails, the others are asked to stop and the first error is thrown.
template <class T>
task<std::vector<T>> when_all(std::vector<task<T>> works) {
    detail::gathering<T> gathering{std::move(works)};
    co_await gathering.all();
    co_return gathering.take_all();
}

task<void> when_all(std::vector<task<void>> works);

/// What `when_any` returns: which task ended first, and its value.
template <class T>
struct first_of {
    std::size_t index;
    T value;
};

/// Runs all at once; when the first ends (by a value or an error) the others are asked to stop, and all have ended on return.
template <class T>
task<first_of<T>> when_any(std::vector<task<T>> works) {
    detail::gathering<T> gathering{std::move(works)};
    co_await gathering.any();
    auto const index = gathering.winner();
    co_return first_of<T>{index, gathering.take(index)};
}

task<std::size_t> when_any(std::vector<task<void>> works);

}  // namespace lockstep
