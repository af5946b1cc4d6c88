#pragma once

// A coroutine that waits until what its lease asked for is done: a release or an extension.

#include "lease/awaiter.hpp"
#include "quorum/grip.hpp"

#include <algorithm>
#include <chrono>
#include <coroutine>
#include <exception>

namespace lockstep::quorum {

class caller final : public engine::awaiter {
public:
    enum class wish : std::uint8_t { release, extend };

    caller(grip& held, wish what, std::chrono::milliseconds length = {}) noexcept : held_(held), length_(length), wish_(what) { held_.keep(); }
    ~caller();

    /// It ends with the request, which is not cancelled.
    bool await_suspend(std::coroutine_handle<> awaiting) { return begin(awaiting, nullptr); }

    // In turns of home:
    void finish(std::exception_ptr problem) noexcept { fail(std::move(problem)); }

private:
    std::shared_ptr<detail::core> const& owner() const noexcept override;
    clock::time_point deadline() const noexcept override;
    void enter() override;
    void leave() noexcept override { held_.forget(*this); }
    void time_is_over() noexcept override;

    grip& held_;
    std::chrono::milliseconds length_;
    wish wish_;
};

}  // namespace lockstep::quorum
