#pragma once

// A coroutine that waits until what its lease asked for is done: a release, an extension, a detachment, another amount.
//
//     caller mine{held, tenancy, caller::wish::release};
//     co_await mine;

#include "lease/hold.hpp"

#include <lockstep/detail/task_promise.hpp>

#include <coroutine>
#include <exception>
#include <utility>

namespace lockstep::engine {

class caller final : public redis::arrival {
public:
    enum class wish : std::uint8_t { release, extend, detach, change };

    caller(hold& held, std::uint64_t tenancy, wish what, std::chrono::milliseconds length = {}, std::int64_t amount = 0) noexcept
        : hold_(held), tenancy_(tenancy), length_(length), amount_(amount), wish_(what) {
        hold_.keep();
    }
    ~caller();
    caller(caller const&) = delete;

    bool await_ready() const noexcept { return false; }
    bool await_suspend(std::coroutine_handle<> awaiting) {
        awaiting_ = awaiting;
        return begin();
    }
    void await_resume() const {
        if (problem_) std::rethrow_exception(problem_);
    }

    // In turns:
    void finish(std::exception_ptr problem) noexcept;
    wish what() const noexcept { return wish_; }
    std::int64_t amount() const noexcept { return amount_; }

    lease changed;  ///< to another amount: the lease from now on; empty: it could not be changed

private:
    enum class stage : std::uint8_t { outside, arriving, inside, resuming };

    bool begin();
    void arrive() noexcept override;
    void fire() noexcept override {}

    hold& hold_;
    std::uint64_t tenancy_;
    std::chrono::milliseconds length_;
    std::int64_t amount_;
    std::coroutine_handle<> awaiting_;
    std::exception_ptr problem_;
    wish wish_;
    stage stage_ = stage::outside;
};

}  // namespace lockstep::engine
