#pragma once

// Redis Cluster: a connection per master, and a map from slots to them.
//
// The map comes from CLUSTER SLOTS, of any node that answers; it is refreshed when something shows that it is old (MOVED, a lost or
// silent node, a shard channel given up), one refresh at a time, and repeated with jitter while a node with requests is out of
// reach. When the map changes, requests that wait for a lost master go to its successor. ASK is followed for one request
// only, and tells those who listen in that slot (slot_migrations.hpp). Nothing here depends on which kind of change it is: failover,
// resharding and new nodes look alike. A node that lost its last slot still answers what it was sent, for a moment.

#include "redis/await.hpp"
#include "redis/connection.hpp"
#include "redis/slot.hpp"
#include "redis/slot_migrations.hpp"
#include "redis/subscriptions.hpp"

#include <array>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace lockstep::redis {

class cluster_router final : public router, connection::events, subscriptions::placer {
public:
    /// `prefix`: of the channels on which clients tell each other that a slot migrates; empty: they don't.
    cluster_router(std::shared_ptr<reactor> home, connection_settings settings, handshake greeting, std::vector<endpoint> seeds,
                   std::string prefix = {});
    ~cluster_router() override;

    void submit(operation& request) noexcept override;
    void close() noexcept override;
    subscriptions& listening() noexcept override { return listening_; }
    void add_to(statistics& sum) const noexcept override;
    bool reaches(std::int16_t slot) const noexcept override;
    task<endpoint> find(std::int16_t slot) override;
    void distrust() noexcept override { refresh_soon(); }

private:
    class slots_query;
    struct node {
        endpoint where;
        std::shared_ptr<connection> link;
        bool mapped = false;  // has slots in the newest map
        bool silent = false;  // does not answer, at least for a while
        bool asked = false;   // requests were sent there, and so it may be what tells of changed keys
        reactor::clock::time_point asked_until{};    // without slots, but ASK leads there
        reactor::clock::time_point parting_until{};  // without slots, and has until then to answer what it was sent
    };
    struct state;  // what the refreshing coroutine shares with this object, which may go first

    node& node_at(endpoint const& where);
    node* choose(std::int16_t slot) noexcept;
    node* node_of(connection const* link) const noexcept;
    void assign(std::uint16_t slot, node& owner) noexcept;
    bool out_of_reach() const noexcept;
    bool is_parting(node const& one) const noexcept;

    void refresh_soon() noexcept;
    task<void> refresh(std::shared_ptr<state> shared);
    task<void> see_guests_off(std::shared_ptr<state> shared);
    std::optional<reactor::clock::time_point> guests_stay_until() const noexcept;
    task<bool> ask_for_slots(std::shared_ptr<state> shared, std::shared_ptr<connection> link);
    std::vector<std::shared_ptr<connection>> candidates();
    bool apply(reply_view answer, endpoint const& source);  // false: no map
    void reroute() noexcept;

    // router
    void not_master(connection& from) noexcept override;
    bool redirect(connection& from, operation& request, judgement const& to) noexcept override;
    // connection::events
    void connected(connection& at) noexcept override;
    void disconnected(connection& at) noexcept override;
    void failed(connection& at) noexcept override;
    void silent(connection& at) noexcept override;
    void pushed(connection& at, reply_view push) noexcept override {
        hear(push);
        listening_.pushed(at, push);
    }
    void refused(connection& at, errc reason, std::string_view why) noexcept override { listening_.refused(at, reason, why); }
    bool wanted(connection& at) noexcept override { return listening_.uses(at) || listening_.uses_second(at); }
    bool reconsider(connection& from, operation& request, std::string_view refusal) noexcept override {
        return router::reconsider(from, request, refusal);
    }
    // subscriptions::placer
    connection* place(channel_kind kind, std::string_view channel, connection* now) noexcept override;
    bool misplaced(connection& at, judgement const& why) noexcept override;
    connection* second_place(std::string_view channel) noexcept override { return migrations_.second_place(channel); }
    void second_refused(std::string_view channel) noexcept override { migrations_.second_refused(channel); }
    void begins(std::string_view channel) override { migrations_.begins(channel); }
    void ends(std::string_view channel) noexcept override { migrations_.ends(channel); }

    connection_settings settings_;
    handshake greeting_;
    std::vector<endpoint> seeds_;
    std::map<std::string, std::unique_ptr<node>> nodes_;
    statistics gone_;  // of nodes that left: what was counted never becomes less
    std::array<node*, slot_count> slots_{};
    bool known_ = false;
    std::shared_ptr<state> state_;
    std::optional<std::pair<errc, std::string>> refusal_;  // why no node lets us in
    subscriptions listening_;
    slot_migrations migrations_;
};

}  // namespace lockstep::redis
