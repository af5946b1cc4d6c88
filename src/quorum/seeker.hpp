#pragma once

// Somebody in this process who wants a redlock, in the frame of the coroutine that waits for it:
//
//     seeker mine{target, {.deadline = ...}};
//     co_await mine;
//     if (mine.has_it()) co_return mine.take();

#include "lease/awaiter.hpp"
#include "quorum/plan.hpp"

#include <lockstep/redlock_lease.hpp>

#include <memory>

namespace lockstep::quorum {

class grip;

class seeker final : public engine::awaiter {
public:
    struct terms {
        clock::time_point deadline = clock::time_point::max();
        bool waits = true;      ///< false: now or not at all
        unsigned attempts = 0;  ///< how often it is tried for; 0: as often as time allows
    };

    seeker(std::shared_ptr<target const> what, terms how) noexcept : target_(std::move(what)), how_(how) {}
    ~seeker() { withdraw(); }

    bool has_it() const noexcept { return static_cast<bool>(lease_); }
    redlock_lease take() noexcept { return std::move(lease_); }

    // For the room, in turns of home:
    terms const& how() const noexcept { return how_; }
    std::shared_ptr<plan const> const& what() const noexcept { return target_->what; }
    /// It has it; or (null) it does not get it.
    void finish(grip* granted) noexcept;

    grip* own = nullptr;  ///< its own attempt, where it does not wait with the others
    unsigned tries = 0;
    bool was_silent = false;  ///< for most of its time nodes were being asked, and fewer than a majority of them answered

private:
    std::shared_ptr<detail::core> const& owner() const noexcept override;
    clock::time_point deadline() const noexcept override { return how_.deadline; }
    void enter() override;
    void leave() noexcept override;
    void time_is_over() noexcept override;

    std::shared_ptr<target const> target_;
    terms how_;
    redlock_lease lease_;
};

}  // namespace lockstep::quorum
