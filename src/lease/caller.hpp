#pragma once

// A coroutine that waits until what its lease asked for is done: a release, an extension, a detachment, another amount.
//
//     caller mine{held, tenancy, caller::wish::release};
//     co_await mine;

#include "lease/awaiter.hpp"
#include "lease/hold.hpp"

#include <coroutine>
#include <exception>

namespace lockstep::engine {

class caller final : public awaiter {
public:
    enum class wish : std::uint8_t { release, extend, detach, change };

    caller(hold& held, std::uint64_t tenancy, wish what, std::chrono::milliseconds length = {}, std::int64_t amount = 0) noexcept
        : hold_(held), tenancy_(tenancy), length_(length), amount_(amount), wish_(what) {
        hold_.keep();
    }
    ~caller();

    /// It ends with the request, which is not cancelled.
    bool await_suspend(std::coroutine_handle<> awaiting) { return begin(awaiting, nullptr); }

    // In turns:
    void finish(std::exception_ptr problem) noexcept { fail(std::move(problem)); }
    wish what() const noexcept { return wish_; }
    std::int64_t amount() const noexcept { return amount_; }

    lease changed;  ///< to another amount: the lease from now on; empty: it could not be changed

private:
    std::shared_ptr<detail::core> const& owner() const noexcept override;
    void enter() override;
    void leave() noexcept override;

    hold& hold_;
    std::uint64_t tenancy_;
    std::chrono::milliseconds length_;
    std::int64_t amount_;
    wish wish_;
};

}  // namespace lockstep::engine
