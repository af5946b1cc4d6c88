#pragma once

// Behind a `bus_subscription`: the mailbox, and whatever fills it.

#include "messaging/mailbox.hpp"

#include <memory>
#include <utility>

namespace lockstep::detail {

class bus_listening {
public:
    explicit bus_listening(std::shared_ptr<mailbox> box) noexcept : box_(std::move(box)) {}
    virtual ~bus_listening() = default;

    /// Nothing is put in any more when it returns.
    virtual void leave() noexcept = 0;
    virtual bus_counters counters() const { return box_->counters(); }
    mailbox& box() const noexcept { return *box_; }

private:
    std::shared_ptr<mailbox> box_;
};

}  // namespace lockstep::detail
