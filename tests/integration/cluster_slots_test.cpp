// Slots on the move, step by step: what a client is told on the way, and what its user sees of that, which is nothing.
#include "cluster_support.hpp"

namespace lockstep::test {
namespace {

/// All of them leave in one turn of the client's thread, before the first answer can come.
task<std::vector<std::string>> storm(client& through, std::vector<std::string> keys, std::size_t count) {
    co_await through.async_command("PING");
    std::vector<task<std::string>> reads;
    for (std::size_t i = 0; i < count; ++i)
        reads.push_back(through.async_command<std::string>("GET", keys[i % keys.size()]));
    co_return co_await when_all(std::move(reads));
}

// Every request is sent to the old owner. The map is asked for once and not by each of them.
TEST(cluster_slots, that_moved_cause_one_refresh_at_a_time) {
    cluster nodes{{.replicas_per_master = 0}};
    client client{patient(nodes)};
    std::vector<std::string> keys;
    for (int i = 0; i < 20; ++i) keys.push_back(tag_on(0, 3, i));
    for (auto const& key : keys) client.command("SET", key, key);
    for (auto const& key : keys) client.command("GET", key);
    for (auto const& key : keys) nodes.migrate_slot(slot_of(key), 1);
    for (std::size_t i = 0; i < 3; ++i) nodes.node(i).must({"CONFIG", "RESETSTAT"});

    auto const begin = now_ms();
    auto const values = sync_wait(storm(client, keys, 2000));
    for (std::size_t i = 0; i < values.size(); ++i) EXPECT_EQ(values[i], keys[i % keys.size()]);
    EXPECT_GE(errors_of(nodes.node(0), "MOVED"), 1000);
    EXPECT_TRUE(eventually([&] { return map_requests(nodes) > 0; }));
    EXPECT_LE(map_requests(nodes), 2 + (now_ms() - begin) / 50);

    EXPECT_TRUE(eventually([&] {
        nodes.node(0).must({"CONFIG", "RESETSTAT"});
        for (auto const& key : keys) client.command("GET", key);
        return errors_of(nodes.node(0), "MOVED") == 0;
    })) << "the map is right again";
}

TEST(cluster_slots, on_the_move_are_followed_key_by_key) {
    cluster nodes{{.replicas_per_master = 0}};
    client client{patient(nodes)};
    auto const tag = tag_on(0);
    auto const slot = slot_of(tag);
    auto const key = [&](int i) { return tag + std::to_string(i); };
    for (int i = 0; i < 10; ++i) client.command("SET", key(i), i);
    nodes.begin_migration(slot, 1);
    auto& from = nodes.node(0);
    auto& to = nodes.node(1);
    move_some(from, to, {key(0), key(1), key(2), key(3), key(4)});

    for (int i = 0; i < 10; ++i)
        EXPECT_EQ(client.command<int>("GET", key(i)), i) << (i < 5 ? "moved" : "not moved yet");
    for (int i = 0; i < 10; ++i) EXPECT_EQ(client.command<int>("INCR", key(i)), i + 1);
    client.command("SET", tag + "new", "born in the new place");
    EXPECT_EQ(to.must({"CLUSTER", "COUNTKEYSINSLOT", std::to_string(slot)}).integer, 6);
    EXPECT_EQ(from.must({"CLUSTER", "COUNTKEYSINSLOT", std::to_string(slot)}).integer, 5);
    EXPECT_GE(calls_of(to, "asking"), 11);
    EXPECT_EQ(client.command<std::string>("EVAL", "return redis.call('GET', KEYS[1])", 1, tag + "new"),
              "born in the new place");

    // Many at once, so that an ASKING and its answer stand between those of others.
    std::vector<task<int>> reads;
    for (int i = 0; i < 500; ++i) reads.push_back(client.async_command<int>("GET", key(i % 10)));
    auto const values = sync_wait(when_all(std::move(reads)));
    for (std::size_t i = 0; i < values.size(); ++i) EXPECT_EQ(values[i], static_cast<int>(i % 10) + 1);

    nodes.move_keys(slot);
    for (int i = 0; i < 10; ++i) EXPECT_EQ(client.command<int>("GET", key(i)), i + 1);
    nodes.finish_migration(slot);
    for (int i = 0; i < 10; ++i) EXPECT_EQ(client.command<int>("INCR", key(i)), i + 2);
}

TEST(cluster_slots, on_the_move_delay_commands_whose_keys_are_on_both_sides) {
    cluster nodes{{.replicas_per_master = 0}};
    client client{patient(nodes)};
    auto const tag = tag_on(2);
    auto const slot = slot_of(tag);
    client.command("MSET", tag + "here", 1, tag + "there", 1);
    nodes.begin_migration(slot, 0);
    move_some(nodes.node(2), nodes.node(0), {tag + "there"});

    begun set{client.async_command<std::string>("MSET", tag + "here", 2, tag + "there", 2)};
    begun script{client.async_command<int>("EVAL", "return redis.call('INCR', KEYS[1]) + redis.call('INCR', KEYS[2])",
                                           2, tag + "here", tag + "there")};
    begun both{client.async_execute(
        transaction{}.add("INCR", tag + "count").add("INCR", tag + "here").add("INCR", tag + "there"))};
    auto const hurried = hurried_ending(client, request{"MGET", tag + "here", tag + "there"}.within(300ms));
    EXPECT_EQ(hurried.reason, errc::unavailable);
    EXPECT_THAT(hurried.text, testing::HasSubstr("TRYAGAIN"));
    // The transaction is refused by the new owner, which an ASK has sent it to, or, since Valkey 9, by the old one at its EXEC.
    EXPECT_TRUE(eventually([&] {
        return errors_of(nodes.node(2), "TRYAGAIN") >= 6 &&
               (errors_of(nodes.node(0), "TRYAGAIN") >= 2 || rejections_of(nodes.node(2), "exec") >= 2);
    }));
    EXPECT_FALSE(set.done());
    EXPECT_FALSE(script.done());
    EXPECT_FALSE(both.done());

    nodes.move_keys(slot);
    nodes.finish_migration(slot);
    EXPECT_EQ(set.get(), "OK");
    static_cast<void>(script.get());
    EXPECT_TRUE(both.get());
    EXPECT_EQ(client.command<int>("GET", tag + "count"), 1) << "the transaction ran once";
}

TEST(cluster_slots, on_the_move_take_a_transaction_as_a_whole_and_once) {
    cluster nodes{{.replicas_per_master = 0}};
    client client{patient(nodes)};
    auto const tag = tag_on(1);
    auto const slot = slot_of(tag);
    auto const run = [&] {
        auto const done =
            client.execute(transaction{}.add("INCR", tag + "a").add("APPEND", tag + "log", "x").add("INCR", tag + "b"));
        ASSERT_TRUE(done);
        EXPECT_EQ((*done)[0].as<int>(), (*done)[2].as<int>());
        EXPECT_EQ((*done)[1].as<int>(), (*done)[0].as<int>());
    };
    run();
    nodes.begin_migration(slot, 2);
    run();
    EXPECT_EQ(client.command<int>("GET", tag + "a"), 2) << "where the keys still are";
    nodes.move_keys(slot);
    run();
    EXPECT_GE(calls_of(nodes.node(2), "asking"), 1);
    EXPECT_EQ(client.command<int>("GET", tag + "a"), 3) << "by ASK, where they are now";
    nodes.finish_migration(slot);
    run();
    EXPECT_EQ(client.command<int>("GET", tag + "a"), 4) << "by MOVED";
    EXPECT_EQ(client.command<std::string>("GET", tag + "log"), "xxxx");
    EXPECT_EQ(nodes.node(2).must({"GET", tag + "b"}).text, "4");
}

// What the old owner was sent is answered by it, also when it has no slot at all any more.
TEST(cluster_slots, that_were_the_last_of_a_node_leave_no_request_in_doubt) {
    cluster nodes{{.masters = 2}};
    client client{patient(nodes)};
    auto& guest = nodes.node(3);  // a replica that becomes a master without slots
    guest.must({"CLUSTER", "RESET", "SOFT"});
    guest.must({"CLUSTER", "MEET", "127.0.0.1", std::to_string(nodes.node(0).port()),
                std::to_string(nodes.node(0).bus_port())});
    ASSERT_TRUE(nodes.wait_until_ok());
    auto const key = tag_on(0, 2);
    nodes.migrate_slot(slot_of(key), 3);
    EXPECT_TRUE(eventually([&] {
        auto const before = errors_everywhere(nodes, "MOVED");
        client.command("GET", key);
        return errors_everywhere(nodes, "MOVED") == before;
    })) << "the client knows where the key is";

    guest.must({"CLIENT", "PAUSE", "60000", "WRITE"});
    begun write{client.async_command<int>("INCR", key)};
    ASSERT_TRUE(eventually([&] { return guest.info("blocked_clients") == "1"; }));
    // Without SETSLOT on the guest: since Valkey 8 a pause of writes holds that back, too.
    auto const slot = std::to_string(slot_of(key));
    auto const new_owner = nodes.node(1).must({"CLUSTER", "MYID"}).text;
    nodes.node(1).must({"CLUSTER", "SETSLOT", slot, "IMPORTING", guest.must({"CLUSTER", "MYID"}).text});
    guest.must({"CLUSTER", "DELSLOTS", slot});
    nodes.node(1).must({"CLUSTER", "SETSLOT", slot, "NODE", new_owner});
    nodes.node(0).must({"CLUSTER", "SETSLOT", slot, "NODE", new_owner});
    ASSERT_TRUE(eventually([&] { return guest.command({"GET", key}).text.starts_with("MOVED"); }));
    ASSERT_EQ(guest.info("blocked_clients"), "1");
    auto const asked = map_requests(nodes);
    auto session = client.open_session(key);  // on the guest, and told there that the slot has moved
    EXPECT_EQ(ending_of([&] { session.command("GET", key); }).reason, errc::server);
    ASSERT_TRUE(eventually([&] { return map_requests(nodes) > asked; }));
    guest.must({"CLIENT", "UNPAUSE"});
    EXPECT_EQ(write.get(), 1) << "sent on, not lost";
    EXPECT_TRUE(eventually([&] { return connections_named(guest, "worker") == 1; })) << "only the session's";
}

TEST(cluster_slots, that_leave_a_node_take_nothing_off_what_was_counted) {
    cluster nodes{{.masters = 2}};
    client client{patient(nodes)};
    auto& guest = nodes.node(3);  // a replica that becomes a master without slots
    guest.must({"CLUSTER", "RESET", "SOFT"});
    guest.must({"CLUSTER", "MEET", "127.0.0.1", std::to_string(nodes.node(0).port()),
                std::to_string(nodes.node(0).bus_port())});
    ASSERT_TRUE(nodes.wait_until_ok());
    auto const key = tag_on(0, 2);
    nodes.migrate_slot(slot_of(key), 3);
    ASSERT_TRUE(eventually([&] {
        client.command("GET", key);
        return connections_named(guest, "worker") == 1;
    }));
    auto const before = client.statistics();
    nodes.migrate_slot(slot_of(key), 0);
    ASSERT_TRUE(eventually([&] {
        client.command("GET", key);
        return connections_named(guest, "worker") == 0;
    })) << "it has no slot any more";
    auto const after = client.statistics();
    EXPECT_GE(after.connects, before.connects) << "by which it is seen that something may have been sent twice";
    EXPECT_GT(after.requests, before.requests);
    EXPECT_GT(after.bytes_received, before.bytes_received);
    EXPECT_EQ(after.pending, 0U);
}

TEST(cluster_slots, without_an_owner_are_waited_for) {
    cluster nodes{{.replicas_per_master = 0, .node_timeout = 500ms}};
    client client{patient(nodes)};
    client.command("SET", tag_on(0), 0);
    client.command("SET", tag_on(1), 1);
    nodes.node(0).kill9();
    ASSERT_TRUE(eventually(
        [&] {
            return nodes.node(1).must({"CLUSTER", "INFO"}).text.starts_with("cluster_state:fail");
        },
        20s));

    auto const down = hurried_ending(client, request{"GET", tag_on(1)}.within(300ms));
    EXPECT_EQ(down.reason, errc::unavailable);
    EXPECT_THAT(down.text, testing::AnyOf(testing::HasSubstr("CLUSTERDOWN"), testing::HasSubstr(nodes.node(0).address().address())))
        << "what it heard last: the cluster's state, or that the one who would know the slots now is dead";
    auto const dead = hurried_ending(client, request{"GET", tag_on(0)}.within(300ms));
    EXPECT_EQ(dead.reason, errc::unavailable);
    EXPECT_THAT(dead.text, testing::HasSubstr(nodes.node(0).address().address()));
    EXPECT_LT(down.after + dead.after, 10s);

    begun patiently{client.async_command<int>("INCR", tag_on(1))};
    begun elsewhere{client.async_command<int>("INCR", tag_on(0))};
    nodes.node(0).restart();
    EXPECT_EQ(patiently.get(), 2);
    EXPECT_EQ(elsewhere.get(), 1) << "it lost its data, and serves again";
}

}  // namespace
}  // namespace lockstep::test
