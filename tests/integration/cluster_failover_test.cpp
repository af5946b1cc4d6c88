// Masters that fail, nodes that come and go, slots that move in hundreds: all while a client is at work.
#include "cluster_support.hpp"

#include <set>

namespace lockstep::test {
namespace {

TEST(slow_cluster_failover, by_agreement_loses_nothing_of_a_client_under_load) {
    cluster nodes;
    client client{patient(nodes)};
    steady_load load{client};
    ASSERT_TRUE(load.wait_for_fresh_round());
    nodes.failover(0);
    EXPECT_TRUE(load.wait_for_fresh_round());
    nodes.failover(1);
    nodes.failover(0);
    EXPECT_TRUE(load.wait_for_fresh_round());
    expect_all_is_well(load.finish());
    EXPECT_TRUE(eventually([&] { return connections_named(nodes.node(1), "worker") == 0; })) << "a replica now";
    EXPECT_EQ(connections_named(nodes.node(4), "worker"), 1);
}

TEST(slow_cluster_failover, after_a_kill_is_survived_by_a_client_under_load) {
    cluster nodes;
    client client{patient(nodes)};
    steady_load load{client, {.durable = false}};
    ASSERT_TRUE(load.wait_for_fresh_round());
    auto const killed = nodes.kill_master(2);
    EXPECT_TRUE(load.wait_for_fresh_round());
    nodes.node(killed).restart();
    EXPECT_TRUE(nodes.wait_until_ok());
    EXPECT_TRUE(load.wait_for_fresh_round());
    expect_all_is_well(load.finish());
    EXPECT_EQ(connections_named(nodes.node(killed), "worker"), 0) << "it came back as a replica";
}

// Its socket stays open; the other nodes tell that it is not the master any more.
TEST(slow_cluster_failover, of_a_master_that_was_stopped_is_survived_by_a_client_under_load) {
    cluster nodes;
    auto options = patient(nodes);
    options.keepalive_interval = 500ms;
    options.keepalive_timeout = 60s;
    client client{options};
    steady_load load{client, {.durable = false}};
    ASSERT_TRUE(load.wait_for_fresh_round());
    nodes.node(1).stop();
    ASSERT_TRUE(nodes.wait_until_master_is_not(1, 1));
    EXPECT_TRUE(load.wait_for_fresh_round());
    nodes.node(1).cont();
    EXPECT_TRUE(nodes.wait_until_ok());
    EXPECT_TRUE(load.wait_for_fresh_round());
    expect_all_is_well(load.finish());
    EXPECT_EQ(connections_named(nodes.node(1), "worker"), 0);
}

TEST(slow_cluster_resharding, of_hundreds_of_slots_goes_unnoticed_by_a_client_under_load) {
    cluster nodes;
    client client{patient(nodes)};
    steady_load load{client, {.workers = 96}};
    ASSERT_TRUE(load.wait_for_fresh_round());
    std::set<int> slots;
    for (int i = 0; i < 96; ++i) slots.insert(slot_of("{load-" + std::to_string(i) + "}"));
    for (int i = 0; i < 100; ++i) slots.insert(i * 160);
    for (int round = 0; round < 2; ++round) {
        for (auto const slot : slots) nodes.migrate_slot(slot, (nodes.owner_of(slot) + 1) % 3);
        EXPECT_TRUE(load.wait_for_fresh_round());
    }
    auto const seen = load.finish();
    expect_all_is_well(seen);
    EXPECT_THAT(seen.once, testing::IsEmpty()) << "no connection broke, so nothing is in doubt";
    EXPECT_GT(errors_everywhere(nodes, "MOVED"), 0);
    EXPECT_GT(errors_everywhere(nodes, "ASK"), 0);
}

TEST(slow_cluster_resharding, lets_a_node_join_and_leave_under_load) {
    cluster nodes{{.masters = 2}};
    client client{patient(nodes)};
    steady_load load{client};
    ASSERT_TRUE(load.wait_for_fresh_round());
    auto& guest = nodes.node(3);  // a replica that becomes a master without slots
    guest.must({"CLUSTER", "RESET", "SOFT"});
    for (std::size_t i = 0; i < 3; ++i) {
        guest.must({"CLUSTER", "MEET", "127.0.0.1", std::to_string(nodes.node(i).port()),
                    std::to_string(nodes.node(i).bus_port())});
    }
    ASSERT_TRUE(nodes.wait_until_ok());

    std::vector<std::pair<int, std::size_t>> borrowed;
    for (int i = 0; i < 32; ++i) {
        auto const slot = slot_of("{load-" + std::to_string(i) + "}");
        borrowed.emplace_back(slot, nodes.owner_of(slot));
        nodes.begin_migration(slot, 3);
        if (i % 8 == 0) {
            EXPECT_TRUE(load.wait_for_fresh_round()) << "ASK leads to a node that may have no slot of its own yet";
        }
        nodes.move_keys(slot);
        nodes.finish_migration(slot);
    }
    EXPECT_TRUE(load.wait_for_fresh_round());
    EXPECT_EQ(connections_named(guest, "worker"), 1);
    for (auto const& [slot, owner] : borrowed) nodes.migrate_slot(slot, owner);
    EXPECT_TRUE(load.wait_for_fresh_round());
    EXPECT_TRUE(eventually([&] { return connections_named(guest, "worker") == 0; })) << "nothing to do there";
    guest.kill9();
    EXPECT_TRUE(load.wait_for_fresh_round());
    auto const seen = load.finish();
    expect_all_is_well(seen);
    EXPECT_THAT(seen.once, testing::IsEmpty());
}

}  // namespace
}  // namespace lockstep::test
