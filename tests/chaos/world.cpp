#include "world.hpp"

#include "support/chaos_names.hpp"
#include "support/clock_file.hpp"
#include "support/cluster.hpp"
#include "support/eventually.hpp"
#include "support/fault_proxy.hpp"
#include "support/history.hpp"
#include "support/key_slot.hpp"
#include "support/sentinel_group.hpp"

#include <stdexcept>

namespace lockstep::chaos {
namespace {

using namespace std::chrono_literals;

// The server naps for real: what waits for its end waits here.
void let_nap(test::redis_server& server, std::chrono::milliseconds length) {
    auto const until = test::now_ms() + length.count();
    server.stop();
    static_cast<void>(test::eventually([&] { return test::now_ms() >= until; }, length + 1s));
    server.cont();
}

void require(bool done, char const* what) {
    if (!done) throw std::runtime_error{std::string{"the servers do not get there: "} + what};
}

void to_each(std::vector<test::redis_server*> const& servers, std::vector<std::string> const& command) {
    for (auto* const server : servers) server->command(command);
}

class standalone_world final : public world {
public:
    explicit standalone_world(std::size_t workers) {
        for (std::size_t i = 0; i < workers; ++i)
            ways_.push_back(std::make_unique<test::fault_proxy>(server_.address()));
    }
    std::string url_for(std::size_t worker) const override { return ways_.at(worker)->url(); }
    std::vector<test::redis_server*> masters() override { return {&server_}; }

    void commit(step const& what) override {
        auto& way = *ways_.at(what.whom % ways_.size());
        switch (what.what) {
            case deed::cut: return way.cut();
            case deed::drop_reply: return way.drop_replies(1);
            case deed::refuse: return way.refuse(), way.cut();
            case deed::lag: return way.delay(what.amount);
            case deed::heal: return way.heal();
            case deed::server_nap: return let_nap(server_, what.amount);
            case deed::script_flush: return to_each(masters(), {"SCRIPT", "FLUSH"});
            case deed::client_kill:
                return to_each(masters(), {"CLIENT", "KILL", "TYPE", what.whom % 2 == 0 ? "normal" : "pubsub"});
            case deed::clock_back: return clock_.step(-what.amount);
            case deed::clock_forward: return clock_.step(what.amount);
            default: throw std::logic_error{name_of(what.what)};
        }
    }
    void calm_down() override {
        for (auto& way : ways_) way->heal();
    }

private:
    test::clock_file clock_;
    test::redis_server server_{{.clock = &clock_}};
    std::vector<std::unique_ptr<test::fault_proxy>> ways_;
};

class sentinel_world final : public world {
public:
    std::string url_for(std::size_t) const override { return group_.sentinel_url(); }
    std::vector<test::redis_server*> masters() override { return {&group_.master()}; }

    void commit(step const& what) override {
        switch (what.what) {
            case deed::script_flush: return to_each(masters(), {"SCRIPT", "FLUSH"});
            case deed::client_kill:
                return to_each(masters(), {"CLIENT", "KILL", "TYPE", what.whom % 2 == 0 ? "normal" : "pubsub"});
            case deed::failover: return group_.failover();
            case deed::kill_master: {
                auto const old = group_.master_address();
                auto& killed = group_.kill_master();
                require(group_.wait_until_master_is_not(old, 40s),
                        "another master");  // more than one election may fail
                killed.restart();
                return require(group_.wait_until_whole(), "whole again");
            }
            default: throw std::logic_error{name_of(what.what)};
        }
    }
    void calm_down() override { require(group_.wait_until_whole(), "whole in the end"); }

private:
    test::sentinel_group group_;
};

class cluster_world final : public world {
public:
    explicit cluster_world(bool fails_over) : nodes_{{.replicas_per_master = fails_over ? 1U : 0U}} {}
    std::string url_for(std::size_t) const override { return nodes_.url(); }
    std::vector<test::redis_server*> masters() override {
        std::vector<test::redis_server*> found;
        for (std::size_t shard = 0; shard < nodes_.shards(); ++shard) found.push_back(&nodes_.master(shard));
        return found;
    }

    void commit(step const& what) override {
        auto const slot = test::slot_of("{" + name_at(what.name, boot_ns()) + "}");
        switch (what.what) {
            case deed::script_flush: return to_each(masters(), {"SCRIPT", "FLUSH"});
            case deed::client_kill:
                return to_each(masters(), {"CLIENT", "KILL", "TYPE", what.whom % 2 == 0 ? "normal" : "pubsub"});
            case deed::migrate:
                nodes_.migrate_slot(slot, other_than(nodes_.owner_of(slot)));
                return require(nodes_.wait_until_ok(),
                               "agreed on where the slot is");  // moved again before, it may end up nowhere
            case deed::failover: return nodes_.failover(what.whom % nodes_.shards());
            case deed::kill_master: {
                auto const killed = nodes_.kill_master(what.whom % nodes_.shards());
                nodes_.node(killed).restart();
                return require(nodes_.wait_until_ok(), "all nodes ok");
            }
            default: throw std::logic_error{name_of(what.what)};
        }
    }
    void calm_down() override { require(nodes_.wait_until_ok(), "ok in the end"); }

private:
    std::size_t other_than(std::size_t owner) {
        for (std::size_t shard = 0; shard < nodes_.shards(); ++shard) {
            if (nodes_.master_of(shard) == owner) return nodes_.master_of((shard + 1) % nodes_.shards());
        }
        throw std::runtime_error{"the slot's owner is no master"};
    }

    test::cluster nodes_;
};

/// Faults are of the nodes here, not of a worker's ways to them.
class quorum_world final : public world {
public:
    explicit quorum_world(std::size_t nodes) {
        for (std::size_t i = 0; i < nodes; ++i) {
            nodes_.push_back(std::make_unique<test::redis_server>(test::server_options{
                .config = {"appendfsync always"}, .append_only = true, .wait_until_ready = false}));
        }
        for (auto const& one : nodes_) {
            one->wait_until_ready();
            ways_.push_back(std::make_unique<test::fault_proxy>(one->address()));
        }
    }
    std::string url_for(std::size_t) const override {
        std::string all;
        for (auto const& way : ways_) all += (all.empty() ? "" : " ") + way->url();
        return all;
    }
    std::vector<test::redis_server*> masters() override {
        std::vector<test::redis_server*> all;
        for (auto const& one : nodes_) all.push_back(one.get());
        return all;
    }

    void commit(step const& what) override {
        auto const which = what.whom % nodes_.size();
        auto& node = *nodes_[which];
        auto& way = *ways_[which];
        switch (what.what) {
            case deed::cut: return way.cut();
            case deed::drop_reply: return way.drop_replies(1);
            case deed::refuse: return way.refuse(), way.cut();
            case deed::lag: return way.delay(what.amount);
            case deed::heal: return way.heal();
            case deed::server_nap: return let_nap(node, what.amount);
            case deed::kill_node: return node.kill9(), node.restart();
            case deed::script_flush: return to_each({&node}, {"SCRIPT", "FLUSH"});
            case deed::client_kill: return to_each({&node}, {"CLIENT", "KILL", "TYPE", what.name % 2 == 0 ? "normal" : "pubsub"});
            default: throw std::logic_error{name_of(what.what)};
        }
    }
    void calm_down() override {
        for (auto& way : ways_) way->heal();
    }

private:
    std::vector<std::unique_ptr<test::redis_server>> nodes_;
    std::vector<std::unique_ptr<test::fault_proxy>> ways_;
};

}  // namespace

std::unique_ptr<world> make_world(topology where, std::size_t workers) {
    switch (where) {
        case topology::standalone: return std::make_unique<standalone_world>(workers);
        case topology::sentinel: return std::make_unique<sentinel_world>();
        case topology::cluster: return std::make_unique<cluster_world>(false);
        case topology::cluster_failover: return std::make_unique<cluster_world>(true);
        case topology::quorum: return std::make_unique<quorum_world>(5);
    }
    throw std::logic_error{"no such topology"};
}

}  // namespace lockstep::chaos
