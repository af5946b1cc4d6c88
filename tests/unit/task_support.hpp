// Places to wait without any I/O, for the tests of tasks: an event that the test sets by hand, and a thread to set it on.
#pragma once

#include <lockstep/error.hpp>
#include <lockstep/task.hpp>

#include <condition_variable>
#include <coroutine>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

namespace lockstep::test {

// A thread that runs what it is given, in order. Its destructor runs what is left.
class worker {
public:
    worker() : thread_([this] { run(); }) {}
    ~worker() {
        post([this] { ends_ = true; });
        thread_.join();
    }
    worker(worker const&) = delete;

    void post(std::function<void()> work) {
        std::lock_guard const guard{mutex_};
        waiting_.push_back(std::move(work));
        changed_.notify_one();
    }
    std::thread::id id() const noexcept { return thread_.get_id(); }

private:
    void run() {
        detail::io_thread_mark const mark;
        while (!ends_) {
            std::unique_lock guard{mutex_};
            changed_.wait(guard, [this] { return !waiting_.empty(); });
            auto const work = std::move(waiting_.front());
            waiting_.pop_front();
            guard.unlock();
            work();
        }
    }

    std::mutex mutex_;
    std::condition_variable changed_;
    std::deque<std::function<void()>> waiting_;
    bool ends_ = false;  // of the thread itself
    std::thread thread_;
};

// One coroutine waits, `set` resumes it. Belongs to one thread: that of its worker, or without one that of the test. A stop request
// ends the wait with `cancelled_error`; without a worker it has to be delivered by the test.
class event {
public:
    event() = default;
    explicit event(worker& home) noexcept : home_(&home) {}
    event(event const&) = delete;

    class waiter final : detail::parked {
    public:
        explicit waiter(event& at) noexcept : at_(at) {}
        waiter(waiter const&) = delete;
        ~waiter() { leave(); }

        bool await_ready() const noexcept { return false; }
        template <class Promise>
        bool await_suspend(std::coroutine_handle<Promise> awaiting) {
            awaiting_ = awaiting;
            cancel_ = detail::cancellation_of(awaiting);
            if (at_.home_ == nullptr) return arrive();
            at_.home_->post([this] {
                if (!arrive()) awaiting_.resume();
            });
            return true;
        }
        void await_resume() const {
            if (cancelled_) throw cancelled_error("the wait was cancelled");
        }

    private:
        friend class event;

        bool arrive() {
            if (cancel_ != nullptr && !cancel_->park(*this)) {
                cancelled_ = true;
                return false;
            }
            is_parked_ = cancel_ != nullptr;
            if (at_.is_set_) {
                leave();
                return false;
            }
            at_.waiting_ = this;
            return true;
        }
        void leave() noexcept {
            if (at_.waiting_ == this) at_.waiting_ = nullptr;
            if (std::exchange(is_parked_, false)) cancel_->unpark();
        }
        void end() {
            leave();
            awaiting_.resume();
        }
        void cancel_requested(std::shared_ptr<detail::cancel_state> state) noexcept override {
            if (at_.home_ != nullptr) {
                at_.home_->post([state = std::move(state)] { state->deliver(); });
            } else {
                at_.asked_ = std::move(state);
            }
        }
        void cancel_here() noexcept override {
            is_parked_ = false;
            cancelled_ = true;
            end();
        }

        event& at_;
        std::coroutine_handle<> awaiting_;
        detail::cancel_state* cancel_ = nullptr;
        bool is_parked_ = false;
        bool cancelled_ = false;
    };

    waiter operator co_await() noexcept { return waiter{*this}; }

    void set() {
        if (home_ == nullptr) return set_here();
        home_->post([this] { set_here(); });
    }
    // From another thread, at any time: the event lives until it is set.
    static void set_from_elsewhere(std::shared_ptr<event> const& at) {
        at->home_->post([at] { at->set_here(); });
    }
    bool has_waiter() const noexcept { return waiting_ != nullptr; }
    bool was_asked_to_stop() const noexcept { return asked_ != nullptr; }
    void deliver() {
        if (auto const state = std::exchange(asked_, nullptr)) state->deliver();
    }

private:
    void set_here() {
        is_set_ = true;
        if (waiting_ != nullptr) waiting_->end();
    }

    worker* home_ = nullptr;
    waiter* waiting_ = nullptr;
    bool is_set_ = false;
    std::shared_ptr<detail::cancel_state> asked_;
};

inline task<void> pass(event& at) { co_await at; }

template <class T>
task<T> after(event& at, T value) {
    co_await at;
    co_return value;
}

template <class T>
task<T> immediately(T value) {
    co_return value;
}

inline task<int> failing_after(event& at) {
    co_await at;
    throw timeout_error("too late");
}

// What `start` told, kept for the test.
template <class T>
struct outcome {
    int calls = 0;
    std::exception_ptr error;
    std::optional<T> value;

    auto callback() {
        return [this](std::exception_ptr problem, std::optional<T> result) {
            ++calls;
            error = std::move(problem);
            value = std::move(result);
        };
    }
};

inline bool is_cancelled(std::exception_ptr const& problem) {
    if (!problem) return false;
    try {
        std::rethrow_exception(problem);
    } catch (cancelled_error const&) {
        return true;
    } catch (...) {
        return false;
    }
}

}  // namespace lockstep::test
