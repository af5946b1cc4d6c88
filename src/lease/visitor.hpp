#pragma once

// Somebody in this process who waits at a gate, in the frame of the coroutine that waits:
//
//     visitor mine{gate, {.deadline = ...}};
//     co_await mine;                        // throws when it can't wait any longer
//     if (!mine.outcome()) ...              // its time was over

#include "lease/gate_answer.hpp"
#include "redis/reactor.hpp"

#include <lockstep/detail/task_promise.hpp>

#include <chrono>
#include <coroutine>
#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <string_view>

namespace lockstep::engine {

class gate;

class visitor final : public redis::arrival, detail::parked {
public:
    using clock = redis::reactor::clock;

    struct terms {
        clock::time_point deadline = clock::time_point::max();
        /// The server knew of it when the gate had been told of so many changes; nothing: it begins with a question.
        std::optional<std::uint64_t> changes{};
        bool any_change = false;       ///< free as soon as anything changes, without a question
        std::int64_t generation = -1;  ///< what it waits for the end of; -1: not known yet
        std::string_view hold{};       ///< its own id at the server, where it has one; must live as long as this
    };

    visitor(std::shared_ptr<gate> at, terms how) noexcept;
    ~visitor();
    visitor(visitor const&) = delete;

    bool await_ready() const noexcept { return false; }
    template <class Promise>
    bool await_suspend(std::coroutine_handle<Promise> awaiting) {
        awaiting_ = awaiting;
        cancel_ = detail::cancellation_of(awaiting);
        return begin();
    }
    void await_resume() const {
        if (error_) std::rethrow_exception(error_);
    }
    /// What set it free; nothing: its time was over before.
    std::optional<gate_word> outcome() const noexcept { return outcome_; }

    // For the gate, in turns:
    terms const& how() const noexcept { return how_; }
    clock::time_point since() const noexcept { return since_; }
    void finish(std::optional<gate_word> how) noexcept;
    void fail(errc reason, std::string_view why) noexcept;

    std::uint64_t entry = 0;       ///< how many had come to the gate with it
    std::int64_t generation = -1;  ///< as in the terms, or learnt since

private:
    enum class stage : std::uint8_t { outside, arriving, inside, resuming };

    bool begin();
    void arrive() noexcept override;  // at the gate; then again, to resume
    void fire() noexcept override;    // its time is over
    void cancel_requested(std::shared_ptr<detail::cancel_state> state) noexcept override;
    void cancel_here() noexcept override;
    void resume_soon() noexcept;

    std::shared_ptr<gate> gate_;
    terms how_;
    clock::time_point since_{};
    std::coroutine_handle<> awaiting_;
    detail::cancel_state* cancel_ = nullptr;
    std::exception_ptr error_;
    std::optional<gate_word> outcome_;
    stage stage_ = stage::outside;
    bool parked_ = false;
};

}  // namespace lockstep::engine
