#pragma once

// co_await pause{core, time}: goes on in a turn, after so long (0: in the next one); a cancellation ends it early with `cancelled_error`.

#include "lease/awaiter.hpp"

#include <chrono>
#include <memory>
#include <utility>

namespace lockstep::engine {

class pause final : public awaiter {
public:
    pause(std::shared_ptr<detail::core> owner, std::chrono::milliseconds time) noexcept : owner_(std::move(owner)), time_(time) {}
    ~pause() { withdraw(); }

private:
    std::shared_ptr<detail::core> const& owner() const noexcept override { return owner_; }
    clock::time_point deadline() const noexcept override { return time_.count() == 0 ? clock::time_point::max() : since() + time_; }
    void enter() override;
    void time_is_over() noexcept override { resume_soon(); }

    std::shared_ptr<detail::core> owner_;
    std::chrono::milliseconds time_;
};

}  // namespace lockstep::engine
