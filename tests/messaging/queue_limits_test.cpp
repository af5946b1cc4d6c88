// Limits that belong to a queue: what is kept of its dead letters, how long it may be, and what it forgets at once.
#include "queue_support.hpp"

#include "support/log_lines.hpp"

#include <lockstep/work_stealing_queue.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <optional>
#include <string>
#include <vector>

namespace lockstep::test {
namespace {

using testing::HasSubstr;
using testing::SizeIs;
using texts = queue<std::string>;

class queue_limits : public testing::Test {
protected:
    /// So many more dead letters.
    static void bury(texts& where, int count) {
        for (int i = 0; i < count; i += 200) {
            std::vector<std::string> values;
            for (int n = i; n < std::min(count, i + 200); ++n) values.push_back(std::to_string(n));
            where.enqueue_many(values);
            std::vector<texts::item> items;
            for (std::size_t n = 0; n < values.size(); ++n) items.push_back(where.dequeue());
            std::vector<begun<bool>> all;
            for (auto& one : items) all.emplace_back(as_true(one.async_nack(0ms, "why")));
            for (auto& one : all) one.get();
        }
    }
    /// Somebody looks, and there is nothing.
    static void look(texts& where) { EXPECT_FALSE(where.dequeue(1ms)); }

    redis_server server;
    client a{server.url()};
    client b{server.url()};
};

TEST_F(queue_limits, dead_letters_are_kept_whatever_their_number) {
    texts names{a, "name", {.max_deliveries = 1}};
    bury(names, 1'200);
    EXPECT_EQ(names.counts().dead, 1'200);
    EXPECT_EQ(names.counts().dropped, 0);
    EXPECT_THAT(names.dead_letters(10'000), SizeIs(1'200));
}

TEST_F(queue_limits, the_youngest_dead_letters_are_kept_if_their_number_is_limited_and_the_others_counted_and_logged) {
    log_lines log;
    texts names{a, "name", {.max_deliveries = 1, .max_dead = 3}};
    for (int i = 0; i < 10; ++i) bury(names, 1);
    EXPECT_EQ(names.counts().dead, 3);
    EXPECT_EQ(names.counts().dropped, 7);
    EXPECT_EQ(log.count("dead letters were dropped"), 1U) << "and no more for a minute";
    work_stealing_queue<std::string> lanes{a, "lanes", "one", {.items = {.max_deliveries = 1, .max_dead = 1}}};
    for (int i = 0; i < 2; ++i) {
        lanes.push("x");
        lanes.dequeue().nack();
    }
    EXPECT_EQ(lanes.counts().dead, 1);
    EXPECT_EQ(lanes.counts().dropped, 1);
    EXPECT_EQ(lanes.lanes().size(), 0U);
}

TEST_F(queue_limits, dead_letters_are_dropped_when_they_are_old) {
    log_lines log;
    texts names{a, "name", {.max_deliveries = 1, .dead_retention = 300ms}};
    bury(names, 5);
    EXPECT_EQ(names.counts().dropped, 0);
    EXPECT_TRUE(eventually([&] {
        look(names);
        return names.counts().dead == 0;
    }));
    EXPECT_EQ(names.counts().dropped, 5);
    EXPECT_EQ(server.must({"EXISTS", queue_key + ":dead"}).integer, 0);
}

TEST_F(queue_limits, dead_letters_of_a_paused_queue_are_dropped_when_they_are_old) {
    log_lines log;
    texts names{a, "name", {.max_deliveries = 1, .dead_retention = 300ms}};
    bury(names, 5);
    names.pause();
    EXPECT_TRUE(eventually([&] {
        look(names);
        return names.counts().dead == 0;
    }));
    EXPECT_EQ(names.counts().dropped, 5);
}

TEST_F(queue_limits, stay_as_long_as_there_may_be_dead_letters_after_a_pause_too) {
    texts names{a, "name", {.max_deliveries = 1, .dead_retention = 24h * 30}};
    bury(names, 1);
    names.pause();
    names.resume();
    EXPECT_GT(server.must({"PTTL", queue_key}).integer, std::chrono::milliseconds{24h * 29}.count());
}

TEST_F(queue_limits, dead_letters_take_about_as_much_memory_as_they_may) {
    log_lines log;
    texts names{a, "name", {.max_deliveries = 1, .max_dead_bytes = 100'000}};
    for (int i = 0; i < 30; ++i) {
        names.enqueue(std::string(10'000, 'x'));
        names.dequeue().nack();
    }
    auto const counts = names.counts();
    EXPECT_GE(counts.dead, 4);
    EXPECT_LE(counts.dead, 12);
    EXPECT_EQ(counts.dead + counts.dropped, 30);
    EXPECT_LE(server.must({"MEMORY", "USAGE", queue_key + ":dead"}).integer, 130'000);
}

TEST_F(queue_limits, many_dead_letters_are_dropped_in_bounded_steps) {
    log_lines log;
    texts generous{a, "name", {.max_deliveries = 1}};
    bury(generous, 2'500);
    texts strict{b, "name", {.max_dead = 10}};
    look(strict);
    EXPECT_GE(strict.counts().dead, 500) << "1,000 in each call";
    EXPECT_TRUE(eventually([&] {
        look(strict);
        return strict.counts().dead == 10;
    }));
    EXPECT_EQ(strict.counts().dropped, 2'490);
}

TEST_F(queue_limits, what_one_object_has_set_holds_for_those_that_set_nothing) {
    log_lines log;
    texts setting{a, "name", {.max_deliveries = 2, .max_length = 2, .max_dead = 1}};
    texts plain{b, "name"};
    setting.enqueue("x");
    for (int i = 0; i < 2; ++i) plain.dequeue().nack();
    EXPECT_EQ(plain.counts().dead, 1) << "after two deliveries";
    bury(plain, 0);
    for (auto const* const value : {"y", "z"}) EXPECT_TRUE(plain.try_enqueue(value));
    EXPECT_FALSE(plain.try_enqueue("too many"));
    begun<enqueued> waiting_for_room{plain.async_enqueue("later")};
    EXPECT_TRUE(eventually([&] { return waiting(server, "room") == "1"; }));
    plain.dequeue().ack();
    EXPECT_TRUE(waiting_for_room.get().is_new);
    for (int i = 0; i < 2; ++i) plain.dequeue().nack();
    EXPECT_EQ(plain.counts().dead, 1);
    EXPECT_EQ(plain.counts().dropped, 1);
    texts changing{b, "name", {.max_length = 100}};
    changing.enqueue("more");
    EXPECT_TRUE(texts(a, "name").try_enqueue("and more")) << "the limit that was set last";
    EXPECT_EQ(setting.try_enqueue("but not for who has set another"), std::nullopt);
}

TEST_F(queue_limits, those_who_set_different_ones_cost_each_call_no_more_than_others) {
    texts one{a, "name", {.max_length = 100}};
    texts other{b, "name", {.max_length = 200}};
    for (auto* const each : {&one, &other}) each->enqueue("x");
    auto const before = calls_of(server, "pexpire");
    for (int i = 0; i < 10; ++i) {
        for (auto* const each : {&one, &other}) {
            each->enqueue("x");
            each->dequeue().ack();
        }
    }
    EXPECT_LE(calls_of(server, "pexpire") - before, 2) << "the hash is not kept anew each time";
    other.enqueue("x");
    EXPECT_EQ(server.must({"HGET", queue_key, "o"}).text, " 200   ");
    texts plain{b, "name"};
    drain(plain);
    begun<texts::item> taking{plain.async_dequeue()};
    ASSERT_TRUE(eventually([&] { return waiting(server) == "1"; }));
    texts third{a, "name", {.max_length = 300}};
    third.enqueue("y");
    EXPECT_EQ(taking.get().value(), "y");
    EXPECT_TRUE(eventually([&] { return server.must({"HGET", queue_key, "o"}).text == " 300   "; })) << "also where it was handed over in a message";
}

// ---- a queue that is full

TEST_F(queue_limits, more_at_once_than_can_ever_wait_are_refused) {
    texts names{a, "name", {.max_length = 100}};
    std::vector<std::string> const many(101, "x");
    try {
        names.enqueue_many(many);
        FAIL() << "it was accepted";
    } catch (invalid_argument_error const& refusal) {
        EXPECT_THAT(refusal.what(), HasSubstr("101 items can never be in a queue whose max_length is 100"));
    }
    EXPECT_EQ(names.counts().ready, 0);
}

TEST_F(queue_limits, who_waits_for_room_may_give_up_after_a_time) {
    texts names{a, "name", {.max_length = 1}};
    names.enqueue("x");
    EXPECT_FALSE(names.try_enqueue_for("y", 30ms));
    EXPECT_FALSE(names.try_enqueue_for("y", 0ms));
    EXPECT_FALSE(begun<std::optional<enqueued>>{names.async_try_enqueue_for("y", 30ms)}.get());
    EXPECT_TRUE(eventually([&] { return waiting(server, "room") == "0"; })) << "nobody is told of room";
    begun<std::optional<enqueued>> patient{names.async_try_enqueue_for("y", 60s)};
    ASSERT_TRUE(eventually([&] { return waiting(server, "room") == "1"; }));
    texts{b, "name"}.dequeue().ack();
    EXPECT_TRUE(patient.get());
    EXPECT_EQ(names.counts().ready, 1);
}

TEST_F(queue_limits, who_is_cancelled_hears_how_many_were_enqueued) {
    texts names{a, "name", {.max_length = 10}};
    names.enqueue_many(std::vector<std::string>(8, "x"));
    std::stop_source stop;
    std::vector<std::string> const values(10, "y");
    begun<std::vector<enqueued>> many{with_stop_token(names.async_enqueue_many(values), stop.get_token())};
    ASSERT_TRUE(eventually([&] { return names.counts().ready == 10 && waiting(server, "room") == "1"; }));
    stop.request_stop();
    try {
        many.get();
        FAIL() << "it was not cancelled";
    } catch (cancelled_error const& problem) {
        EXPECT_THAT(problem.what(), HasSubstr("2 of 10 items were enqueued"));
    }
}

// ---- purge

TEST_F(queue_limits, purge_removes_items_with_keys_in_parts_and_frees_their_keys) {
    texts names{a, "name"};
    auto held = [&] {
        names.enqueue("held", {.key = "held"});
        return names.dequeue();
    }();
    std::vector<begun<enqueued>> all;
    for (int i = 0; i < 1'800; ++i) {
        auto const key = std::to_string(i);
        enqueue_options how{.key = key};
        if (i % 3 == 1) how.priority = i % 2 == 0 ? 1 : -1;
        if (i % 3 == 2) how.delay = 1h;
        all.emplace_back(names.async_enqueue("x", how));
    }
    for (auto& one : all) one.get();
    EXPECT_EQ(names.purge(), 1'800);
    auto const counts = names.counts();
    EXPECT_EQ(counts.ready + counts.delayed, 0);
    EXPECT_EQ(counts.held, 1);
    EXPECT_EQ(server.must({"HLEN", queue_key + ":dedup"}).integer, 1) << "of the one that is held";
    EXPECT_TRUE(names.enqueue("x", {.key = "7"}).is_new);
    EXPECT_FALSE(names.enqueue("x", {.key = "held"}).is_new);
    held.ack();
}

TEST_F(queue_limits, purge_of_a_queue_that_remembers_many_keys_is_quick) {
    texts names{a, "name"};
    names.enqueue("x", {.key = "k", .key_window = 1h});
    names.dequeue().ack();
    for (int part = 0; part < 20; ++part) {
        server.must({"EVAL",
                     "for i = 1, 5000 do local k = ARGV[1] .. '-' .. i redis.call('HSET', KEYS[1], k, 'x 99999999999999') redis.call('ZADD', KEYS[2], 99999999999999, k) end",
                     "2", queue_key + ":dedup", queue_key + ":recent", std::to_string(part)});
    }
    names.enqueue("y");
    server.must({"CONFIG", "SET", "slowlog-log-slower-than", "100000"});  // the script took half a second
    server.must({"SLOWLOG", "RESET"});
    EXPECT_EQ(names.purge(), 1);
    EXPECT_EQ(server.must({"SLOWLOG", "LEN"}).integer, 0);
    EXPECT_FALSE(names.enqueue("x", {.key = "k", .key_window = 1h}).is_new) << "and they are remembered";
}

// ---- lanes

TEST_F(queue_limits, the_short_lane_of_a_dead_worker_is_not_passed_over_for_ever) {
    {
        work_stealing_queue<std::string> dead{a, "lanes", "dead"};
        for (int i = 0; i < 3; ++i) dead.push("old");
    }
    work_stealing_queue<std::string> busy{a, "lanes", "busy"};
    work_stealing_queue<std::string> thief{b, "lanes", "thief", {.half = false}};
    std::vector<std::string> const more(20, "new");
    int old = 0;
    for (int taken = 0; old < 3 && taken < 2'000; ++taken) {
        if (taken % 20 == 0) busy.push_many(more);
        auto item = thief.dequeue(10s);
        ASSERT_TRUE(item);
        if (item->value() == "old") ++old;
        item->ack();
    }
    EXPECT_EQ(old, 3);
}

}  // namespace
}  // namespace lockstep::test
