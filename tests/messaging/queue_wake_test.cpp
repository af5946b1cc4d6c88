// Who waits for items of a queue is told of them, whoever was told before, sleeps, leaves or dies; and items that come in the message itself.
#include "queue_support.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <memory>
#include <optional>

namespace lockstep::test {
namespace {

using texts = queue<std::string>;

std::int64_t server_ms(redis_server& server) {
    auto const time = server.must({"TIME"}).elements;
    return std::stoll(time[0].text) * 1000 + std::stoll(time[1].text) / 1000;
}

class queue_wakes : public near_and_far {
protected:
    texts here{near, "name"};
    texts there{far, "name"};
};

TEST_F(queue_wakes, a_waiter_is_woken_by_what_came_while_it_was_cut_off) {
    begun waiting_one{there.async_dequeue(60s)};
    ASSERT_TRUE(eventually([&] { return waiting(server) == "1"; }));
    proxy.refuse();
    proxy.cut();
    here.enqueue("x");
    EXPECT_FALSE(waiting_one.done());
    proxy.heal();
    auto got = waiting_one.get();
    ASSERT_TRUE(got);
    got->ack();
}

// The server is given a reply to write to who enqueues before it has something to write to who waits, and writes to that one first. Where nobody
// waited, that would be in vain.
TEST_F(queue_wakes, who_waits_is_written_to_before_who_enqueues_unless_nobody_waited) {
    client_options how;
    how.keepalive_interval = 0ms;
    how.url = server.url();
    client quiet{how};
    texts from{quiet, "name"};
    auto const pings = [&] {
        auto const text = server.must({"INFO", "commandstats"}).text;
        std::string const field = "cmdstat_ping:calls=";
        auto const at = text.find(field);
        return at == std::string::npos ? 0 : std::stol(text.substr(at + field.size()));
    };
    auto const enqueue_to_one_who_waits = [&] {
        begun taking{here.async_dequeue(60s)};
        EXPECT_TRUE(eventually([&] { return waiting(server) == "1"; }));
        auto const before = pings();
        from.enqueue("x");
        auto const during = pings() - before;
        auto got = taking.get();
        EXPECT_TRUE(got);
        if (got) got->ack();
        return during;
    };
    enqueue_to_one_who_waits();
    EXPECT_GT(enqueue_to_one_who_waits(), 0);
    from.enqueue("nobody waits");
    auto const before = pings();
    from.enqueue("nor now");
    EXPECT_EQ(pings(), before);
}

/// Two who wait. The first is connected, and deaf from now on.
class queue_silence : public queue_wakes {
protected:
    queue_silence() {
        EXPECT_TRUE(eventually([&] { return waiting(server) == "1"; }));
        second.emplace(of_third.async_dequeue(60s));
        EXPECT_TRUE(eventually([&] { return waiting(server) == "2"; }));
        EXPECT_TRUE(is_silent(server));
        proxy.hold(direction::both);
    }

    begun<std::optional<texts::item>> first{there.async_dequeue(60s)};
    client third{server.url()};
    texts of_third{third, "name"};
    std::optional<begun<std::optional<texts::item>>> second;
};

TEST_F(queue_silence, who_was_told_and_is_silent_is_passed_over) {
    here.enqueue("x");
    auto got = second->get(5s);
    ASSERT_TRUE(got) << "after the claim window";
    got->ack();
    proxy.heal();
    here.enqueue("y");
    auto late = first.get();
    ASSERT_TRUE(late);
    EXPECT_EQ(late->value(), "y");
    late->ack();
}

TEST_F(queue_silence, who_is_silent_is_passed_over_also_when_another_one_was_told_shortly_before) {
    proxy.heal();
    begun in_front{here.async_dequeue(60s)};
    ASSERT_TRUE(eventually([&] { return waiting(server) == "3"; }));
    // The first of them, so that it hears of the first item.
    server.must({"ZADD", queue_key + ":waiting", "1", server.must({"ZRANGE", queue_key + ":waiting", "-1", "-1"}).elements[0].text});
    proxy.hold(direction::both);
    auto const began = server_ms(server);
    here.enqueue("x");
    auto taken = in_front.get();
    ASSERT_TRUE(taken);
    // So late that the second item is still on its way when it is looked after the first.
    while (server_ms(server) - began < 300) {}
    here.enqueue("y");
    auto got = second->get(6s);  // before anything is renewed
    ASSERT_TRUE(got);
    EXPECT_EQ(got->value(), "y");
    got->ack();
    taken->ack();
    proxy.heal();
}

TEST_F(queue_silence, who_is_silent_is_passed_over_also_when_the_object_that_enqueued_is_gone) {
    std::make_unique<texts>(near, "name")->enqueue("x");
    auto got = second->get(10s);
    ASSERT_TRUE(got);
    EXPECT_EQ(got->value(), "x");
    got->ack();
    proxy.heal();
}

TEST_F(queue_silence, who_is_silent_is_passed_over_also_when_the_client_that_enqueued_is_closed) {
    {
        client brief{server.url()};
        texts{brief, "name"}.enqueue("x");
    }
    auto got = second->get(10s);
    ASSERT_TRUE(got);
    EXPECT_EQ(got->value(), "x");
    got->ack();
    proxy.heal();
}

// An item that comes alone is in the message that wakes who waits for it, leased for a moment.
TEST_F(queue_wakes, an_item_in_a_message_is_held_for_as_long_as_one_that_was_taken) {
    begun waiting_one{there.async_dequeue(60s)};
    ASSERT_TRUE(eventually([&] { return waiting(server) == "1"; }));
    here.enqueue("x");
    auto got = waiting_one.get();
    ASSERT_TRUE(got);
    EXPECT_TRUE(got->is_valid());
    EXPECT_TRUE(eventually([&] {
        auto const held = server.must({"ZRANGE", queue_key + ":held", "0", "0", "WITHSCORES"}).elements;
        return held.size() == 2 && std::stod(held[1].text) > static_cast<double>(server_ms(server) + 20'000);
    }));
    EXPECT_EQ(got->deliveries(), 1);
    got->ack();
    EXPECT_EQ(here.counts().held, 0);
}

TEST_F(queue_wakes, the_lease_of_an_item_in_a_message_counts_also_beside_one_that_is_put_off) {
    begun waiting_one{there.async_dequeue(60s)};
    ASSERT_TRUE(eventually([&] { return waiting(server) == "1"; }));
    std::vector<task<enqueued>> both;
    both.push_back(here.async_enqueue("now"));
    both.push_back(here.async_enqueue("later", {.delay = 60s}));
    static_cast<void>(sync_wait(when_all(std::move(both))));
    auto const state = server.must({"HGET", queue_key, "v"}).text;
    ASSERT_EQ(state.size(), 55U);
    double calm = 0;  // as in queue_state.lua
    std::memcpy(&calm, state.data() + 7 + 3 * sizeof calm, sizeof calm);
    EXPECT_GT(calm, 0);
    EXPECT_LE(calm, static_cast<double>(server_ms(server) + 400)) << "nobody would look for it before that";
    EXPECT_EQ(waiting_one.get()->value(), "now");
}

TEST_F(queue_wakes, an_item_in_a_message_that_is_lost_comes_back_soon) {
    begun waiting_one{there.async_dequeue(60s)};
    ASSERT_TRUE(eventually([&] { return waiting(server) == "1"; }));
    ASSERT_TRUE(is_silent(server));
    proxy.hold(direction::to_client);
    here.enqueue("x");
    EXPECT_EQ(here.counts().held, 1);
    proxy.cut();
    proxy.heal();
    auto got = waiting_one.get(5s);
    ASSERT_TRUE(got) << "when the moment is over, and not after its visibility of 30 s";
    EXPECT_EQ(got->deliveries(), 2);
    got->ack();
}

TEST_F(queue_wakes, an_item_in_a_message_that_was_long_under_way_is_not_handed_out) {
    begun waiting_one{there.async_dequeue(60s)};
    ASSERT_TRUE(eventually([&] { return waiting(server) == "1"; }));
    ASSERT_TRUE(is_silent(server));
    proxy.hold(direction::to_client);
    here.enqueue("x");
    auto other = here.dequeue(10s);  // when that lease is over
    ASSERT_TRUE(other);
    proxy.heal();
    here.enqueue("y");
    auto got = waiting_one.get();
    ASSERT_TRUE(got);
    EXPECT_EQ(got->value(), "y") << "the other one is held by somebody else";
    got->ack();
    other->ack();
}

TEST_F(queue_wakes, an_item_in_a_message_that_is_lost_is_before_those_that_come_when_its_lease_is_over) {
    begun lost{there.async_dequeue(60s)};
    ASSERT_TRUE(eventually([&] { return waiting(server) == "1"; }));
    begun next{here.async_dequeue(60s)};
    ASSERT_TRUE(eventually([&] { return waiting(server) == "2"; }));
    ASSERT_TRUE(is_silent(server)) << "they look once more when they are subscribed";
    proxy.hold(direction::to_client);
    {
        client brief{server.url()};  // which is not there any more when others would look whether it was taken
        texts{brief, "name"}.enqueue("first");
    }
    auto const held = server.must({"ZRANGE", queue_key + ":held", "0", "0", "WITHSCORES"}).elements;
    ASSERT_EQ(held.size(), 2);
    ASSERT_TRUE(eventually([&] { return static_cast<double>(server_ms(server)) > std::stod(held[1].text); }));
    client other{server.url()};
    texts{other, "name"}.enqueue("second");
    auto got = next.get();
    ASSERT_TRUE(got);
    EXPECT_EQ(got->value(), "first");
    EXPECT_EQ(got->deliveries(), 2);
    got->ack();
    proxy.heal();
    got = lost.get();
    ASSERT_TRUE(got);
    EXPECT_EQ(got->value(), "second");
    got->ack();
}

TEST_F(queue_wakes, an_item_that_may_be_delivered_once_only_is_not_sent_in_a_message) {
    begun waiting_one{there.async_dequeue(60s)};
    ASSERT_TRUE(eventually([&] { return waiting(server) == "1"; }));
    ASSERT_TRUE(is_silent(server));
    proxy.hold(direction::to_server);
    texts{near, "name", {.max_deliveries = 1}}.enqueue("x");
    EXPECT_EQ(here.counts().ready, 1) << "a message that is lost would be its only delivery";
    proxy.heal();
    ASSERT_TRUE(waiting_one.get());
}

TEST_F(queue_wakes, an_item_with_a_priority_that_goes_back_wakes_who_waits) {
    here.enqueue("x", {.priority = 5});
    auto one = here.dequeue(10s);
    ASSERT_TRUE(one);
    begun waiting_one{there.async_dequeue(60s)};
    ASSERT_TRUE(eventually([&] { return waiting(server) == "1"; }));
    ASSERT_TRUE(is_silent(server));
    one->nack();
    auto got = waiting_one.get(10s);
    ASSERT_TRUE(got) << "and not when it looks again, after 30 s";
    EXPECT_EQ(got->deliveries(), 2);
    got->ack();
}

/// Three who wait, one after the other; the first two are told when to look at something that is put off.
class queue_lookers : public testing::Test {
protected:
    queue_lookers() {
        for (std::size_t i = 0; i != 3; ++i) {
            waiters.emplace_back(of[i].async_dequeue(60s));
            EXPECT_TRUE(eventually([&] { return waiting(server) == std::to_string(i + 1); }));
        }
        EXPECT_TRUE(is_silent(server));
        by.enqueue("put off", {.delay = 2s});
    }

    redis_server server;
    std::array<client, 3> clients{client{server.url()}, client{server.url()}, client{server.url()}};
    std::array<texts, 3> of{texts{clients[0], "name"}, texts{clients[1], "name"}, texts{clients[2], "name"}};
    client producer{server.url()};
    texts by{producer, "name"};
    std::vector<begun<std::optional<texts::item>>> waiters;
};

TEST_F(queue_lookers, who_got_something_meanwhile_leaves_that_to_the_next_one) {
    by.enqueue("x");
    auto const one = waiters[0].get();
    by.enqueue("y");
    auto const other = waiters[1].get();
    auto const got = waiters[2].get(10s);
    ASSERT_TRUE(got) << "and not when it looks again, after 30 s";
    EXPECT_EQ(got->value(), "put off");
}

TEST_F(queue_lookers, who_leaves_leaves_that_to_the_next_one) {
    clients[0].close();
    clients[1].close();
    auto const got = waiters[2].get(10s);
    ASSERT_TRUE(got);
    EXPECT_EQ(got->value(), "put off");
}

TEST_F(queue_wakes, who_waited_before_hears_when_the_lease_of_a_killed_consumer_ends) {
    begun first{here.async_dequeue(60s)};
    ASSERT_TRUE(eventually([&] { return waiting(server) == "1"; }));
    child_process consumer{{program_path("queue_consumer"), server.url(), "name", "take", "300"}};
    ASSERT_TRUE(eventually([&] { return waiting(server) == "2"; }));
    ASSERT_TRUE(is_silent(server)) << "it looks once more when it is subscribed";
    there.enqueue("x");
    auto one = first.get();  // the first who waited
    ASSERT_TRUE(one);
    begun again{here.async_dequeue(60s)};
    ASSERT_TRUE(eventually([&] { return waiting(server) == "2"; }));
    there.enqueue("y");
    ASSERT_EQ(consumer.read_line(), "ready");
    consumer.kill();
    auto back = again.get(10s);
    ASSERT_TRUE(back) << "long before the look of every 30 s";
    EXPECT_EQ(back->value(), "y");
    EXPECT_EQ(back->deliveries(), 2);
    one->ack();
    back->ack();
}

task<std::optional<texts::item>> wait_briefly_then_long(texts& from) {
    auto brief = from.async_dequeue(30ms);
    static_cast<void>(co_await std::move(brief));
    auto long_one = from.async_dequeue(60s);
    co_return co_await std::move(long_one);
}

TEST_F(queue_wakes, who_waits_again_is_not_forgotten_because_it_had_left) {
    // The server does not know the script by which the first one leaves: it is sent again as a whole, behind the second one's question.
    for (int i = 0; i < 5; ++i) {
        server.must({"SCRIPT", "FLUSH"});
        begun waiting_one{wait_briefly_then_long(here)};
        ASSERT_TRUE(is_silent(server));
        ASSERT_EQ(waiting(server), "1");
        there.enqueue("x");
        auto got = waiting_one.get(10s);
        ASSERT_TRUE(got);
        got->ack();
    }
}

TEST_F(queue_wakes, who_waited_before_hears_of_an_item_that_is_given_back_for_later) {
    here.enqueue("x");
    auto one = there.dequeue(5s);
    ASSERT_TRUE(one);
    begun again{here.async_dequeue(60s)};
    ASSERT_TRUE(eventually([&] { return waiting(server) == "1"; }));
    one->nack(200ms);
    auto back = again.get(10s);
    ASSERT_TRUE(back);
    back->ack();
}

TEST_F(queue_wakes, a_dead_waiter_is_passed_over_at_once) {
    {
        child_process dying{{program_path("queue_consumer"), server.url(), "name", "wait"}};
        ASSERT_TRUE(eventually([&] { return waiting(server) == "1"; }));
        dying.kill();
        ASSERT_TRUE(dying.wait());
    }
    begun alive{there.async_dequeue(60s)};
    ASSERT_TRUE(eventually([&] { return waiting(server) == "2"; }));
    here.enqueue("x");
    EXPECT_EQ(waiting(server), "0") << "the dead one was dropped and the next one told in the same call";
    auto got = alive.get(5s);
    ASSERT_TRUE(got);
    got->ack();
}

}  // namespace
}  // namespace lockstep::test
