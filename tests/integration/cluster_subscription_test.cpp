// Listening in a cluster: shard channels live with their slot, plain channels everywhere.
#include "cluster_support.hpp"

namespace lockstep::test {
namespace {

/// True when the shard channel is heard again, whoever its master is now.
bool arrives(client& client, hearing const& radio, std::string const& channel, std::string const& payload) {
    client.execute(request{"SPUBLISH", channel, payload}.repeatable());
    return eventually([&] { return radio.heard(payload); });
}

TEST(cluster_subscription, of_a_shard_channel_follows_its_slot) {
    cluster nodes{{.replicas_per_master = 0}};
    client client{patient(nodes)};
    std::vector<std::unique_ptr<hearing>> radios;
    std::vector<subscription> subscriptions;
    auto const channel = [](std::size_t i) { return tag_on(i % 3, 3, static_cast<int>(i / 3)) + "news"; };
    for (std::size_t i = 0; i < 12; ++i) {
        radios.push_back(std::make_unique<hearing>());
        subscriptions.push_back(client.subscribe(radios[i]->options(channel(i), subscription_kind::shard)));
        EXPECT_EQ(client.command<int>("SPUBLISH", channel(i), "first"), 1);
    }
    for (std::size_t i = 0; i < 12; ++i) {
        EXPECT_TRUE(eventually([&] { return radios[i]->heard("first"); }));
        EXPECT_EQ(radios[i]->gaps(), 0);
    }
    for (int round = 1; round <= 3; ++round) {
        for (std::size_t i : {0U, 4U, 8U}) {
            auto const slot = slot_of(channel(i));
            nodes.migrate_slot(slot, (nodes.owner_of(slot) + 1) % 3);
            EXPECT_TRUE(eventually([&] { return radios[i]->gaps() == round; }))
                << "taken up again where the slot is now";
            auto const text = "round " + std::to_string(round);
            EXPECT_EQ(nodes.node(nodes.owner_of(slot)).must({"SPUBLISH", channel(i), text}).integer, 1);
            EXPECT_TRUE(eventually([&] { return radios[i]->heard(text); }));
        }
    }
    for (std::size_t i = 0; i < 12; ++i) {
        EXPECT_TRUE(arrives(client, *radios[i], channel(i), "last"));
        EXPECT_EQ(radios[i]->times("last"), 1);
        bool const moved = i == 0 || i == 4 || i == 8;
        EXPECT_EQ(radios[i]->gaps(), moved ? 3 : 0) << "the others were left alone";
    }
    subscriptions.clear();
    for (std::size_t i = 0; i < 12; ++i)
        EXPECT_TRUE(eventually([&] { return client.command<int>("SPUBLISH", channel(i), "nobody") == 0; }));
}

TEST(cluster_subscription, of_a_shard_channel_is_placed_later_when_no_node_tells_the_map) {
    cluster nodes{{.replicas_per_master = 0}};
    auto const on_all = [&](std::vector<std::string> const& command) {
        for (std::size_t i = 0; i < nodes.size(); ++i) nodes.node(i).must(command);
    };
    on_all({"ACL", "SETUSER", "listener", "on", "nopass", "~*", "&*", "+@all"});
    auto options = patient(nodes);
    options.user = "listener";
    client client{options};
    hearing radio;
    auto const channel = tag_on(0) + "news";
    auto const subscription = client.subscribe(radio.options(channel, subscription_kind::shard));

    on_all({"ACL", "SETUSER", "listener", "-cluster|slots"});
    auto const refused = errors_everywhere(nodes, "NOPERM");
    nodes.migrate_slot(slot_of(channel), 1);
    EXPECT_TRUE(eventually([&] { return errors_everywhere(nodes, "NOPERM") >= refused + 3; })) << "each node was asked";
    on_all({"ACL", "SETUSER", "listener", "+cluster|slots"});
    EXPECT_TRUE(eventually([&] { return radio.gaps() == 1; })) << "taken up again";
    EXPECT_TRUE(arrives(client, radio, channel, "again"));
}

TEST(cluster_subscription, can_be_ended_and_taken_up_again_at_once) {
    cluster nodes{{.masters = 1, .replicas_per_master = 0}};
    client client{patient(nodes)};
    hearing radio;
    auto subscription = client.subscribe(radio.options("news", subscription_kind::shard));
    for (int i = 0; i < 50; ++i) {
        subscription.unsubscribe();
        subscription = client.subscribe(radio.options("news", subscription_kind::shard));
        auto const text = std::to_string(i);
        EXPECT_TRUE(arrives(client, radio, "news", text));
    }
    EXPECT_EQ(radio.gaps(), 0);
    EXPECT_LE(map_requests(nodes), 4) << "our own farewell is not the server's, so nobody looks for another place";
}

TEST(cluster_subscription, of_a_plain_channel_hears_each_message_once_wherever_it_is_published) {
    cluster nodes{{.replicas_per_master = 0}};
    client client{patient(nodes)};
    hearing radio;
    hearing all;
    auto const channel = tag_on(0) + "plain";
    auto const subscription = client.subscribe(radio.options(channel));
    auto const pattern = client.subscribe(all.options("*plain", subscription_kind::pattern));
    for (std::size_t i = 0; i < 3; ++i) {
        auto const text = "from " + std::to_string(i);
        nodes.node(i).must({"PUBLISH", channel, text});
        EXPECT_TRUE(eventually([&] { return radio.heard(text) && all.heard(text); }));
    }
    // The slot of its name means nothing for a plain channel.
    nodes.migrate_slot(slot_of(channel), 1);
    client.command("SET", channel, "so that somebody is sent on");
    hearing shard;
    auto const other = client.subscribe(shard.options(channel, subscription_kind::shard));  // on the same connections
    EXPECT_TRUE(arrives(client, shard, channel, "sharded"));
    for (int i = 0; i < 20; ++i) client.command("PUBLISH", channel, std::to_string(i));
    for (std::size_t i = 0; i < 3; ++i) {  // messages of one node keep their order: after its last all others have come
        auto const text = "last of " + std::to_string(i);
        nodes.node(i).must({"PUBLISH", channel, text});
        EXPECT_TRUE(eventually([&] { return radio.heard(text) && all.heard(text); }));
    }
    for (int i = 0; i < 20; ++i) {
        EXPECT_EQ(radio.times(std::to_string(i)), 1);
        EXPECT_EQ(all.times(std::to_string(i)), 1);
    }
    EXPECT_EQ(radio.gaps() + all.gaps(), 0);
    EXPECT_FALSE(shard.heard("19"));
}

TEST(slow_cluster_subscription, survives_the_failover_of_its_master) {
    cluster nodes;
    client client{patient(nodes)};
    hearing shard;
    hearing plain;
    auto const channel = tag_on(0) + "news";
    auto const one = client.subscribe(shard.options(channel, subscription_kind::shard));
    auto const two = sync_wait(client.async_subscribe(plain.options(channel)));

    nodes.failover(0);
    EXPECT_TRUE(eventually([&] { return shard.gaps() >= 1; })) << "by agreement: the old master gives the channel up";
    EXPECT_TRUE(arrives(client, shard, channel, "second"));
    auto const gaps = shard.gaps();

    nodes.kill_master(0);
    EXPECT_TRUE(eventually([&] { return shard.gaps() > gaps; })) << "by a kill: the connection is lost";
    EXPECT_TRUE(arrives(client, shard, channel, "third"));
    EXPECT_EQ(shard.times("third"), 1);
    nodes.node(1).must({"PUBLISH", channel, "to all"});
    EXPECT_TRUE(eventually([&] { return plain.heard("to all"); }));
    EXPECT_EQ(plain.times("to all"), 1);
}

}  // namespace
}  // namespace lockstep::test
