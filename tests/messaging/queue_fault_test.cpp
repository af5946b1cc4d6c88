// Queues under faults: lost replies, cuts, killed consumers, failovers.
#include "queue_support.hpp"

#include "support/clock_file.hpp"

#include "support/key_slot.hpp"

#include <lockstep/mutex.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <thread>

namespace lockstep::test {
namespace {

using testing::ElementsAre;
using texts = queue<std::string>;

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

TEST_F(queue_faults, an_item_given_back_whose_reply_is_lost_is_there_once) {
    here.enqueue("x");
    auto one = there.dequeue(10s);
    ASSERT_TRUE(one);
    proxy.drop_replies(1);
    one->nack();
    EXPECT_EQ(here.counts().ready, 1);
    EXPECT_THAT(drain(here), ElementsAre("x"));
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

// That other nodes can be reached says nothing of what is in the queue, or of a lock.
TEST(queue_on_a_cluster, is_not_empty_because_its_own_node_is_away) {
    cluster nodes{{.masters = 3, .replicas_per_master = 0}};
    client a{nodes.url()};
    texts names{a, "name"};
    mutex lock{a, "name"};
    names.counts();
    for (auto const* const other : {"{a}", "{b}", "{c}", "{d}"}) a.command("GET", other);  // a node or two besides
    nodes.node(nodes.owner_of(slot_of(queue_key))).kill9();
    EXPECT_EQ(ending_of([&] { static_cast<void>(names.dequeue(500ms)); }).reason, errc::unavailable);
    EXPECT_EQ(ending_of([&] { static_cast<void>(lock.try_acquire_for(500ms)); }).reason, errc::unavailable);
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
