#pragma once

#include "core/core.hpp"

#include <lockstep/session.hpp>

namespace lockstep::detail {

/// Behind a `session`: its own way to the server, closed when the session goes.
class session_state : public std::enable_shared_from_this<session_state> {
public:
    session_state(std::shared_ptr<core> owner, std::shared_ptr<redis::session_router> way) noexcept
        : owner_(std::move(owner)), way_(std::move(way)) {}
    ~session_state();

    core& owner() const noexcept { return *owner_; }
    std::shared_ptr<redis::router> way() noexcept { return {shared_from_this(), way_.get()}; }

private:
    std::shared_ptr<core> owner_;
    std::shared_ptr<redis::session_router> way_;
};

task<session> open_session(std::shared_ptr<core> owner, std::int16_t slot);

}  // namespace lockstep::detail
