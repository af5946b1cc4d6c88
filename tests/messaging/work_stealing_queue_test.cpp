// What a work-stealing queue promises, in both forms on every topology; then under faults.
#include <lockstep/work_stealing_queue.hpp>

#include "queue_support.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

namespace lockstep::test {
namespace {

using testing::ElementsAre;
using testing::Pair;

std::string const stealing_key = "lockstep:{name}:stealing";

class work_stealing_contract : public contract {
protected:
    using texts = work_stealing_queue<std::string>;
    using item = texts::item;

    void push(client& by, texts& to, std::string const& what) {
        run(
            by, [&] { return to.push(what); }, [&] { return to.async_push(what); });
    }
    void push_many(texts& to, int count) {
        std::vector<std::string> many;
        for (int i = 0; i < count; ++i) many.push_back(std::to_string(i));
        to.push_many(many);
    }
    std::optional<item> dequeue(client& by, texts& from, std::chrono::milliseconds time = 10s) {
        return run(
            by, [&] { return from.dequeue(time); }, [&] { return from.async_dequeue(time); });
    }
    std::string take(client& by, texts& from) {
        auto one = dequeue(by, from);
        if (!one) return "nothing";
        run(
            by, [&] { one->ack(); }, [&] { return one->async_ack(); });
        return one->value();
    }
    auto lanes(client& by, texts& of) {
        return run(
            by, [&] { return of.lanes(); }, [&] { return of.async_lanes(); });
    }

    texts of_a{a, "name", "anna"};
    texts of_b{b, "name", "berta"};
};
LOCKSTEP_CONTRACT(work_stealing_contract);

TEST_P(work_stealing_contract, takes_its_own_first_and_in_order) {
    for (auto const* const one : {"a1", "a2", "a3"}) push(a, of_a, one);
    push(b, of_b, "b1");
    EXPECT_THAT(lanes(a, of_a), ElementsAre(Pair("anna", 3), Pair("berta", 1)));
    EXPECT_EQ(take(a, of_a), "a1");
    EXPECT_EQ(take(b, of_b), "b1");
    EXPECT_EQ(take(a, of_a), "a2");
    EXPECT_EQ(take(a, of_a), "a3");
    EXPECT_FALSE(dequeue(a, of_a, 20ms));
    EXPECT_TRUE(eventually([&] { return leftovers(server) == std::vector{stealing_key}; }));
}

TEST_P(work_stealing_contract, steals_the_younger_half_of_the_fullest) {
    push_many(of_a, 10);
    texts of_c{a, "name", "clara"};
    push(a, of_c, "c");
    EXPECT_EQ(take(b, of_b), "5");
    EXPECT_THAT(lanes(a, of_a), ElementsAre(Pair("anna", 5), Pair("berta", 4), Pair("clara", 1)));
    EXPECT_EQ(take(b, of_b), "6");
    EXPECT_EQ(take(a, of_a), "0");
    texts one_by_one{b, "name", "dora", {.half = false}};
    EXPECT_EQ(take(b, one_by_one), "4");
    EXPECT_THAT(lanes(a, of_a), ElementsAre(Pair("berta", 3), Pair("anna", 3), Pair("clara", 1)));
    auto const sum = run(
        a, [&] { return of_a.counts(); }, [&] { return of_a.async_counts(); });
    EXPECT_EQ(sum.ready, 7);
    EXPECT_EQ(of_a.purge(), 7);
    EXPECT_TRUE(eventually([&] { return leftovers(server) == std::vector{stealing_key}; }));
}

// Between two calls of a thief: who is the fullest, and the theft.
TEST_P(work_stealing_contract, finds_nothing_where_another_thief_was_first) {
    a.command("ZADD", stealing_key + ":lanes", 5, "clara");
    EXPECT_FALSE(dequeue(a, of_a, 0ms));
    EXPECT_THAT(lanes(a, of_a), ElementsAre());
    a.command("ZADD", stealing_key + ":lanes", 5, "clara");
    push(b, of_b, "b1");
    EXPECT_EQ(take(a, of_a), "b1");
}

TEST_P(work_stealing_contract, a_look_finds_what_others_have) {
    push(a, of_a, "x");
    auto one = run(
        b, [&] { return of_b.try_dequeue(); }, [&] { return of_b.async_try_dequeue(); });
    ASSERT_TRUE(one);
    one->ack();
    EXPECT_FALSE(of_b.try_dequeue());
}

TEST_P(work_stealing_contract, wakes_the_lanes_own_worker_and_others_to_steal) {
    begun first{of_a.async_dequeue(60s)};
    ASSERT_TRUE(eventually([&] { return waiting(server, "waiting", stealing_key) == "1"; }));
    begun second{of_b.async_dequeue(60s)};
    ASSERT_TRUE(eventually([&] { return waiting(server, "waiting", stealing_key) == "2"; }));
    EXPECT_TRUE(is_silent(server));
    client c{url()};
    texts{c, "name", "clara"}.push_to("berta", "for berta");
    auto got = second.get();
    ASSERT_TRUE(got);
    EXPECT_EQ(got->value(), "for berta");
    EXPECT_FALSE(first.done());
    got->ack();
    texts{c, "name", "clara"}.push("for anybody");
    auto stolen = first.get();
    ASSERT_TRUE(stolen);
    EXPECT_EQ(stolen->value(), "for anybody");
    stolen->ack();
}

TEST_P(work_stealing_contract, remembers_a_lanes_worker_only_while_it_waits) {
    auto const is_known = [&] { return server.must({"HEXISTS", stealing_key, "wanna"}).integer == 1; };
    begun first{of_a.async_dequeue(60s)};
    ASSERT_TRUE(eventually(is_known));
    texts{b, "name", "berta"}.push_to("anna", "x");
    auto got = first.get();
    ASSERT_TRUE(got);
    got->ack();
    EXPECT_FALSE(is_known()) << "it was told";
    EXPECT_FALSE(dequeue(a, of_a, 50ms));
    EXPECT_TRUE(eventually([&] { return !is_known(); })) << "it left";
    begun second{of_a.async_dequeue(60s)};
    ASSERT_TRUE(eventually(is_known));
    texts{b, "name", "berta"}.push("y");
    auto stolen = second.get();
    ASSERT_TRUE(stolen);
    stolen->ack();
    EXPECT_FALSE(is_known()) << "it was told of something else";
}

TEST_P(work_stealing_contract, gives_items_again_and_keeps_dead_letters) {
    texts strict{a, "name", "anna", {.items = {.max_deliveries = 2}}};
    push(a, of_a, "x");
    for (int i = 1; i <= 2; ++i) {
        auto one = dequeue(a, strict);
        ASSERT_TRUE(one);
        EXPECT_EQ(one->deliveries(), i);
        one->nack(0ms, "no");
    }
    EXPECT_EQ(of_b.counts().dead, 1);
    EXPECT_EQ(of_b.requeue_dead(), 1);
    EXPECT_THAT(lanes(a, of_a), ElementsAre(Pair("berta", 1)));
    EXPECT_EQ(take(a, of_a), "x");
    EXPECT_EQ(ending_of([&] { texts{a, "name", "no spaces"}; }).reason, errc::invalid_argument);
    EXPECT_EQ(ending_of([&] { texts{a, "name", ""}; }).reason, errc::invalid_argument);
}

class work_stealing_faults : public near_and_far {
protected:
    using texts = work_stealing_queue<std::string>;
    texts here{near, "name", "anna", {.items = {.visibility = 300ms}}};
    texts there{far, "name", "berta", {.items = {.visibility = 300ms}}};
};

TEST_F(work_stealing_faults, a_theft_whose_reply_is_lost_loses_nothing) {
    for (int i = 0; i < 9; ++i) here.push(std::to_string(i));
    there.push("own");
    std::map<std::string, int> seen;
    for (int i = 0; i < 10; ++i) {
        proxy.drop_replies(1);
        auto one = there.dequeue(10s);
        ASSERT_TRUE(one);
        ++seen[one->value()];
        EXPECT_EQ(one->deliveries(), 1);
        one->ack();
    }
    EXPECT_EQ(seen.size(), 10);
    EXPECT_FALSE(here.try_dequeue());
}

TEST_F(work_stealing_faults, lanes_of_workers_that_were_killed_while_they_waited_do_not_pile_up) {
    here.push("x");
    here.dequeue(10s)->ack();
    for (int i = 0; i < 100; ++i) server.must({"HSET", stealing_key, "wkilled" + std::to_string(i), "nobody." + std::to_string(i)});
    begun waiting_one{here.async_dequeue(60s)};
    EXPECT_TRUE(eventually([&] { return server.must({"HEXISTS", stealing_key, "wanna"}).integer == 1 && server.must({"HLEN", stealing_key}).integer < 32; }));
    here.push("y");
    waiting_one.get()->ack();
}

TEST_F(work_stealing_faults, what_a_vanished_worker_had_is_stolen_and_comes_back) {
    for (int i = 0; i < 5; ++i) there.push(std::to_string(i));
    auto held = there.dequeue(10s);
    ASSERT_TRUE(held);
    proxy.hold();
    std::map<std::string, int> seen;
    for (int i = 0; i < 5; ++i) {
        auto one = here.dequeue(20s);
        ASSERT_TRUE(one);
        seen[one->value()] = one->deliveries();
        one->ack();
    }
    EXPECT_EQ(seen.size(), 5);
    EXPECT_EQ(seen["0"], 2);
    proxy.heal();
    EXPECT_EQ(ending_of([&] { held->ack(); }).reason, errc::lease_lost);
}

}  // namespace
}  // namespace lockstep::test
