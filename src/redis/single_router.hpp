#pragma once

// One server at a time: a fixed one, the embedded one, or the master that Sentinel names. The locator knows the difference.

#include "redis/connection.hpp"
#include "redis/subscriptions.hpp"

#include <memory>

namespace lockstep::redis {

class single_router : public router, connection::events, subscriptions::placer {
public:
    single_router(std::shared_ptr<reactor> home, connection_settings const& settings, handshake const& greeting, connection::locator find);

    void submit(operation& request) noexcept override { link_->submit(request); }
    void close() noexcept override;
    subscriptions& listening() noexcept override { return listening_; }
    void add_to(statistics& sum) const noexcept override { link_->add_to(sum); }
    bool reaches(std::int16_t) const noexcept override { return link_->ready(); }
    task<endpoint> find(std::int16_t) override { return find_(); }
    /// The server is another one now.
    void relocate(std::string_view why) noexcept { link_->reconnect(why); }
    endpoint const& peer() const noexcept { return link_->peer(); }

protected:
    void connected(connection& at) noexcept override { listening_.connected(at); }
    void refused(connection&, errc reason, std::string_view why) noexcept override { listening_.refuse_all(reason, why); }

private:
    void not_master(connection& from) noexcept override;
    void disconnected(connection& at) noexcept override {
        lose_track();
        listening_.disconnected(at);
    }
    void pushed(connection& at, reply_view push) noexcept override {
        hear(push);
        listening_.pushed(at, push);
    }
    bool wanted(connection&) noexcept override { return !listening_.empty(); }
    bool reconsider(connection& from, operation& request, std::string_view refusal) noexcept override {
        return router::reconsider(from, request, refusal);
    }
    connection* place(channel_kind, std::string_view, connection*) noexcept override { return link_.get(); }
    bool misplaced(connection&, judgement const&) noexcept override { return false; }

    connection::locator find_;
    std::shared_ptr<connection> link_;
    subscriptions listening_;
    reactor::clock::time_point looked_for_master_{};
};

}  // namespace lockstep::redis
