#include "core/session.hpp"

#include "core/command_rules.hpp"
#include "redis/command.hpp"

namespace lockstep {
namespace detail {

session_state::~session_state() {
    if (!owner_->same_process()) return;
    owner_->home().in_turn([this] { way_->close(); });
}

task<session> open_session(std::shared_ptr<core> owner, std::int16_t slot) {
    auto state = std::make_shared<session_state>(owner, owner->make_session(slot));
    redis::command_terms const terms{.deadline = owner->deadline(std::chrono::milliseconds{0}), .repeatable = true};
    co_await redis::run(state->way(), terms, "PING");  // connected, or the reason why not
    co_return session{std::move(state)};
}

task<reply> async_execute(std::shared_ptr<session_state> owner, request const& command) {
    owner->owner().require_same_process();
    require_answered(command.encoded());
    redis::command_terms const terms{.deadline = owner->owner().deadline(command.time())};
    return redis::run_encoded(owner->way(), command.encoded(), terms);
}

task<std::optional<std::vector<reply>>> async_execute(std::shared_ptr<session_state> owner, transaction commands) {
    owner->owner().require_same_process();
    require_runnable(commands);
    redis::command_terms const terms{.deadline = owner->owner().deadline(commands.time())};
    return redis::run_transaction(owner->way(), std::move(commands), terms);
}

}  // namespace detail

session::session(std::shared_ptr<detail::session_state> state) noexcept : state_(std::move(state)) {}
session& session::operator=(session&& other) noexcept {
    std::swap(state_, other.state_);
    return *this;
}
session::~session() = default;

void session::require_blocking_is_allowed() const { state_->owner().require_blocking_is_allowed(); }

std::optional<std::vector<reply>> session::execute(transaction commands, std::stop_token token) {
    require_blocking_is_allowed();
    return sync_wait(async_execute(std::move(commands)), std::move(token));
}

task<std::optional<std::vector<reply>>> session::async_execute(transaction commands) {
    return detail::async_execute(state_, std::move(commands));
}

}  // namespace lockstep
