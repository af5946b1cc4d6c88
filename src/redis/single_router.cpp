#include "redis/single_router.hpp"

namespace lockstep::redis {

single_router::single_router(std::shared_ptr<reactor> home, connection_settings const& settings, handshake const& greeting,
                             connection::locator find)
    : router(home), find_(std::move(find)),
      link_(std::make_shared<connection>(home, settings, greeting, find_, static_cast<connection::events&>(*this))),
      listening_(*home, *this) {}

void single_router::not_master(connection& from) noexcept {
    // Not more often than this: each time costs the others on this connection their replies.
    if (home().now() - looked_for_master_ < std::chrono::seconds{1}) return;
    looked_for_master_ = home().now();
    from.reconnect("the server is no master any more (READONLY)");
}

void single_router::close() noexcept {
    end_delayed(errc::cancelled, "the client was closed");
    link_->close(errc::cancelled, "the client was closed");
    listening_.refuse_all(errc::cancelled, "the client was closed");
}

}  // namespace lockstep::redis
