// A cluster at rest: finding it, logging in, and sending each command where it belongs.
#include "cluster_support.hpp"

#include "support/certificates.hpp"
#include "support/port_reservation.hpp"

namespace lockstep::test {
namespace {

TEST(cluster, gets_each_key_on_its_master_by_one_connection_each) {
    cluster nodes;
    client client{patient(nodes)};
    constexpr int count = 200;
    auto const key = [](int i) { return "key:" + std::to_string(i); };
    for (int i = 0; i < count; ++i) client.command("SET", key(i), i);
    std::vector<task<int>> reads;
    for (int i = 0; i < count; ++i) reads.push_back(client.async_command<int>("GET", key(i)));
    auto const values = sync_wait(when_all(std::move(reads)));
    for (int i = 0; i < count; ++i) EXPECT_EQ(values[static_cast<std::size_t>(i)], i);

    for (int i = 0; i < count; ++i) {
        auto const owner = static_cast<std::size_t>(slot_of(key(i)) * 3 / slot_count);
        EXPECT_EQ(nodes.node(owner).must({"GET", key(i)}).text, std::to_string(i));
    }
    for (std::size_t i = 0; i < 3; ++i) EXPECT_EQ(connections_named(nodes.node(i), "worker"), 1);
    for (std::size_t i = 3; i < 6; ++i) EXPECT_EQ(connections_named(nodes.node(i), "worker"), 0) << "a replica";
    EXPECT_EQ(errors_everywhere(nodes, "MOVED"), 0) << "nothing was sent to a wrong node";
    EXPECT_LE(map_requests(nodes), 2);
    EXPECT_EQ(client.statistics().connections, 3U);
}

TEST(cluster, knows_where_the_keys_of_a_command_are) {
    cluster nodes{{.replicas_per_master = 0}};
    client client{patient(nodes)};
    for (std::size_t i = 0; i < 3; ++i) {
        auto const a = tag_on(i) + "a";
        auto const b = tag_on(i) + "b";
        EXPECT_EQ(client.command<std::string>("EVAL", "return redis.call('SET', KEYS[1], ARGV[1])", 1, a, "by script"),
                  "OK");
        EXPECT_EQ(client.command<std::string>("eval", "return redis.call('get', KEYS[1])", 1, a), "by script");
        client.command("XADD", tag_on(i) + "stream", "1-1", "field", "value");
        EXPECT_TRUE(client.command("XREAD", "COUNT", 1, "STREAMS", tag_on(i) + "stream", 0).is_aggregate());
        client.command("ZADD", tag_on(i) + "set", 1, "one");
        EXPECT_EQ(client.command<int>("ZUNIONSTORE", b, 2, tag_on(i) + "set", tag_on(i) + "none"), 1);
        EXPECT_EQ(client.command("ZUNION", 2, b, tag_on(i) + "none").size(), 1U);
        EXPECT_GT(client.command<int>("MEMORY", "USAGE", a), 0);
        EXPECT_EQ(client.command<std::string>("OBJECT", "ENCODING", a), "embstr");
        EXPECT_EQ(client.command<int>("BITOP", "NOT", tag_on(i) + "bits", a), 9);
        EXPECT_EQ(client.command<int>("SPUBLISH", tag_on(i), "nobody listens"), 0);
        EXPECT_EQ(client.command<std::string>("XGROUP", "CREATE", tag_on(i) + "stream", "group", 0), "OK");
    }
    EXPECT_EQ(errors_everywhere(nodes, "MOVED"), 0);

    EXPECT_EQ(client.command<std::string>("PING"), "PONG");
    EXPECT_EQ(client.command<std::string>("ECHO", "anywhere"), "anywhere");
    EXPECT_EQ(client.command<int>("EVAL", "return 7", 0), 7);
    EXPECT_EQ(client.command<std::string>("CONFIG", "SET", "slowlog-max-len", 64), "OK");
    auto const refusal = [&](auto... words) { return ending_of([&] { client.command(words...); }); };
    EXPECT_THAT(refusal("NOSUCH", "x").text, testing::HasSubstr("unknown command"));
    EXPECT_THAT(refusal("GET").text, testing::HasSubstr("wrong number of arguments"));
    EXPECT_THAT(refusal("EVAL").text, testing::HasSubstr("wrong number of arguments"));
    EXPECT_THAT(refusal("XREAD", "STREAMS").text, testing::HasSubstr("ERR"));
    EXPECT_EQ(refusal("MSET", tag_on(0), 1, tag_on(1), 2).reason, errc::server);
    EXPECT_THAT(refusal("MSET", tag_on(0), 1, tag_on(1), 2).text, testing::HasSubstr("CROSSSLOT"));
}

TEST(cluster, takes_pipelines_across_slots_and_transactions_within_one) {
    cluster nodes{{.replicas_per_master = 0}};
    for (int i = 0; i < 10; ++i) {
        client fresh{patient(nodes)};  // has yet to learn where the keys of each command are, and yet keeps their order
        pipeline commands;
        for (std::size_t master = 0; master < 3; ++master) {
            auto const key = tag_on(master) + std::to_string(i);
            commands.add("SET", key, 1)
                .add("INCR", key)
                .add("APPEND", key, 0)
                .add("EVAL", "return redis.call('INCR', KEYS[1])", 1, key);
            commands.add("LPUSH", key, "x").add("GETSET", key, "end").add("GET", key);
        }
        auto const replies = fresh.execute(std::move(commands));
        ASSERT_EQ(replies.size(), 21U);
        for (std::size_t at = 0; at < 21; at += 7) {
            EXPECT_EQ(replies[at + 1].as<int>(), 2);
            EXPECT_EQ(replies[at + 3].as<int>(), 21);
            EXPECT_EQ(replies[at + 4].view().error_prefix(), "WRONGTYPE") << "a reply like any other";
            EXPECT_EQ(replies[at + 5].as<std::string>(), "21");
            EXPECT_EQ(replies[at + 6].as<std::string>(), "end");
        }
    }
    client client{patient(nodes)};
    auto const a = tag_on(1) + "a";
    auto const done =
        sync_wait(client.async_execute(transaction{}.add("PING").add("INCR", a).add("INCR", a).add("ECHO", "x")));
    ASSERT_TRUE(done);
    EXPECT_EQ((*done)[2].as<int>(), 2);
    auto const end = ending_of([&] { client.execute(transaction{}.add("INCR", a).add("INCR", tag_on(2))); });
    EXPECT_EQ(end.reason, errc::invalid_argument);
    EXPECT_THAT(end.text, testing::HasSubstr("hash tag"));
    EXPECT_EQ(client.command<int>("GET", a), 2) << "nothing ran";
}

TEST(cluster, opens_sessions_on_the_node_of_a_key) {
    cluster nodes{{.masters = 2, .replicas_per_master = 0}};
    client client{patient(nodes)};
    auto const key = tag_on(1, 2);
    auto session = client.open_session(key);
    session.command("WATCH", key);
    auto const moved = [&] { return session.execute(transaction{}.add("INCR", key)); };
    client.command("SET", key, 5);
    EXPECT_FALSE(moved()) << "somebody else changed it";
    session.command("WATCH", key);
    EXPECT_TRUE(moved());
    EXPECT_EQ(client.command<int>("GET", key), 6);

    nodes.migrate_slot(slot_of(key), 0);
    auto const end = ending_of([&] { session.command("GET", key); });
    EXPECT_EQ(end.reason, errc::server) << "what it watched is not there";
    EXPECT_THAT(end.text, testing::StartsWith("MOVED"));
    // Nothing but the session has noticed so far; the client learns from it.
    EXPECT_TRUE(eventually([&] {
        session = client.open_session(key);
        return !ending_of([&] { session.command("GET", key); }).reason;
    }));
    session.command("LPUSH", key + "list", "element");
    EXPECT_EQ(sync_wait(session.async_command<std::vector<std::string>>("BLPOP", key + "list", 1)).back(), "element");
}

// After a refused EXEC nothing is watched any more, so that it must not be repeated on the quiet.
TEST(cluster, does_not_repeat_the_refused_transaction_of_a_session) {
    cluster nodes{{.masters = 2, .replicas_per_master = 0}};
    client client{patient(nodes)};
    auto const tag = tag_on(0, 2);
    client.command("MSET", tag + "a", 1, tag + "b", 1);
    nodes.begin_migration(slot_of(tag), 1);
    move_some(nodes.node(0), nodes.node(1), {tag + "b"});
    auto session = client.open_session(tag);
    session.command("WATCH", tag + "a");
    auto const end =
        ending_of([&] { session.execute(transaction{}.add("MSET", tag + "a", 2, tag + "b", 2).within(5s)); });
    EXPECT_EQ(end.reason, errc::server);
    EXPECT_THAT(end.text, testing::StartsWith("TRYAGAIN"));
}

TEST(cluster, is_found_by_any_seed_that_lives) {
    cluster nodes{{.masters = 1, .replicas_per_master = 0}};
    port_reservation const nobody;
    port_reservation const nobody_either;
    auto const dead =
        "127.0.0.1:" + std::to_string(nobody.port()) + ",127.0.0.1:" + std::to_string(nobody_either.port());
    for (int i = 0; i < 5; ++i) {
        client client{"redis+cluster://" + dead + "," + nodes.node(0).address().address()};
        EXPECT_EQ(client.command<std::string>("PING"), "PONG");
    }
    client lost{"redis+cluster://" + dead};
    auto const end = hurried_ending(lost, request{"GET", "key"}.within(800ms));
    EXPECT_EQ(end.reason, errc::unavailable);
    EXPECT_THAT(end.text, testing::HasSubstr("refused"));
    EXPECT_LT(end.after, 5s);
    EXPECT_GE(end.after, 750ms) << "one may still come up";
}

TEST(cluster, lets_in_those_who_know_the_password) {
    cluster nodes{{.masters = 2,
                   .replicas_per_master = 0,
                   .password = "secret",
                   .users = {"app on >apple ~app:* &* +@all -command"}}};
    auto const as = [&](std::string const& user, std::string const& password) {
        return client_options{.url = nodes.url(), .user = user, .password = password};
    };
    client administrator{as("", "secret")};
    EXPECT_EQ(administrator.command<std::string>("SET", "key", "value"), "OK");

    client app{as("app", "apple")};  // who may not even ask where the keys of a command are
    for (int i = 0; i < 20; ++i) {
        auto const key = "app:" + std::to_string(i);
        EXPECT_EQ(app.command<std::string>("SET", key, i), "OK");
        EXPECT_EQ(app.command<int>("EVAL", "return redis.call('GET', KEYS[1])", 1, key), i);
        app.command("XADD", key + "stream", "*", "field", "value");
        EXPECT_TRUE(app.command("XREAD", "STREAMS", key + "stream", 0).is_aggregate());
    }
    EXPECT_THAT(ending_of([&] { app.command("GET", "key"); }).text, testing::StartsWith("NOPERM"));

    for (auto const& [user, password] : {std::pair{"", "wrong"}, {"nobody", "secret"}, {"", ""}}) {
        client stranger{as(user, password)};
        auto const end = ending_of([&] { stranger.command("GET", "key"); });
        EXPECT_EQ(end.reason, errc::authentication) << end.text;
        EXPECT_LT(end.after, 5s) << "at once, not when the request's time is over";
        auto const deaf = ending_of([&] { static_cast<void>(stranger.subscribe("news", [](message const&) {})); });
        EXPECT_EQ(deaf.reason, errc::authentication) << deaf.text;
        EXPECT_LT(deaf.after, 5s);
        auto const log_ins = [&] { return errors_everywhere(nodes, "WRONGPASS") + errors_everywhere(nodes, "NOAUTH"); };
        auto const so_far = log_ins();
        EXPECT_FALSE(eventually([&] { return log_ins() != so_far; }, 700ms)) << "nobody asks, so nobody logs in";
    }
}

TEST(cluster, speaks_tls) {
    certificates const files;
    cluster nodes{{.masters = 2, .replicas_per_master = 0, .password = "secret", .tls = files.server()}};
    client client{{.url = nodes.url(), .password = "secret", .tls = {.ca_file = files.ca()}}};
    for (int i = 0; i < 50; ++i) EXPECT_EQ(client.command<std::string>("SET", i, i), "OK");
    nodes.migrate_slot(slot_of("7"), slot_of("7") < slot_count / 2 ? 1 : 0);
    EXPECT_EQ(client.command<int>("GET", 7), 7) << "MOVED leads to a TLS port too";
    lockstep::client distrustful{{.url = nodes.url(), .password = "secret", .tls = {.ca_file = files.other_ca()}}};
    auto const end = hurried_ending(distrustful, request{"PING"}.within(1s));
    EXPECT_EQ(end.reason, errc::unavailable);
    EXPECT_THAT(end.text, testing::HasSubstr("certificate"));
}

}  // namespace
}  // namespace lockstep::test
