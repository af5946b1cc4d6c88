#pragma once

// Somebody in this process who wants something held, in the frame of the coroutine that waits for it:
//
//     waiter mine{target, {.deadline = ...}};
//     co_await mine;
//     if (mine.has_it()) co_return mine.take();

#include "lease/hold.hpp"
#include "lease/target.hpp"
#include "redis/reactor.hpp"

#include <lockstep/detail/task_promise.hpp>
#include <lockstep/lease.hpp>

#include <coroutine>
#include <exception>
#include <memory>
#include <string>
#include <string_view>

namespace lockstep::engine {

class waiter final : public redis::arrival, detail::parked {
public:
    using clock = redis::reactor::clock;

    struct terms {
        clock::time_point deadline = clock::time_point::max();
        bool queues = true;         ///< false: now or not at all
        std::string_view token{};   ///< to adopt instead; must live as long as this
    };

    waiter(std::shared_ptr<target const> what, terms how) noexcept;
    ~waiter();
    waiter(waiter const&) = delete;

    bool await_ready() const noexcept { return false; }
    template <class Promise>
    bool await_suspend(std::coroutine_handle<Promise> awaiting) {
        awaiting_ = awaiting;
        cancel_ = detail::cancellation_of(awaiting);
        return begin();
    }
    /// Throws when it ended by an error.
    void await_resume() const {
        if (error_) std::rethrow_exception(error_);
    }
    bool has_it() const noexcept { return static_cast<bool>(lease_); }
    lease take() noexcept { return std::move(lease_); }

    // For the room, in turns:
    target const& what() const noexcept { return *target_; }
    std::shared_ptr<target const> const& shared_target() const noexcept { return target_; }
    terms const& how() const noexcept { return how_; }
    clock::time_point since() const noexcept { return since_; }
    /// It has it; or (an empty lease) it does not get it.
    void finish(lease granted) noexcept;
    void fail(errc reason, std::string_view why) noexcept;

    hold* own = nullptr;  ///< its own place at the server, where it does not share one

private:
    enum class stage : std::uint8_t { outside, arriving, inside, resuming };

    bool begin();
    void arrive() noexcept override;  // into the room; then again, to resume
    void fire() noexcept override;    // its time is over
    void cancel_requested(std::shared_ptr<detail::cancel_state> state) noexcept override;
    void cancel_here() noexcept override;
    void leave() noexcept;
    void resume_soon() noexcept;

    std::shared_ptr<target const> target_;
    terms how_;
    clock::time_point since_{};
    std::coroutine_handle<> awaiting_;
    detail::cancel_state* cancel_ = nullptr;
    std::exception_ptr error_;
    lease lease_;
    stage stage_ = stage::outside;
    bool parked_ = false;
};

}  // namespace lockstep::engine
