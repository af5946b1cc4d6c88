#pragma once

// Somebody in this process who wants something held, in the frame of the coroutine that waits for it:
//
//     waiter mine{target, {.deadline = ...}};
//     co_await mine;
//     if (mine.has_it()) co_return mine.take();

#include "lease/awaiter.hpp"
#include "lease/hold.hpp"
#include "lease/target.hpp"

#include <lockstep/lease.hpp>

#include <memory>
#include <string>
#include <string_view>

namespace lockstep::engine {

class waiter final : public awaiter {
public:
    struct terms {
        clock::time_point deadline = clock::time_point::max();
        bool queues = true;        ///< false: now or not at all
        std::string_view token{};  ///< to adopt instead; must live as long as this
    };

    waiter(std::shared_ptr<target const> what, terms how);
    ~waiter() {
        withdraw();
        hold::drop_unused(lease_);  // its frame is destroyed between the grant and its resumption
    }

    bool has_it() const noexcept { return static_cast<bool>(lease_); }
    lease take() noexcept { return std::move(lease_); }

    // For the room, in turns:
    target const& what() const noexcept { return *target_; }
    std::shared_ptr<target const> const& shared_target() const noexcept { return target_; }
    terms const& how() const noexcept { return how_; }
    /// It has it; or (an empty lease) it does not get it.
    void finish(lease granted) noexcept;

    hold* own = nullptr;  ///< its own place at the server, where it does not share one
    std::unique_ptr<std::string> trace;  ///< what its `trace_scope` said

private:
    std::shared_ptr<detail::core> const& owner() const noexcept override;
    clock::time_point deadline() const noexcept override { return how_.deadline; }
    void enter() override;
    void leave() noexcept override;
    void time_is_over() noexcept override;
    void is_cancelled() noexcept override;

    std::shared_ptr<target const> target_;
    terms how_;
    lease lease_;
};

}  // namespace lockstep::engine
