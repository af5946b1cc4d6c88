#pragma once

// Several tasks at once, for `when_all` and `when_any`. Nothing here is for users.

#include <lockstep/detail/task_promise.hpp>

#include <atomic>
#include <cstddef>
#include <vector>

namespace lockstep::detail {

/// One of them, as a coroutine that tells the gathering when it has ended. It tells at its final suspension: the coroutine that
/// is resumed then may destroy this one.
class gathered {
public:
    struct promise_type : promise_base {
        struct final_awaiter {
            bool await_ready() const noexcept { return false; }
            std::coroutine_handle<> await_suspend(std::coroutine_handle<promise_type> ended) const noexcept {
                return ended.promise().last() ? ended.promise().awaiting : std::noop_coroutine();
            }
            void await_resume() const noexcept {}
        };
        gathered get_return_object() noexcept { return gathered{std::coroutine_handle<promise_type>::from_promise(*this)}; }
        final_awaiter final_suspend() const noexcept { return {}; }
        void return_void() const noexcept {}
        void unhandled_exception() const noexcept { std::terminate(); }  // the body catches everything
        bool last() noexcept { return pending->fetch_sub(1, std::memory_order_acq_rel) == 1; }

        std::atomic<std::size_t>* pending = nullptr;
        std::coroutine_handle<> awaiting;
    };

    gathered(gathered&& other) noexcept : frame_(std::exchange(other.frame_, nullptr)) {}
    ~gathered() {
        if (frame_) frame_.destroy();
    }
    void begin(std::atomic<std::size_t>& pending, std::coroutine_handle<> awaiting, cancel_state& cancel) const {
        frame_.promise().pending = &pending;
        frame_.promise().awaiting = awaiting;
        frame_.promise().use_cancellation(&cancel);
        frame_.resume();
    }

private:
    explicit gathered(std::coroutine_handle<promise_type> frame) noexcept : frame_(frame) {}
    std::coroutine_handle<promise_type> frame_;
};

template <class T>
class gathering final : parked {
public:
    explicit gathering(std::vector<task<T>> works) : works_(std::move(works)), values_(works_.size()), pending_(works_.size() + 1) {
        if (works_.empty()) throw invalid_argument_error("when_all and when_any need at least one task");
        // A chain parks in one place, and these are several chains: a state for each.
        for (std::size_t i = 0; i != works_.size(); ++i) stops_.push_back(std::make_shared<cancel_state>());
    }
    ~gathering() { leave(); }
    gathering(gathering const&) = delete;

    struct awaiter {
        gathering& self;

        bool await_ready() const noexcept { return false; }
        template <class Promise>
        bool await_suspend(std::coroutine_handle<Promise> awaiting) const {
            return self.begin(awaiting, cancellation_of(awaiting));
        }
        void await_resume() const noexcept { self.leave(); }
    };
    /// To be awaited once: ends when all have ended.
    awaiter all() noexcept { return {*this}; }
    /// The same, but the first to end makes the others stop.
    awaiter any() noexcept {
        first_ends_all_ = true;
        return {*this};
    }

    std::size_t winner() const noexcept { return winner_; }
    void check() const {
        if (error_) std::rethrow_exception(error_);
    }
    auto take(std::size_t index) {
        check();
        return std::move(*values_[index]);
    }
    std::vector<T> take_all()
        requires(!std::is_void_v<T>)
    {
        check();
        std::vector<T> values;
        values.reserve(values_.size());
        for (auto& value : values_) values.push_back(std::move(*value));
        return values;
    }

private:
    bool begin(std::coroutine_handle<> awaiting, cancel_state* outer) {
        if (outer != nullptr) {
            if (outer->park(*this)) {
                outer_ = outer;
            } else {
                stop_all();
            }
        }
        children_.reserve(works_.size());
        for (std::size_t i = 0; i != works_.size(); ++i) children_.push_back(run(this, i));
        for (std::size_t i = 0; i != children_.size(); ++i) children_[i].begin(pending_, awaiting, *stops_[i]);
        return pending_.fetch_sub(1, std::memory_order_acq_rel) != 1;
    }

    static gathered run(gathering* self, std::size_t index) {
        std::exception_ptr error;
        stored<T> value;
        try {
            // Taken into this frame: it goes when it has ended, and in any case before the state that it is parked in.
            auto work = std::move(self->works_[index]);
            if constexpr (std::is_void_v<T>) {
                co_await std::move(work);
                value.emplace();
            } else {
                value.emplace(co_await std::move(work));
            }
        } catch (...) {
            error = std::current_exception();
        }
        self->ended(index, std::move(error), std::move(value));
    }

    void ended(std::size_t index, std::exception_ptr error, stored<T> value) {
        bool const failed = error != nullptr;
        {
            std::lock_guard const guard{mutex_};
            if (value) values_[index].emplace(std::move(*value));
            if (winner_ != none || !(failed || first_ends_all_)) return;
            winner_ = index;
            error_ = std::move(error);
        }
        stop_all();
    }

    void stop_all() noexcept {
        for (auto const& state : stops_) state->request();
    }
    void leave() noexcept {
        if (auto* const outer = std::exchange(outer_, nullptr)) outer->unpark();
    }
    void cancel_requested(std::shared_ptr<cancel_state>) noexcept override { stop_all(); }
    void cancel_here() noexcept override {}

    static constexpr std::size_t none = static_cast<std::size_t>(-1);

    std::vector<task<T>> works_;
    std::vector<stored<T>> values_;
    std::atomic<std::size_t> pending_;
    std::vector<std::shared_ptr<cancel_state>> stops_;
    cancel_state* outer_ = nullptr;
    bool first_ends_all_ = false;
    std::mutex mutex_;
    std::exception_ptr error_;
    std::size_t winner_ = none;
    std::vector<gathered> children_;  // last: destroyed first, while what they refer to is still there
};

}  // namespace lockstep::detail
