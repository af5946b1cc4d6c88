#pragma once

// The machinery of task.hpp. Nothing here is for users.

#include <lockstep/detail/cancellation.hpp>
#include <lockstep/error.hpp>

#include <condition_variable>
#include <coroutine>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
#include <new>
#include <optional>
#include <stop_token>
#include <type_traits>
#include <utility>

namespace lockstep {

template <class T = void>
class task;
class reply;

namespace detail {

struct nothing {};
struct result_is_set {};

/// What a task's value is kept in: `void` has none.
template <class T>
using stored = std::optional<std::conditional_t<std::is_void_v<T>, nothing, T>>;

/// Frames of finished coroutines are kept for the next ones, a bounded number of each size: steady use allocates nothing.
void* allocate_frame(std::size_t size);
void free_frame(void* memory, std::size_t size) noexcept;

struct pooled_frames {
    static void* operator new(std::size_t size) { return allocate_frame(size); }
    static void operator delete(void* memory, std::size_t size) noexcept { free_frame(memory, size); }
};

/// For requests, of which very many may be parked: a coroutine whose first parameter has a tail (the bytes of a request) gets room for
/// it behind its frame, in one allocation.
struct tailed_frames {
    template <class First, class... Others>
        requires requires(First& first, char* at) { first.put_tail(at); }
    static void* operator new(std::size_t frame, First& first, Others const&...) {
        auto* const memory = static_cast<char*>(::operator new(frame + first.tail_size()));
        first.put_tail(memory + frame);
        return memory;
    }
    static void* operator new(std::size_t frame) { return ::operator new(frame); }
    static void operator delete(void* memory) noexcept { ::operator delete(memory); }
};

class promise_base {
public:
    std::suspend_always initial_suspend() const noexcept { return {}; }

    cancel_state* cancellation() const noexcept { return cancel_; }
    void use_cancellation(cancel_state* state) noexcept { cancel_ = state; }
    void resume_afterwards(std::coroutine_handle<> awaiting) noexcept { awaiting_ = awaiting; }
    bool is_awaited() const noexcept { return awaiting_ != nullptr; }

    // A task that ends while it is being started, on the same thread, tells the starter, which then goes on by itself: that costs no
    // stack, also where the compiler makes no tail calls. In every other case the thread that ends the task goes on with the awaiting
    // coroutine. Only the address of the promise is compared: where the task was not ended here, it may be gone already.
    template <class Resume>
    static bool ends_while_starting(promise_base const* promise, Resume resume) {
        auto const* const outer = std::exchange(starting, promise);
        resume();
        return std::exchange(starting, outer) == nullptr;
    }

    struct final_awaiter {
        bool await_ready() const noexcept { return false; }
        template <class Promise>
        std::coroutine_handle<> await_suspend(std::coroutine_handle<Promise> ended) const noexcept {
            promise_base& promise = ended.promise();
            if (starting != &promise) return promise.awaiting_;
            starting = nullptr;
            return std::noop_coroutine();
        }
        void await_resume() const noexcept {}
    };
    final_awaiter final_suspend() const noexcept { return {}; }

private:
    static inline constinit thread_local promise_base const* starting = nullptr;

    std::coroutine_handle<> awaiting_;
    cancel_state* cancel_ = nullptr;
};

template <class T>
class task_promise final : public promise_base,
                           public std::conditional_t<std::is_same_v<T, reply>, tailed_frames, pooled_frames> {
public:
    task_promise() noexcept {}
    ~task_promise() {
        if (holds_ == holding::value) value_.~T();
        if (holds_ == holding::error) error_.~exception_ptr();
    }

    task<T> get_return_object() noexcept { return task<T>{std::coroutine_handle<task_promise>::from_promise(*this)}; }
    void unhandled_exception() noexcept { set_error(std::current_exception()); }
    template <class U>
        requires std::is_constructible_v<T, U&&>
    void return_value(U&& value) {
        std::construct_at(std::addressof(value_), std::forward<U>(value));
        holds_ = holding::value;
    }
    /// For operations that put their result here themselves, so that it is not kept twice.
    void return_value(result_is_set) const noexcept {}
    void set_error(std::exception_ptr error) noexcept {
        if (holds_ == holding::value) value_.~T();  // the destructor of a local threw after the co_return
        std::construct_at(&error_, std::move(error));
        holds_ = holding::error;
    }

    T take() {
        if (holds_ == holding::error) std::rethrow_exception(std::move(error_));
        return std::move(value_);
    }

private:
    // By hand instead of a variant, which keeps its tag behind the value: tens of thousands of these may be parked.
    enum class holding : std::uint8_t { nothing, value, error } holds_ = holding::nothing;
    union {
        T value_;
        std::exception_ptr error_;
    };
};

template <>
class task_promise<void> final : public promise_base, public pooled_frames {
public:
    inline task<void> get_return_object() noexcept;  // in task.hpp, where task<void> is complete
    void unhandled_exception() noexcept { error_ = std::current_exception(); }
    void return_void() const noexcept {}
    void take() {
        if (error_) std::rethrow_exception(std::move(error_));
    }

private:
    std::exception_ptr error_;
};

/// The cancellation of the coroutine that awaits, where it has one.
template <class Promise>
cancel_state* cancellation_of(std::coroutine_handle<Promise> awaiting) noexcept {
    if constexpr (std::is_base_of_v<promise_base, Promise>) return awaiting.promise().cancellation();
    return nullptr;
}

template <class T>
struct task_awaiter {
    std::coroutine_handle<task_promise<T>> frame;

    bool await_ready() const noexcept { return false; }

    template <class Promise>
    bool await_suspend(std::coroutine_handle<Promise> awaiting) const {
        return enter(awaiting, cancellation_of(awaiting));
    }
    bool enter(std::coroutine_handle<> awaiting, cancel_state* cancel) const {
        if (!frame || frame.promise().is_awaited()) {
            throw invalid_argument_error("a task can be awaited once only, and not after it was moved from");
        }
        auto& promise = frame.promise();
        promise.resume_afterwards(awaiting);
        promise.use_cancellation(cancel);
        return !promise_base::ends_while_starting(&promise, [started = frame] { started.resume(); });
    }
    T await_resume() const { return frame.promise().take(); }
};

struct task_access {
    template <class T>
    static std::coroutine_handle<task_promise<T>> frame(task<T> const& work) noexcept {
        return work.frame_;
    }
};

/// Awaits a task under a cancellation of its own, which also obeys the awaiting coroutine's. Null: under the latter alone.
template <class T>
class under_awaiter {
public:
    under_awaiter(task<T> work, std::shared_ptr<cancel_state> state) : state_(std::move(state)), work_(std::move(work)) {}

    bool await_ready() const noexcept { return false; }
    template <class Promise>
    bool await_suspend(std::coroutine_handle<Promise> awaiting) {
        auto* const outer = cancellation_of(awaiting);
        if (state_) link_.link(outer, state_);
        return task_awaiter<T>{task_access::frame(work_)}.enter(awaiting, state_ ? state_.get() : outer);
    }
    T await_resume() {
        link_.unlink();
        return task_access::frame(work_).promise().take();
    }

private:
    std::shared_ptr<cancel_state> state_;  // first: what is parked in the task's frame refers to it until that is gone
    task<T> work_;
    cancel_link link_;
};

template <class T>
under_awaiter<T> under(task<T> work, std::shared_ptr<cancel_state> state) {
    return {std::move(work), std::move(state)};
}

/// Turns a stop token into a cancellation. Without a stop source behind the token there is none.
class stop_bridge {
public:
    explicit stop_bridge(std::stop_token token)
        : state_(token.stop_possible() ? std::make_shared<cancel_state>() : nullptr), callback_(std::move(token), request{state_}) {}
    std::shared_ptr<cancel_state> const& state() const noexcept { return state_; }  ///< null: none

private:
    struct request {
        std::shared_ptr<cancel_state> state;
        void operator()() const noexcept { state->request(); }
    };
    std::shared_ptr<cancel_state> state_;
    std::stop_callback<request> callback_;
};

/// A coroutine that belongs to nobody and frees itself.
struct root {
    struct promise_type : promise_base, pooled_frames {
        root get_return_object() const noexcept { return {}; }
        std::suspend_never initial_suspend() const noexcept { return {}; }
        std::suspend_never final_suspend() const noexcept { return {}; }
        void return_void() const noexcept {}
        void unhandled_exception() const noexcept { std::terminate(); }  // `done` threw
    };
};

template <class T, class F>
root run_root(task<T> work, std::shared_ptr<cancel_state> state, F done) {
    std::exception_ptr error;
    stored<T> value;
    try {
        // Moved into the awaiter so that the task's frame, and all it keeps alive, is gone before anybody hears of the end.
        if constexpr (std::is_void_v<T>) {
            co_await under(std::move(work), state);
            value.emplace();
        } else {
            value.emplace(co_await under(std::move(work), state));
        }
    } catch (...) {
        error = std::current_exception();
    }
    state.reset();
    done(std::move(error), std::move(value));
}

/// Where a blocking caller waits.
template <class T>
class blocking_result {
public:
    void set(std::exception_ptr error, stored<T> value) {
        // Notified under the lock: this object may be gone as soon as the waiter can see the result.
        std::lock_guard const guard{mutex_};
        error_ = std::move(error);
        if (value) value_.emplace(std::move(*value));
        ready_ = true;
        changed_.notify_one();
    }
    T take() {
        std::unique_lock guard{mutex_};
        changed_.wait(guard, [this] { return ready_; });
        if (error_) std::rethrow_exception(error_);
        if constexpr (!std::is_void_v<T>) return std::move(*value_);
    }

private:
    std::mutex mutex_;
    std::condition_variable changed_;
    bool ready_ = false;
    std::exception_ptr error_;
    stored<T> value_;
};

}  // namespace detail
}  // namespace lockstep
