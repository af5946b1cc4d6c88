// Finding the master by asking Sentinels. Failovers under load: sentinel_failover_test.cpp.
#include "topology_support.hpp"

#include "support/certificates.hpp"
#include "support/port_reservation.hpp"
#include "support/sentinel_group.hpp"

namespace lockstep::test {
namespace {

std::string url_of(std::vector<std::string> const& sentinels, std::string const& master = sentinel_group::master_name) {
    std::string list;
    for (auto const& one : sentinels) list += (list.empty() ? "" : ",") + one;
    return "redis+sentinel://" + list + "/" + master;
}

std::string address_of(redis_server& server) { return server.address().address(); }

TEST(sentinel, leads_to_the_master_of_that_name) {
    sentinel_group group{{.replicas = 1}};
    client client{{.url = group.sentinel_url(), .name = "seeker"}};
    client.command("SET", "key", "value");
    EXPECT_EQ(sync_wait(client.async_command<std::string>("GET", "key")), "value");
    EXPECT_EQ(group.server(0).must({"GET", "key"}).text, "value");
    EXPECT_EQ(connections_named(group.server(0), "seeker"), 1);
    EXPECT_EQ(connections_named(group.server(1), "seeker"), 0) << "a replica has nothing for us";

    lockstep::client stranger{url_of({address_of(group.sentinel(0)), address_of(group.sentinel(1))}, "nobody")};
    auto const end = hurried_ending(stranger, request{"PING"}.within(1s));
    EXPECT_EQ(end.reason, errc::unavailable);
    EXPECT_THAT(end.text, testing::HasSubstr("'nobody'"));
    EXPECT_LT(end.after, 5s);
}

TEST(sentinel, that_is_down_or_unknown_in_the_url_is_made_up_for_by_the_others) {
    sentinel_group group{{.replicas = 1}};
    port_reservation const nobody_here;
    auto const dead = "127.0.0.1:" + std::to_string(nobody_here.port());
    client lucky{url_of({dead, address_of(group.sentinel(1))})};
    EXPECT_EQ(lucky.command<std::string>("PING"), "PONG");

    client client{{.url = url_of({address_of(group.sentinel(0))}), .command_timeout = 40s}};
    client.command("SET", "key", "before");
    group.sentinel(0).kill9();
    // The connection to the master is lost, and the only Sentinel of the URL can't say where the next one is.
    auto const old = group.master_address();
    group.kill_master();
    ASSERT_TRUE(group.wait_until_master_is_not(old));
    EXPECT_EQ(client.execute<std::string>(request{"SET", "key", "after"}.repeatable()), "OK");
    EXPECT_EQ(group.master().must({"GET", "key"}).text, "after");
}

TEST(sentinel, that_does_not_answer_is_left_for_the_next) {
    sentinel_group group{{.replicas = 1}};
    group.sentinel(0).stop();
    client client{
        {.url = url_of({address_of(group.sentinel(0)), address_of(group.sentinel(1))}), .connect_timeout = 600ms}};
    EXPECT_EQ(client.command<std::string>("PING"), "PONG");
}

TEST(sentinel, that_names_a_replica_is_not_believed) {
    sentinel_group group{{.replicas = 1}};
    group.server(0).must({"SET", "who", "master"});
    // One that was told about a replica as if it were the master: so does one that missed a failover.
    auto const replica = std::to_string(group.server(1).port());
    server_options const misinformed{.config = {"sentinel monitor mymaster 127.0.0.1 " + replica + " 1"}, .sentinel = true};
    redis_server astray{misinformed};
    client client{{.url = url_of({address_of(astray), address_of(group.sentinel(0))}), .name = "doubter"}};
    EXPECT_EQ(client.command("ROLE")[0].as<std::string>(), "master");
    EXPECT_EQ(client.command<std::string>("SET", "key", "value"), "OK");
    EXPECT_EQ(connections_named(group.server(0), "doubter"), 1);
    EXPECT_EQ(connections_named(group.server(1), "doubter"), 0);

    // After some seconds such a Sentinel has found out from the replica who the master is: then another one is asked.
    for (bool is_astray = false; !is_astray;) {
        redis_server other{misinformed};
        lockstep::client misled{url_of({address_of(other)})};
        auto const end = ending_of([&] { misled.execute(request{"GET", "who"}.within(1500ms)); });
        is_astray = other.must({"SENTINEL", "GET-MASTER-ADDR-BY-NAME", "mymaster"}).elements.at(1).text == replica;
        if (!is_astray) continue;
        EXPECT_EQ(end.reason, errc::unavailable);
        EXPECT_THAT(end.text, testing::AnyOf(testing::HasSubstr("no master"), testing::HasSubstr("not a master"))) << "the reason is named";
    }
}

// Two groups that know nothing of each other stand for one of which a part missed a failover.
TEST(sentinel, that_lags_behind_is_not_believed_while_another_knows_more) {
    redis_server old_master{{.tcp = true}};
    redis_server new_master{{.tcp = true}};
    old_master.must({"SET", "who", "old"});
    new_master.must({"SET", "who", "new"});
    auto const watching = [](redis_server& master, std::string const& epoch) {
        return server_options{.config = {"sentinel monitor mymaster 127.0.0.1 " + std::to_string(master.port()) + " 1",
                                         "sentinel config-epoch mymaster " + epoch, "sentinel current-epoch " + epoch},
                              .sentinel = true};
    };
    redis_server informed{watching(new_master, "5")};
    redis_server lagging{watching(old_master, "1")};
    client client{{.url = url_of({address_of(informed), address_of(lagging)}), .command_timeout = 20s}};
    auto const who = [&] { return client.execute<std::string>(request{"GET", "who"}.repeatable()); };
    EXPECT_EQ(who(), "new");
    for (int round = 1; round <= 3; ++round) {
        auto const before = lagging.info("total_connections_received");
        for (auto const* const kind : {"normal", "pubsub"}) informed.must({"CLIENT", "KILL", "TYPE", kind, "SKIPME", "yes"});
        EXPECT_TRUE(eventually([&] { return lagging.info("total_connections_received") != before; })) << "it is the next";
        new_master.must({"CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"});
        EXPECT_EQ(who(), "new");
    }
    informed.kill9();
    new_master.must({"CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"});
    EXPECT_TRUE(eventually([&] { return who() == "old"; })) << "nobody knows more";
}

TEST(sentinel, is_asked_again_when_the_master_says_it_is_none_any_more) {
    sentinel_group group{{.replicas = 1, .sentinels = 1, .quorum = 1, .down_after = 60s}};
    client client{{.url = group.sentinel_url(), .name = "waiter", .command_timeout = 40s}};
    client.command("SET", "key", "first");
    auto& master = group.server(0);
    master.must(
        {"REPLICAOF", "127.0.0.1", std::to_string(group.server(1).port())});  // by hand, its clients stay connected
    begun write{client.async_command<std::string>("SET", "key", "second")};
    EXPECT_TRUE(eventually([&] { return errors_of(master, "READONLY") > 0; }));
    EXPECT_FALSE(write.done()) << "READONLY is not the caller's business";
    EXPECT_TRUE(eventually([&] { return calls_of(master, "role") > 2; })) << "it keeps asking whether it may come back";
    EXPECT_EQ(connections_named(group.server(1), "waiter"), 0);
    master.must({"REPLICAOF", "NO", "ONE"});
    EXPECT_EQ(write.get(), "OK");
    EXPECT_EQ(master.must({"GET", "key"}).text, "second");
}

TEST(sentinel, and_servers_have_passwords_of_their_own) {
    sentinel_group group{
        {.replicas = 0, .sentinels = 1, .quorum = 1, .password = "servers", .sentinel_password = "sentinels"}};
    auto const at = group.sentinel_url();
    auto const with = [&](std::string const& servers, std::string const& sentinels) {
        return client_options{.url = at + "?sentinel_password=" + sentinels, .password = servers};
    };
    client client{with("servers", "sentinels")};
    EXPECT_EQ(client.command<std::string>("PING"), "PONG");
    auto session = client.open_session();
    EXPECT_EQ(session.command("ROLE")[0].as<std::string>(), "master");

    for (auto const& options :
         {with("wrong", "sentinels"), with("servers", "wrong"), client_options{.url = at, .password = "servers"}}) {
        lockstep::client refused{options};
        auto const end = ending_of([&] { refused.command("PING"); });
        EXPECT_EQ(end.reason, errc::authentication) << end.text;
        EXPECT_LT(end.after, 5s) << "at once, not when the request's time is over";
        EXPECT_THAT(end.text,
                    testing::AllOf(testing::HasSubstr("127.0.0.1:"), testing::Not(testing::HasSubstr("wrong"))));
        auto deaf = ending_of([&] { static_cast<void>(refused.subscribe("news", [](message const&) {})); });
        EXPECT_EQ(deaf.reason, errc::authentication) << deaf.text;
        auto const log_ins = group.sentinel(0).info("total_connections_received");
        EXPECT_FALSE(eventually([&] { return group.sentinel(0).info("total_connections_received") != log_ins; }, 700ms))
            << "nobody asks, so nobody logs in";
    }
}

TEST(sentinel, and_servers_speak_tls) {
    certificates const files;
    sentinel_group group{{.replicas = 1, .sentinels = 1, .quorum = 1, .tls = files.server()}};
    client client{{.url = group.sentinel_url(), .tls = {.ca_file = files.ca()}}};
    client.command("SET", "key", "value");
    EXPECT_EQ(group.server(0).must({"GET", "key"}).text, "value");
    auto const old = group.master_address();
    group.failover();
    EXPECT_NE(group.master_address(), old);
    EXPECT_EQ(client.execute<std::string>(request{"SET", "key", "other"}.repeatable().within(20s)), "OK");
    EXPECT_EQ(group.master().must({"GET", "key"}).text, "other");

    lockstep::client distrustful{{.url = group.sentinel_url(), .tls = {.ca_file = files.other_ca()}}};
    auto const end = hurried_ending(distrustful, request{"PING"}.within(1s));
    EXPECT_EQ(end.reason, errc::unavailable);
    EXPECT_THAT(end.text, testing::HasSubstr("certificate"));
}

}  // namespace
}  // namespace lockstep::test
