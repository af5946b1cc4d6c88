// A mutex on servers that fail over, and on a slot that moves while it is held, waited for and handed on.
#include "cluster_support.hpp"
#include "mutex_fault_support.hpp"
#include "support/sentinel_group.hpp"

namespace lockstep::test {
namespace {

constexpr lease_options brief{.ttl = 2s};

TEST(slow_mutex_failover, by_sentinel_is_survived_with_growing_fences) {
    sentinel_group group;
    mutex_load load{group.sentinel_url(), "name", {.exclusive = false, .lease = brief}};
    ASSERT_TRUE(load.wait_for_more());
    group.failover();
    EXPECT_TRUE(load.wait_for_more());
    auto const old = group.master_address();
    auto& killed = group.kill_master();
    ASSERT_TRUE(group.wait_until_master_is_not(old));
    EXPECT_TRUE(load.wait_for_more());
    killed.restart();
    EXPECT_TRUE(load.wait_for_more());
    EXPECT_THAT(load.finish(), testing::IsEmpty());
}

TEST(slow_mutex_failover, in_a_cluster_is_survived_with_growing_fences) {
    cluster nodes;
    auto const name = "name";
    auto const slot = slot_of("lockstep:{name}:lock");
    auto const shard = [&] { return nodes.owner_of(slot) % nodes.shards(); };
    mutex_load load{nodes.url(), name, {.exclusive = false, .lease = brief}};
    ASSERT_TRUE(load.wait_for_more());
    auto const here = shard();
    nodes.failover(here);
    EXPECT_TRUE(load.wait_for_more());
    auto const killed = nodes.kill_master(here);
    EXPECT_TRUE(load.wait_for_more());
    nodes.node(killed).restart();
    EXPECT_TRUE(nodes.wait_until_ok());
    EXPECT_TRUE(load.wait_for_more());
    EXPECT_THAT(load.finish(), testing::IsEmpty());
}

// Nothing is lost when a slot moves, so there is no excuse: one holder at a time, no lease lost.
TEST(slow_mutex_resharding, goes_unnoticed_by_those_who_hold_and_wait) {
    cluster nodes{{.replicas_per_master = 0}};
    auto const slot = slot_of("lockstep:{name}:lock");
    mutex_load load{nodes.url(), "name"};
    ASSERT_TRUE(load.wait_for_more());
    for (int i = 0; i < 20; ++i) {
        auto const to = (nodes.owner_of(slot) + 1) % 3;
        nodes.begin_migration(slot, to);
        EXPECT_TRUE(load.wait_for_more(10)) << "between the nodes";
        nodes.move_keys(slot);
        EXPECT_TRUE(load.wait_for_more(10)) << "on the new one, which does not own it yet";
        nodes.finish_migration(slot);
        ASSERT_TRUE(nodes.wait_until_ok()) << "moved again before the nodes agree, a slot can end up with none of them";
        EXPECT_TRUE(load.wait_for_more(10));
    }
    EXPECT_THAT(load.finish(), testing::IsEmpty());
    EXPECT_EQ(load.losses(), 0U);
}

// A waiter that is told on the node where the lock is now, though it began to listen on another.
TEST(slow_mutex_resharding, does_not_leave_a_waiter_behind) {
    cluster nodes{{.replicas_per_master = 0}};
    auto const slot = slot_of("lockstep:{name}:lock");
    client a{nodes.url()};
    client b{nodes.url()};
    mutex of_a{a, "name", {.ttl = 60s}};
    mutex of_b{b, "name", {.ttl = 60s}};
    auto held = of_a.acquire();
    for (int i = 0; i < 4; ++i) {
        auto const from = nodes.owner_of(slot);
        auto& waiter = i % 2 == 0 ? of_b : of_a;
        begun waiting{waiter.async_acquire()};
        ASSERT_TRUE(eventually([&] { return waiting_at(nodes.node(from), "name") == 1; }));
        nodes.migrate_slot(slot, (from + 1) % 3);
        ASSERT_TRUE(nodes.wait_until_ok());
        auto const fence = held.fence();
        held.release();
        held = waiting.get(15s);
        EXPECT_GT(held.fence(), fence);
    }
}

}  // namespace
}  // namespace lockstep::test
