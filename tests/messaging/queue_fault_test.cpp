// Queues under faults: lost replies, cuts, killed consumers, failovers.
#include "queue_support.hpp"
#include "support/clock_file.hpp"

#include "support/key_slot.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <map>
#include <memory>
#include <optional>
#include <thread>

namespace lockstep::test {
namespace {

using testing::ElementsAre;
using texts = queue<std::string>;

std::int64_t server_ms(redis_server& server) {
    auto const time = server.must({"TIME"}).elements;
    return std::stoll(time[0].text) * 1000 + std::stoll(time[1].text) / 1000;
}

class queue_faults : public near_and_far {
protected:
    texts here{near, "name"};
    texts there{far, "name"};
};

TEST_F(queue_faults, an_enqueue_whose_reply_is_lost_enqueues_once) {
    there.enqueue("0");
    for (int i = 1; i <= 3; ++i) {
        proxy.drop_replies(1);
        there.enqueue(std::to_string(i));
        EXPECT_EQ(proxy.counters().struck, static_cast<std::uint64_t>(i));
    }
    EXPECT_THAT(drain(here), ElementsAre("0", "1", "2", "3"));
}

TEST_F(queue_faults, thousands_of_enqueues_whose_replies_are_lost_are_enqueued_once_each) {
    there.enqueue("x");
    ASSERT_EQ(drain(here).size(), 1);
    proxy.hold(direction::to_client);
    std::vector<begun<enqueued>> all;
    for (int i = 0; i < 3000; ++i) all.emplace_back(there.async_enqueue(std::to_string(i)));
    ASSERT_TRUE(eventually([&] { return here.counts().ready > 0; }));
    proxy.cut();
    proxy.heal();
    std::set<std::string> ids;
    for (auto const& one : all) ids.insert(one.get().id);
    EXPECT_EQ(ids.size(), 3000);
    EXPECT_EQ(here.counts().ready, 3000);
    auto const found = drain(here);
    EXPECT_EQ(std::set(found.begin(), found.end()).size(), 3000);
}

TEST_F(queue_faults, what_is_enqueued_at_once_through_one_object_stays_in_order_whatever_is_cut) {
    std::vector<begun<enqueued>> all;
    all.emplace_back(there.async_enqueue("0"));
    static_cast<void>(all[0].get());
    for (int round = 1; round <= 6; ++round) {
        bool const is_reply = round % 2 == 0;  // anywhere in a call, or in its answer
        proxy.cut_after(static_cast<std::size_t>(is_reply ? 7 * round : 500 * round), is_reply ? direction::to_client : direction::to_server);
        for (int i = 0; i < 200; ++i) all.emplace_back(there.async_enqueue(std::to_string(all.size())));
        for (auto const& one : all) static_cast<void>(one.get());
        EXPECT_EQ(proxy.counters().struck, static_cast<std::uint64_t>(round));
    }
    auto const found = drain(here);
    ASSERT_EQ(found.size(), all.size());
    for (std::size_t i = 0; i != found.size(); ++i) ASSERT_EQ(found[i], std::to_string(i));
}

TEST_F(queue_faults, a_take_whose_reply_is_lost_gets_the_same_items_again) {
    for (int i = 0; i < 3; ++i) here.enqueue(std::to_string(i));
    EXPECT_EQ(there.counts().ready, 3);
    static_cast<void>(texts{far, "other"}.try_dequeue());  // the server knows the script
    proxy.drop_replies(1);
    auto one = there.dequeue(10s);
    EXPECT_EQ(proxy.counters().struck, 1);
    ASSERT_TRUE(one);
    EXPECT_EQ(one->value(), "0");
    EXPECT_EQ(one->deliveries(), 1);
    auto const now = here.counts();
    EXPECT_EQ(now.held, 1);
    EXPECT_EQ(now.ready, 2);
    proxy.drop_replies(1);
    one->ack();
    EXPECT_EQ(proxy.counters().struck, 2);
    EXPECT_EQ(here.counts().held, 0);
    EXPECT_THAT(drain(there), ElementsAre("1", "2"));
}

TEST_F(queue_faults, what_is_gone_when_it_is_taken_is_lost_with_its_reply) {
    texts fleeting{far, "name", {.reliable = false}};
    EXPECT_FALSE(fleeting.try_dequeue());
    here.enqueue("x");
    proxy.drop_replies(1);
    EXPECT_FALSE(fleeting.try_dequeue());
    EXPECT_EQ(proxy.counters().struck, 1);
    EXPECT_EQ(here.counts().ready, 0);
}

TEST_F(queue_faults, an_item_given_back_whose_reply_is_lost_is_there_once) {
    here.enqueue("x");
    auto one = there.dequeue(10s);
    ASSERT_TRUE(one);
    proxy.drop_replies(1);
    one->nack();
    EXPECT_EQ(here.counts().ready, 1);
    EXPECT_THAT(drain(here), ElementsAre("x"));
}

TEST_F(queue_faults, a_waiter_is_woken_by_what_came_while_it_was_cut_off) {
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

TEST_F(queue_faults, a_waiter_that_was_told_and_is_silent_is_passed_over) {
    begun first{there.async_dequeue(60s)};
    ASSERT_TRUE(eventually([&] { return waiting(server) == "1"; }));
    client third{server.url()};
    texts of_third{third, "name"};
    begun second{of_third.async_dequeue(60s)};
    ASSERT_TRUE(eventually([&] { return waiting(server) == "2"; }));
    proxy.hold(direction::both);  // connected, and deaf
    here.enqueue("x");
    auto got = second.get(5s);
    ASSERT_TRUE(got) << "after the claim window";
    got->ack();
    proxy.heal();
    here.enqueue("y");
    auto late = first.get();
    ASSERT_TRUE(late);
    EXPECT_EQ(late->value(), "y");
    late->ack();
}

// An item that comes alone is in the message that wakes who waits for it, leased for a moment.
TEST_F(queue_faults, an_item_in_a_message_is_held_for_as_long_as_one_that_was_taken) {
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

TEST_F(queue_faults, the_lease_of_an_item_in_a_message_counts_also_beside_one_that_is_put_off) {
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

TEST_F(queue_faults, an_item_in_a_message_that_is_lost_comes_back_soon) {
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

TEST_F(queue_faults, an_item_in_a_message_that_was_long_under_way_is_not_handed_out) {
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

TEST_F(queue_faults, an_item_in_a_message_that_is_lost_is_before_those_that_come_when_its_lease_is_over) {
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

TEST_F(queue_faults, an_item_that_may_be_delivered_once_only_is_not_sent_in_a_message) {
    begun waiting_one{there.async_dequeue(60s)};
    ASSERT_TRUE(eventually([&] { return waiting(server) == "1"; }));
    ASSERT_TRUE(is_silent(server));
    proxy.hold(direction::to_server);
    texts{near, "name", {.max_deliveries = 1}}.enqueue("x");
    EXPECT_EQ(here.counts().ready, 1) << "a message that is lost would be its only delivery";
    proxy.heal();
    ASSERT_TRUE(waiting_one.get());
}

TEST_F(queue_faults, an_item_with_a_priority_that_goes_back_wakes_who_waits) {
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

TEST_F(queue_faults, what_is_gone_when_it_is_taken_goes_back_if_nobody_waits_for_it_any_more) {
    texts fleeting{far, "name", {.reliable = false}};
    EXPECT_FALSE(fleeting.try_dequeue());
    here.enqueue("x", {.priority = 5});
    proxy.hold(direction::to_client);
    EXPECT_FALSE(fleeting.dequeue(200ms));
    ASSERT_TRUE(eventually([&] { return here.counts().ready == 0; }));
    here.enqueue("y");
    proxy.heal();
    ASSERT_TRUE(eventually([&] { return here.counts().ready == 2; }));
    EXPECT_THAT(drain(here), ElementsAre("x", "y"));
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

TEST_F(queue_faults, a_waiter_that_is_silent_is_passed_over_also_when_who_enqueued_is_gone) {
    begun first{there.async_dequeue(60s)};
    ASSERT_TRUE(eventually([&] { return waiting(server) == "1"; }));
    client third{server.url()};
    texts of_third{third, "name"};
    begun second{of_third.async_dequeue(60s)};
    ASSERT_TRUE(eventually([&] { return waiting(server) == "2"; }));
    ASSERT_TRUE(is_silent(server));
    proxy.hold(direction::both);  // connected, and deaf
    std::make_unique<texts>(near, "name")->enqueue("x");
    auto got = second.get(10s);
    ASSERT_TRUE(got) << "its object is gone";
    got->ack();
    proxy.heal();
}

TEST_F(queue_faults, a_waiter_that_is_silent_is_passed_over_also_when_the_client_that_enqueued_is_closed) {
    begun first{there.async_dequeue(60s)};
    ASSERT_TRUE(eventually([&] { return waiting(server) == "1"; }));
    begun second{here.async_dequeue(60s)};
    ASSERT_TRUE(eventually([&] { return waiting(server) == "2"; }));
    ASSERT_TRUE(is_silent(server));
    proxy.hold(direction::both);
    {
        client brief{server.url()};
        texts{brief, "name"}.enqueue("x");
    }
    auto got = second.get(10s);
    ASSERT_TRUE(got);
    EXPECT_EQ(got->value(), "x");
    got->ack();
    proxy.heal();
}

TEST_F(queue_faults, who_waited_before_hears_when_the_lease_of_a_killed_consumer_ends) {
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

TEST_F(queue_faults, who_waits_again_is_not_forgotten_because_it_had_left) {
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

TEST_F(queue_faults, who_waited_before_hears_of_an_item_that_is_given_back_for_later) {
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

TEST_F(queue_faults, a_dead_waiter_is_passed_over_at_once) {
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

TEST_F(queue_faults, a_reconnect_in_the_middle_of_a_batch_loses_nothing) {
    std::vector<std::string> many;
    for (int i = 0; i < 2000; ++i) many.push_back(std::to_string(i));
    here.enqueue_many(many);
    std::map<std::string, int> seen;
    std::mutex mutex;
    {
        auto const worker = there.consume({.concurrency = 20}, [&](std::string const& value) {
            std::lock_guard const guard{mutex};
            ++seen[value];
        });
        for (int i = 0; i < 8; ++i) {
            auto const before = worker.done();
            ASSERT_TRUE(eventually([&] { return worker.done() > before || worker.done() >= 2000; }));
            proxy.cut_after(200);
        }
        ASSERT_TRUE(eventually([&] {
            auto const now = here.counts();
            return now.ready + now.held == 0;
        }));
    }
    EXPECT_EQ(seen.size(), 2000);
    for (auto const& [value, times] : seen) EXPECT_EQ(times, 1) << value;
}

TEST_F(queue_faults, without_a_server_calls_end_as_unavailable) {
    there.enqueue("x");
    client brief{{.url = proxy.url(), .command_timeout = 300ms}};
    texts through{brief, "name"};
    auto item = through.dequeue(5s);
    ASSERT_TRUE(item);
    proxy.refuse();
    proxy.cut();
    auto const taking = ending_of([&] { static_cast<void>(through.dequeue(100ms)); });
    EXPECT_EQ(taking.reason, errc::unavailable);
    EXPECT_LT(taking.after, 5s);
    auto const sending = ending_of([&] { through.enqueue("y"); });
    EXPECT_TRUE(sending.reason == errc::unavailable || sending.reason == errc::indeterminate);
    EXPECT_EQ(ending_of([&] { item->ack(); }).reason, errc::indeterminate);
    proxy.heal();
    EXPECT_TRUE(eventually([&] { return here.counts().held == 0; })) << "the acknowledgement is sent all the same";
}

TEST_F(queue_faults, a_lease_that_ends_out_of_reach_trips_its_token) {
    texts brief{far, "name", {.visibility = 300ms}};
    here.enqueue("x");
    auto item = brief.dequeue(5s);
    ASSERT_TRUE(item);
    auto const stop = item->stop_token();
    EXPECT_FALSE(stop.stop_requested());
    proxy.hold();
    EXPECT_TRUE(eventually([&] { return stop.stop_requested(); }));
    EXPECT_FALSE(item->is_valid());
    auto again = here.dequeue(10s);
    ASSERT_TRUE(again);
    EXPECT_EQ(again->deliveries(), 2);
    proxy.heal();
    again->ack();
    EXPECT_EQ(ending_of([&] { item->ack(); }).reason, errc::lease_lost);
}

// At each step a consumer can be killed at: while it waits, holding an item, after its work, after its acknowledgement.
class queue_killed : public testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(steps, queue_killed, testing::Values("take", "work", "ack", "acked"), [](auto const& of) { return of.param; });

TEST_P(queue_killed, an_item_of_a_killed_consumer_comes_back_unless_it_was_acknowledged) {
    redis_server server;
    client near{server.url()};
    texts here{near, "name"};
    here.enqueue("x");
    here.enqueue("y");
    child_process consumer{{program_path("queue_consumer"), server.url(), "name", GetParam(), "400"}};
    ASSERT_EQ(consumer.read_line(), "ready");
    consumer.kill();
    ASSERT_TRUE(consumer.wait());
    bool const gone = GetParam() == "acked";
    std::map<std::string, int> deliveries;
    while (true) {
        auto const now = here.counts();
        if (now.ready + now.held == 0) break;
        auto one = here.dequeue(20s);
        ASSERT_TRUE(one);
        deliveries[one->value()] = one->deliveries();
        one->ack();
    }
    EXPECT_EQ(deliveries["y"], 1);
    // Killed while it acknowledges: it may be done, or come back.
    if (GetParam() != "ack" || deliveries.contains("x")) {
        EXPECT_EQ(deliveries["x"], gone ? 0 : 2);
    }
    EXPECT_FALSE(here.try_dequeue());
    EXPECT_EQ(leftovers(server), std::vector{queue_key});
}

// The queue's own time stands still then, and goes on.
TEST(queue_and_clocks, what_comes_by_itself_is_not_late_when_the_servers_clock_is_set_back) {
    clock_file clock;
    redis_server server{{.clock = &clock}};
    client by{server.url()};
    queue_options const how{.visibility = 300ms, .renew = false};
    queue<std::string> silent{by, "name", how};
    queue<std::string> other{by, "name", how};
    silent.enqueue("lent");
    auto const lent = silent.dequeue(10s);
    ASSERT_TRUE(lent);
    silent.enqueue("put off", {.delay = 300ms});
    clock.step(-1h);
    std::vector<std::string> found;
    for (int i = 0; i < 2; ++i) {
        auto got = other.dequeue(20s);
        ASSERT_TRUE(got) << "an hour late";
        found.push_back(got->value());
        got->ack();
    }
    EXPECT_THAT(found, testing::UnorderedElementsAre("lent", "put off"));
    silent.enqueue("once more", {.delay = 10min});
    EXPECT_EQ(silent.counts().delayed, 1);
    clock.step(11min);
    EXPECT_EQ(silent.counts().ready, 1);
    EXPECT_TRUE(other.dequeue(20s));
}

TEST(queue_with_sentinel, goes_on_after_a_failover) {
    sentinel_group group{{.replicas = 1}};
    client a{{.url = group.sentinel_url(), .command_timeout = 40s}};
    client b{{.url = group.sentinel_url(), .command_timeout = 40s}};
    texts of_a{a, "name"};
    texts of_b{b, "name"};
    of_a.enqueue("x");
    auto held = of_b.dequeue(10s);
    ASSERT_TRUE(held);
    begun waiting_one{of_b.async_dequeue(60s)};
    ASSERT_TRUE(eventually([&] { return waiting(group.server(1)) == "1"; })) << "also at the replica";
    group.failover();
    held->ack();
    of_a.enqueue("y");
    auto got = waiting_one.get();
    ASSERT_TRUE(got);
    EXPECT_EQ(got->value(), "y");
    got->ack();
}

TEST(queue_on_a_cluster, goes_on_while_its_slot_moves) {
    cluster nodes{{.masters = 3, .replicas_per_master = 0}};
    client a{{.url = nodes.url(), .command_timeout = 40s}};
    client b{{.url = nodes.url(), .command_timeout = 40s}};
    texts of_a{a, "name"};
    texts of_b{b, "name"};
    begun waiting_one{of_b.async_dequeue(60s)};
    auto const slot = slot_of(queue_key);
    ASSERT_TRUE(eventually([&] { return waiting(nodes.node(nodes.owner_of(slot))) == "1"; }));
    nodes.migrate_slot(slot, (nodes.owner_of(slot) + 1) % 3);
    of_a.enqueue("x");
    auto got = waiting_one.get();
    ASSERT_TRUE(got);
    got->ack();
}

// Scripts touch keys that they are not given: one that ran now would end in the middle, at the first that is not at this node.
TEST(queue_on_a_cluster, is_not_touched_while_its_slot_moves) {
    cluster nodes{{.masters = 3, .replicas_per_master = 0}};
    client a{{.url = nodes.url(), .command_timeout = 40s}};
    texts queue_of_a{a, "name"};
    queue_of_a.enqueue("x");  // all that the next call is given is there now
    auto const slot = slot_of(queue_key);
    auto& from = nodes.node(nodes.owner_of(slot));
    nodes.begin_migration(slot, (nodes.owner_of(slot) + 1) % 3);
    begun second{queue_of_a.async_enqueue("y")};
    EXPECT_TRUE(eventually([&] { return from.must({"INFO", "errorstats"}).text.find("errorstat_TRYAGAIN") != std::string::npos; }));
    EXPECT_EQ(from.must({"LLEN", queue_key + ":ready"}).integer, 1);
    nodes.move_keys(slot);
    nodes.finish_migration(slot);
    EXPECT_TRUE(second.get().is_new);
    for (auto const* const expected : {"x", "y"}) {
        auto got = queue_of_a.dequeue(30s);
        ASSERT_TRUE(got);
        EXPECT_EQ(got->value(), expected);
        got->ack();
    }
}

}  // namespace
}  // namespace lockstep::test
