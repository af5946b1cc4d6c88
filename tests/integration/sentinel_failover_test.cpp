// Masters that fail or retire while a client is at work, and the one that Sentinel puts in their place.
#include "topology_support.hpp"

#include "support/fault_proxy.hpp"
#include "support/sentinel_group.hpp"

namespace lockstep::test {
namespace {

client_options patient(sentinel_group& group) {
    return {.url = group.sentinel_url(), .name = "worker", .command_timeout = 40s};
}

TEST(slow_sentinel_failover, by_agreement_is_survived_by_a_client_under_load) {
    sentinel_group group;
    client client{patient(group)};
    steady_load load{client, {.durable = false}};
    ASSERT_TRUE(load.wait_for_fresh_round());
    auto& old = group.master();
    group.failover();
    EXPECT_TRUE(load.wait_for_fresh_round());
    expect_all_is_well(load.finish());
    EXPECT_EQ(connections_named(group.master(), "worker"), 1);
    EXPECT_EQ(connections_named(old, "worker"), 0) << "it is a replica now";
}

TEST(slow_sentinel_failover, after_a_kill_is_survived_by_a_client_under_load) {
    sentinel_group group;
    client client{patient(group)};
    steady_load load{client, {.durable = false}};
    ASSERT_TRUE(load.wait_for_fresh_round());
    auto const old = group.master_address();
    auto& killed = group.kill_master();
    ASSERT_TRUE(group.wait_until_master_is_not(old));
    EXPECT_TRUE(load.wait_for_fresh_round());
    killed.restart();
    EXPECT_TRUE(group.wait_until_whole()) << "the old master is back, as a replica";
    EXPECT_TRUE(load.wait_for_fresh_round());
    expect_all_is_well(load.finish());
    EXPECT_EQ(connections_named(group.master(), "worker"), 1);
    EXPECT_EQ(connections_named(killed, "worker"), 0);
}

// Its socket stays open and nothing ever comes from it: only the announcement says that there is another master.
TEST(slow_sentinel_failover, of_a_master_that_was_stopped_is_announced_to_its_clients) {
    sentinel_group group;
    auto options = patient(group);
    options.keepalive_interval = 0ms;
    client client{options};
    steady_load load{client, {.durable = false}};
    hearing radio;
    auto const subscription = client.subscribe(radio.options("news"));
    ASSERT_TRUE(load.wait_for_fresh_round());
    auto const old = group.master_address();
    auto& stopped = group.pause_master();
    options.connect_timeout = 30s;
    lockstep::client late{options};  // gets as far as the greeting, which nobody answers
    begun write{late.async_execute<std::string>(request{"SET", "late", "but there"})};
    ASSERT_TRUE(group.wait_until_master_is_not(old));
    EXPECT_TRUE(load.wait_for_fresh_round());
    EXPECT_EQ(write.get(10s), "OK");
    EXPECT_TRUE(eventually([&] { return radio.gaps() == 1; })) << "the subscription moves with the master";
    group.master().must({"PUBLISH", "news", "from the new master"});
    EXPECT_TRUE(eventually([&] { return radio.heard("from the new master"); }));
    stopped.cont();
    EXPECT_TRUE(group.wait_until_whole());
    EXPECT_TRUE(load.wait_for_fresh_round());
    expect_all_is_well(load.finish());
    EXPECT_EQ(connections_named(stopped, "worker"), 0);
}

bool listens_to(redis_server& sentinel) {
    auto const clients = sentinel.must({"CLIENT", "LIST"}).text;
    auto const ours = clients.find("name=lockstep-sentinel");
    return ours != std::string::npos && clients.find(" sub=2 ", ours) != std::string::npos;
}

// The announcement is made while the client has no Sentinel to hear it from.
TEST(slow_sentinel_failover, whose_announcement_was_missed_is_found_out) {
    sentinel_group group{{.replicas = 1, .sentinels = 1, .quorum = 1}};
    fault_proxy proxy{group.sentinel(0).address()};
    auto options = patient(group);
    options.keepalive_interval = 0ms;
    options.url = "redis+sentinel://" + proxy.address().address() + "/" + sentinel_group::master_name;
    client client{options};
    client.command("SET", "key", "before");
    ASSERT_TRUE(eventually([&] { return listens_to(group.sentinel(0)); }));
    proxy.refuse();
    proxy.cut();
    auto const old = group.master_address();
    group.pause_master();
    ASSERT_TRUE(group.wait_until_master_is_not(old));
    begun write{client.async_execute<std::string>(request{"SET", "key", "after"}.repeatable())};
    proxy.heal();
    EXPECT_EQ(write.get(), "OK");
    EXPECT_EQ(group.master().must({"GET", "key"}).text, "after");
}

TEST(slow_sentinel_failover, ends_subscriptions_for_a_moment_and_sessions_for_good) {
    sentinel_group group{{.replicas = 1}};
    client client{patient(group)};
    hearing radio;
    hearing all;
    auto const subscription = client.subscribe(radio.options("news"));
    auto const pattern = client.subscribe(all.options("n?ws", subscription_kind::pattern));
    auto session = client.open_session();
    session.command("SET", "key", "value");
    EXPECT_EQ(client.command<int>("PUBLISH", "news", "first"), 2);
    EXPECT_TRUE(eventually([&] { return radio.heard("first") && all.heard("first"); }));
    EXPECT_EQ(radio.gaps(), 0);

    auto const old = group.master_address();
    group.kill_master();
    ASSERT_TRUE(group.wait_until_master_is_not(old));
    EXPECT_TRUE(eventually([&] { return radio.gaps() == 1 && all.gaps() == 1; }));
    group.master().must({"PUBLISH", "news", "second"});
    EXPECT_TRUE(eventually([&] { return radio.heard("second") && all.heard("second"); }));

    auto const end = ending_of([&] { session.command("GET", "key"); });
    EXPECT_EQ(end.reason, errc::unavailable) << end.text;
    session = client.open_session();
    EXPECT_EQ(session.command("ROLE")[0].as<std::string>(), "master");
}

}  // namespace
}  // namespace lockstep::test
