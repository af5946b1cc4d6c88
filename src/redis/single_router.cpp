#include "redis/single_router.hpp"

namespace lockstep::redis {

single_router::single_router(std::shared_ptr<reactor> home, connection_settings const& settings, handshake const& greeting,
                             connection::locator find)
    : router(home), find_(std::move(find)),
      link_(std::make_shared<connection>(home, settings, greeting, find_, static_cast<connection::events&>(*this))),
      listening_(*this) {}

void single_router::close() noexcept {
    end_delayed(errc::cancelled, "the client was closed");
    link_->close(errc::cancelled, "the client was closed");
    listening_.refuse_all(errc::cancelled, "the client was closed");
}

}  // namespace lockstep::redis
