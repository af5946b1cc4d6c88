#pragma once

/// `later`: thrown by a handler to postpone its work ("snooze").
///
///     worker.handle<order>("charge", [](order const& order) {
///         if (!bank.is_open()) throw lockstep::later{10min};
///         charge(order);
///     });
///
/// The entry, item or job is delivered again after the delay, to any consumer or worker. That counts neither as a failure nor as a delivery, so it may be
/// repeated without limit.

#include <algorithm>
#include <chrono>
#include <exception>

namespace lockstep {

class later final : public std::exception {
public:
    /// A negative delay counts as none, one of more than 10 years as 10 years.
    explicit later(std::chrono::milliseconds delay) noexcept
        : delay_(std::clamp(delay, std::chrono::milliseconds{0}, std::chrono::milliseconds{std::chrono::hours{24 * 3650}})) {}

    std::chrono::milliseconds delay() const noexcept { return delay_; }
    char const* what() const noexcept override { return "postponed by the handler"; }

private:
    std::chrono::milliseconds delay_;
};

}  // namespace lockstep
