// check_health and diagnose where there are several servers: Sentinel and Cluster, whole and with parts missing.
#include "health_support.hpp"
#include "support/cluster.hpp"
#include "support/sentinel_group.hpp"

#include <lockstep/mutex.hpp>

namespace lockstep::test {
namespace {

template <class Form>
class slow_health_on_sentinel : public testing::Test {};
TYPED_TEST_SUITE(slow_health_on_sentinel, forms, form_names);

TYPED_TEST(slow_health_on_sentinel, sees_who_is_missing) {
    sentinel_group group{{.replicas = 2, .sentinels = 3}};
    client by{group.sentinel_url()};
    auto report = health_of<TypeParam>(by);
    EXPECT_EQ(report.state, health_state::healthy) << report.text();
    EXPECT_TRUE(has(found_in(report, "replicas").found, "2 replicas")) << report.text();
    EXPECT_EQ(state_of(report, "sentinel"), "healthy") << report.text();

    auto const lost = group.server(1).port();
    group.server(1).kill9();
    ASSERT_TRUE(eventually([&] { return state_of(health_of<TypeParam>(by), "sentinel") == "degraded"; }, 20s));
    report = health_of<TypeParam>(by);
    EXPECT_TRUE(has(found_in(report, "sentinel").found, std::to_string(lost))) << report.text();
    EXPECT_EQ(state_of(report, "probe_lock"), "healthy") << report.text();
    group.server(1).restart();
    ASSERT_TRUE(eventually([&] { return health_of<TypeParam>(by).state == health_state::healthy; }, 20s));

    group.sentinel(2).kill9();
    report = health_of<TypeParam>(by);
    EXPECT_EQ(state_of(report, "sentinel"), "degraded") << report.text();
    EXPECT_TRUE(has(found_in(report, "sentinel").found, std::to_string(group.sentinel(2).port()))) << report.text();
    group.sentinel(1).kill9();
    EXPECT_TRUE(eventually(
        [&] { return has(found_in(health_of<TypeParam>(by), "sentinel").found, "no failover is possible"); }, 20s));
}

TYPED_TEST(slow_health_on_sentinel, follows_a_failover) {
    sentinel_group group{{.replicas = 2, .sentinels = 3}};
    client by{group.sentinel_url()};
    ASSERT_TRUE(eventually([&] { return health_of<TypeParam>(by).state == health_state::healthy; })) << "servers that have just begun find one another";
    auto const old = group.master_address();
    group.kill_master();
    auto const report = health_of<TypeParam>(by, {.within = 1s, .slow = 10s});
    EXPECT_NE(report.state, health_state::healthy) << report.text();
    ASSERT_TRUE(group.wait_until_master_is_not(old));
    EXPECT_TRUE(eventually([&] { return state_of(health_of<TypeParam>(by), "probe_lock") == "healthy"; }, 20s));
}

TYPED_TEST(slow_health_on_sentinel, diagnoses_ttl_and_min_replicas) {
    sentinel_group group{{.replicas = 1, .sentinels = 3, .down_after = 2'000ms}};
    client hasty{{.url = group.sentinel_url(), .defaults = {.ttl = 5s}}};
    auto report = diagnosis_of<TypeParam>(hasty);
    EXPECT_EQ(state_of(report, "failover_time"), "degraded") << report.text();
    client by{group.sentinel_url()};
    report = diagnosis_of<TypeParam>(by);
    EXPECT_EQ(state_of(report, "failover_time"), "healthy") << report.text();
    auto const advice = found_in(report, "min_replicas").advice;
    EXPECT_EQ(state_of(report, "min_replicas"), "degraded") << report.text();
    follow(group.master(), advice, "CONFIG SET min-replicas-to-write");
    follow(group.master(), advice, "CONFIG SET min-replicas-max-lag");
    report = diagnosis_of<TypeParam>(by);
    EXPECT_EQ(state_of(report, "min_replicas"), "healthy") << report.text();
}

TEST(slow_health_without_sentinels, is_unhealthy) {
    sentinel_group group{{.replicas = 1, .sentinels = 1, .quorum = 1}};
    client by{group.sentinel_url()};
    ASSERT_TRUE(eventually([&] { return check_health(by, patient).state == health_state::healthy; })) << "servers that have just begun find one another";
    group.sentinel(0).kill9();
    auto const report = check_health(by, {.within = 3s, .slow = 10s});
    EXPECT_EQ(state_of(report, "sentinel"), "unhealthy") << report.text();
    EXPECT_EQ(state_of(report, "probe_lock"), "healthy") << "the master is still there: " << report.text();
}

template <class Form>
class slow_health_on_a_cluster : public testing::Test {};
TYPED_TEST_SUITE(slow_health_on_a_cluster, forms, form_names);

TYPED_TEST(slow_health_on_a_cluster, looks_at_every_master) {
    cluster nodes;
    client by{nodes.url()};
    auto report = health_of<TypeParam>(by);
    EXPECT_EQ(report.state, health_state::healthy) << report.text();
    for (std::size_t i = 0; i < nodes.shards(); ++i) {
        auto& node = nodes.node(i);
        EXPECT_TRUE(has(found_in(report, "connect").found, std::to_string(node.port()))) << report.text();
        EXPECT_TRUE(has(found_in(report, "probe_lock").found, std::to_string(node.port()))) << report.text();
        EXPECT_TRUE(eventually([&] { return node.must({"DBSIZE"}).integer == 0; })) << "nothing is left behind";
    }
    // One of them is full, and only that one is named.
    nodes.node(1).must({"CONFIG", "SET", "maxmemory", "1mb"});
    report = health_of<TypeParam>(by);
    EXPECT_EQ(state_of(report, "memory"), "unhealthy") << report.text();
    EXPECT_TRUE(has(found_in(report, "memory").found, std::to_string(nodes.node(1).port()))) << report.text();
    EXPECT_FALSE(has(found_in(report, "memory").found, std::to_string(nodes.node(0).port()))) << report.text();
    EXPECT_TRUE(has(found_in(report, "probe_lock").found, std::to_string(nodes.node(1).port()))) << report.text();
}

TYPED_TEST(slow_health_on_a_cluster, sees_a_replica_that_failed) {
    cluster nodes;
    client by{nodes.url()};
    ASSERT_TRUE(eventually([&] { return health_of<TypeParam>(by).state == health_state::healthy; })) << "servers that have just begun find one another";
    auto& lost = nodes.node(nodes.shards());
    lost.kill9();
    EXPECT_TRUE(eventually([&] { return state_of(health_of<TypeParam>(by), "cluster") == "degraded"; }, 20s));
    auto const report = health_of<TypeParam>(by);
    EXPECT_TRUE(has(found_in(report, "cluster").found, std::to_string(lost.port()))) << report.text();
    EXPECT_EQ(state_of(report, "probe_lock"), "healthy") << report.text();
    lost.restart();
    EXPECT_TRUE(eventually([&] { return health_of<TypeParam>(by).state == health_state::healthy; }, 20s));
}

TYPED_TEST(slow_health_on_a_cluster, sees_a_master_that_failed_without_a_replica) {
    cluster nodes{{.replicas_per_master = 0}};
    client by{nodes.url()};
    ASSERT_TRUE(eventually([&] { return health_of<TypeParam>(by).state == health_state::healthy; })) << "servers that have just begun find one another";
    auto& lost = nodes.node(2);
    lost.kill9();
    auto const begin = now_ms();
    auto report = health_of<TypeParam>(by, {.within = 1s, .slow = 10s});
    EXPECT_LE(now_ms() - begin, std::chrono::milliseconds{1s + health_slack}.count());
    EXPECT_EQ(report.state, health_state::unhealthy) << report.text();
    EXPECT_TRUE(eventually(
        [&] {
            auto const now = health_of<TypeParam>(by, {.within = 1s, .slow = 10s});
            return state_of(now, "cluster") == "unhealthy" &&
                   has(found_in(now, "cluster").found, std::to_string(lost.port()));
        },
        30s));
    lost.restart();
    EXPECT_TRUE(eventually([&] { return health_of<TypeParam>(by).state == health_state::healthy; }, 30s));
}

TYPED_TEST(slow_health_on_a_cluster, diagnoses_its_settings) {
    cluster nodes{{.replicas_per_master = 0}};
    client by{nodes.url()};
    for (std::size_t i = 0; i < nodes.size(); ++i)
        nodes.node(i).must({"CONFIG", "SET", "cluster-require-full-coverage", "yes"});
    auto report = diagnosis_of<TypeParam>(by);
    EXPECT_EQ(state_of(report, "failover_time"), "healthy") << report.text();
    EXPECT_EQ(state_of(report, "cluster_coverage"), "degraded") << report.text();
    for (std::size_t i = 0; i < nodes.size(); ++i)
        follow(nodes.node(i), found_in(report, "cluster_coverage").advice,
               "CONFIG SET cluster-require-full-coverage no");
    report = diagnosis_of<TypeParam>(by);
    EXPECT_EQ(state_of(report, "cluster_coverage"), "healthy") << report.text();
    EXPECT_EQ(state_of(report, "rights"), "healthy") << report.text();
}

}  // namespace
}  // namespace lockstep::test
