// A queue that is paused delivers nothing, by any path, and what waits when it is resumed is delivered at once.
#include "queue_support.hpp"

#include <lockstep/work_stealing_queue.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace lockstep::test {
namespace {

using texts = queue<std::string>;
using lanes = work_stealing_queue<std::string>;

class queue_pause_contract : public contract {
protected:
    template <class Queue>
    bool pause(client& by, Queue& which) {
        return run(
            by, [&] { return which.pause(); }, [&] { return which.async_pause(); });
    }
    template <class Queue>
    bool resume(client& by, Queue& which) {
        return run(
            by, [&] { return which.resume(); }, [&] { return which.async_resume(); });
    }

    texts of_a{a, "name"};
    texts of_b{b, "name"};
};
LOCKSTEP_CONTRACT(queue_pause_contract);

TEST_P(queue_pause_contract, delivers_nothing_while_paused_and_keeps_what_comes_and_what_is_held) {
    of_a.enqueue("held");
    of_a.enqueue("waits");
    auto held = of_b.dequeue();
    EXPECT_FALSE(of_b.counts().paused);
    EXPECT_TRUE(pause(a, of_a));
    EXPECT_FALSE(pause(b, of_b)) << "it is already";
    EXPECT_TRUE(of_b.counts().paused);
    of_a.enqueue("comes");
    EXPECT_FALSE(of_b.dequeue(50ms));
    EXPECT_FALSE(of_b.try_dequeue());
    EXPECT_EQ(held.value(), "held");
    held.extend(10s);
    held.ack();
    EXPECT_EQ(of_b.counts().ready, 2);
    EXPECT_EQ(of_b.counts().held, 0);
    EXPECT_TRUE(resume(b, of_b));
    EXPECT_FALSE(resume(a, of_a)) << "it is not paused";
    EXPECT_FALSE(of_a.counts().paused);
    EXPECT_THAT(drain(of_a), testing::ElementsAre("waits", "comes"));
    EXPECT_GT(server.must({"PTTL", queue_key}).integer, 0) << "it is forgotten when nobody uses it, as before";
}

TEST_P(queue_pause_contract, hands_items_to_all_who_wait_as_soon_as_it_is_resumed) {
    pause(a, of_a);
    std::vector<std::unique_ptr<begun<std::optional<texts::item>>>> waiting_ones;
    for (int i = 0; i < 20; ++i) waiting_ones.push_back(std::make_unique<begun<std::optional<texts::item>>>(of_b.async_dequeue(60s)));
    ASSERT_TRUE(eventually([&] { return server.must({"ZCARD", queue_key + ":waiting"}).integer == 1; }));
    for (int i = 0; i < 20; ++i) of_a.enqueue(std::to_string(i));
    EXPECT_EQ(of_a.counts().ready, 20) << "nor was one sent in a message to who waits";
    resume(a, of_a);
    for (auto& one : waiting_ones) {
        auto got = one->get();
        ASSERT_TRUE(got);
        got->ack();
    }
}

TEST_P(queue_pause_contract, also_keeps_back_what_is_due_or_given_back_meanwhile) {
    of_a.enqueue("first");
    of_a.enqueue("second", {.delay = 100ms});
    auto first = of_b.dequeue();
    begun waiting_one{of_b.async_dequeue(60s)};
    ASSERT_TRUE(eventually([&] { return server.must({"ZCARD", queue_key + ":waiting"}).integer == 1; }));
    pause(a, of_a);
    first.nack();
    ASSERT_TRUE(eventually([&] { return of_a.counts().ready == 2; }));
    EXPECT_FALSE(waiting_one.done());
    resume(a, of_a);
    auto got = waiting_one.get();
    ASSERT_TRUE(got);
    EXPECT_EQ(got->value(), "first");
    got->ack();
    auto second = of_b.dequeue();
    EXPECT_EQ(second.value(), "second");
    second.ack();
}

TEST_P(queue_pause_contract, holds_for_queues_with_lanes) {
    lanes mine{a, "name", "anna"};
    lanes others{b, "name", "berta"};
    begun waiting_one{mine.async_dequeue(60s)};
    ASSERT_TRUE(eventually([&] { return server.must({"ZCARD", "lockstep:{name}:stealing:waiting"}).integer == 1; }));
    EXPECT_TRUE(pause(b, others));
    others.push("one");
    mine.push("two");
    EXPECT_FALSE(others.dequeue(50ms));
    EXPECT_FALSE(waiting_one.done());
    EXPECT_EQ(others.counts().ready, 2);
    EXPECT_TRUE(others.counts().paused);
    EXPECT_TRUE(resume(b, others));
    waiting_one.get()->ack();
    others.dequeue().ack();
}

class queue_pauses : public near_and_far {
protected:
    texts here{near, "name"};
    texts there{far, "name"};
};

TEST_F(queue_pauses, stay_for_as_long_as_they_are_not_ended_even_of_an_empty_queue) {
    EXPECT_TRUE(here.pause());
    EXPECT_EQ(server.must({"PTTL", queue_key}).integer, -1);
    EXPECT_EQ(here.enqueue("x").is_new, true);
    EXPECT_FALSE(here.try_dequeue());
    here.purge();
    EXPECT_EQ(server.must({"PTTL", queue_key}).integer, -1) << "whatever is done with it meanwhile";
    EXPECT_TRUE(here.counts().paused);
    EXPECT_TRUE(here.resume());
    EXPECT_GT(server.must({"PTTL", queue_key}).integer, 0);
}

TEST_F(queue_pauses, cost_nothing_whoever_waits_for_what_is_there) {
    begun waiting_one{here.async_dequeue(60s)};
    begun waiting_too{there.async_dequeue(60s)};
    ASSERT_TRUE(eventually([&] { return waiting(server) == "2"; }));
    here.pause();
    here.enqueue("x");
    here.enqueue("y", {.delay = 10ms});
    EXPECT_TRUE(is_silent(server));
    here.resume();
    waiting_one.get()->ack();
    waiting_too.get()->ack();
}

TEST_F(queue_pauses, hold_also_where_a_reply_was_lost) {
    proxy.drop_replies();
    EXPECT_TRUE(there.pause());
    EXPECT_TRUE(here.counts().paused);
    proxy.drop_replies();
    EXPECT_TRUE(there.resume());
    EXPECT_FALSE(here.counts().paused);
}

// One that was told of the resumption, and sleeps, must not keep the others from what is there.
TEST_F(queue_pauses, end_for_all_who_wait_though_the_first_of_them_is_cut_off) {
    begun deaf{there.async_dequeue(60s)};
    ASSERT_TRUE(eventually([&] { return waiting(server) == "1"; }));
    begun waiting_one{here.async_dequeue(60s)};
    ASSERT_TRUE(eventually([&] { return waiting(server) == "2"; }));
    here.pause();
    here.enqueue("x");
    proxy.hold();
    here.resume();
    auto got = waiting_one.get();
    ASSERT_TRUE(got);
    got->ack();
    proxy.heal();
}

}  // namespace
}  // namespace lockstep::test
