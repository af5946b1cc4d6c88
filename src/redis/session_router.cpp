#include "redis/session_router.hpp"

#include "redis/verdict.hpp"

#include <fmt/format.h>

namespace lockstep::redis {

session_router::session_router(std::shared_ptr<reactor> home, connection_settings const& settings, handshake const& greeting,
                               connection::locator find)
    : router(home), find_(std::move(find)),
      link_(std::make_shared<connection>(home, settings, greeting, find_, static_cast<connection::events&>(*this))), listening_(*this) {}

void session_router::submit(operation& request) noexcept {
    if (!broken_.empty()) return end(request, errc::unavailable, broken_);
    link_->submit(request);
}

void session_router::disconnected(connection& at) noexcept {
    broken_ = fmt::format("the session's connection broke ({}); open a new session and begin again", at.last_trouble());
    // After this event the requests under way end as indeterminate; what waits ends here, in the next turn.
    home().post([link = link_, why = broken_] { link->close(errc::unavailable, why); });
}

bool session_router::reconsider(connection& from, operation& request, std::string_view refusal) noexcept {
    auto const what = judge(refusal).what;
    return (what == verdict::noscript || what == verdict::retry_later) && router::reconsider(from, request, refusal);
}

void session_router::close() noexcept {
    end_delayed(errc::cancelled, "the session was closed");
    link_->close(errc::cancelled, "the session was closed");
}

}  // namespace lockstep::redis
