#include "redis/session_router.hpp"

#include "redis/verdict.hpp"

#include <fmt/format.h>

namespace lockstep::redis {

namespace {
connection_settings blocking(connection_settings settings) {
    settings.requests_block = true;
    return settings;
}
}  // namespace

session_router::session_router(std::shared_ptr<reactor> home, connection_settings const& settings, handshake const& greeting,
                               connection::locator find, std::function<void()> astray)
    : router(home), find_(std::move(find)), astray_(std::move(astray)),
      link_(std::make_shared<connection>(home, blocking(settings), greeting, find_, static_cast<connection::events&>(*this))), listening_(*home, *this) {}

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
    if (what == verdict::moved) astray_();  // the user hears of it too, and the next session is led to the right node
    // A transaction that was refused has ended the WATCH that protects it: it must not run without.
    if (request.replies > 1) return false;
    return (what == verdict::noscript || what == verdict::retry_later) && router::reconsider(from, request, refusal);
}

void session_router::close() noexcept {
    end_delayed(errc::cancelled, "the session was closed");
    link_->close(errc::cancelled, "the session was closed");
}

}  // namespace lockstep::redis
