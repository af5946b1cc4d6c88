#pragma once

// A connection for one user, never repaired: what it had watched would be gone.

#include "redis/connection.hpp"
#include "redis/subscriptions.hpp"

#include <functional>
#include <memory>

namespace lockstep::redis {

class session_router final : public router, connection::events, subscriptions::placer {
public:
    /// `astray` is called when the server says that it is not the right one (MOVED).
    session_router(std::shared_ptr<reactor> home, connection_settings const& settings, handshake const& greeting, connection::locator find,
                   std::function<void()> astray);

    void submit(operation& request) noexcept override;
    void close() noexcept override;
    subscriptions& listening() noexcept override { return listening_; }
    void add_to(statistics& sum) const noexcept override { link_->add_to(sum); }
    bool reaches(std::int16_t) const noexcept override { return link_->ready(); }
    task<endpoint> find(std::int16_t) override { return find_(); }

private:
    void not_master(connection&) noexcept override {}
    void disconnected(connection& at) noexcept override;
    bool reconsider(connection& from, operation& request, std::string_view refusal) noexcept override;
    connection* place(channel_kind, std::string_view, connection*) noexcept override { return nullptr; }
    bool misplaced(connection&, judgement const&) noexcept override { return false; }

    connection::locator find_;
    std::function<void()> astray_;
    std::shared_ptr<connection> link_;
    subscriptions listening_;
    std::string broken_;
};

}  // namespace lockstep::redis
