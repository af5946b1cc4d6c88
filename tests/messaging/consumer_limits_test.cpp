// What is bounded: dead letters by age, replies by bytes. And what was trimmed away unread is told.
#include "consumer_support.hpp"
#include "scripts/all.hpp"
#include "support/failures.hpp"
#include "support/log_lines.hpp"

#include <lockstep/durable_bus.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>

namespace lockstep::test {
namespace {

using testing::HasSubstr;

class bounded_consumer : public testing::TestWithParam<form> {
protected:
    static constexpr std::size_t most_bytes = 256 * 1024;

    delivery_handler noting() {
        return handler_of(GetParam(), [this](delivery const& entry) { done.note(entry.find("n") ? *entry.find("n") : entry.id); });
    }
    void add(int from, int to, std::size_t bytes, stream_options options = {}) {
        stream of{a, "name", options};
        for (int i = from; i < to; ++i) of.add({{"n", std::to_string(i)}, {"data", std::string(bytes, 'x')}});
    }
    bool all_is_acknowledged() {
        return eventually([&] { return pending_at(server) == 0; }, 20s);
    }
    /// Adds dead letters that seem to be from 1970.
    void add_old_dead_letters(int count) {
        for (int i = 0; i < count; ++i) server.must({"XADD", stream_key + ":dead", "1000-" + std::to_string(i), "data", "old"});
    }

    ledger_of_work done;
    redis_server server;
    client a{server.url()};
    client small{{.url = server.url(), .max_reply_bytes = most_bytes}};
    stream orders{a, "name"};
};
INSTANTIATE_TEST_SUITE_P(as, bounded_consumer, testing::Values(form::blocking, form::coroutine),
                         [](auto const& of) { return std::string{of.param == form::blocking ? "function" : "coroutine"}; });

TEST_P(bounded_consumer, keeps_all_dead_letters_that_are_young_and_drops_and_counts_old_ones) {
    log_lines log;
    client owner{server.url()};
    add_old_dead_letters(150);
    add(0, 200, 1);
    consumer const one{owner, "name", handler_of(GetParam(), [](delivery const&) { throw reject{"never"}; }), {.group = "g", .idle_limit = 1h}};
    ASSERT_TRUE(eventually([&] { return one.statistics().dead == 200 && one.statistics().dead_dropped == 150; }));
    EXPECT_EQ(orders.dead_letters().length(), 200);
    EXPECT_EQ(log.count("were dropped"), 1U) << log.text();
}

TEST_P(bounded_consumer, drops_old_dead_letters_although_nothing_fails) {
    add_old_dead_letters(150);
    consumer const keeps{a, "name", noting(), {.group = "g", .idle_limit = 1h, .dead_retention = 0ms}};
    ASSERT_TRUE(eventually([&] { return calls_of(server, "xinfo|consumers") == 1; }));
    EXPECT_EQ(orders.dead_letters().length(), 150);
    consumer const drops{a, "name", noting(), {.group = "g", .idle_limit = 1h}};
    EXPECT_TRUE(eventually([&] { return drops.statistics().dead_dropped == 150; }));
    EXPECT_EQ(orders.dead_letters().length(), 0);
    EXPECT_EQ(keeps.statistics().dead_dropped, 0U);
}

TEST_P(bounded_consumer, drops_many_old_dead_letters_in_bounded_steps) {
    auto const dead = stream_key + ":dead";
    server.must({"EVAL", "for i = 1, 9999 do redis.call('XADD', KEYS[1], '1000-' .. i, 'data', string.rep('x', 100 + i % 97)) end", "1", dead});
    orders.create_group("g");
    auto const sweep = [&] {
        return server.must({"EVAL", std::string{scripts::stream_sweep.text}, "2", stream_key, dead, "g", "one", "1000", "0", "1000"}).elements.at(1).integer;
    };
    int steps = 0;
    for (auto dropped = sweep(); dropped > 0; dropped = sweep(), ++steps) EXPECT_LE(dropped, 2'000);
    EXPECT_GE(steps, 5);
    EXPECT_EQ(orders.dead_letters().length(), 0);
}

TEST_P(bounded_consumer, keeps_no_more_dead_letters_than_it_is_told_to) {
    add(0, 500, 1);
    consumer const one{a, "name", handler_of(GetParam(), [](delivery const&) { throw reject{"never"}; }), {.group = "g", .idle_limit = 1h, .max_dead_letters = 100}};
    ASSERT_TRUE(eventually([&] { return one.statistics().dead == 500; }));
    EXPECT_LT(orders.dead_letters().length(), 300) << "about a hundred";
    EXPECT_EQ(static_cast<std::uint64_t>(orders.dead_letters().length()) + one.statistics().dead_dropped, 500U);
}

TEST_P(bounded_consumer, is_told_of_what_was_trimmed_away_unread) {
    log_lines log;
    client owner{server.url()};
    orders.create_group("g");
    add(0, 1'000, 1, {.max_length = 100, .exact = true});
    std::atomic<int> told{0};
    consumer const one{owner, "name", noting(), {.group = "g", .idle_limit = 1h, .on_gap = [&] { ++told; }}};
    ASSERT_TRUE(eventually([&] { return done.different() == 100; }));
    EXPECT_TRUE(all_is_acknowledged());
    EXPECT_EQ(one.statistics().missed, 900U);
    EXPECT_EQ(one.statistics().gaps, 1U);
    EXPECT_TRUE(eventually([&] { return told == 1; }));
    EXPECT_EQ(log.count("900 entries of stream 'name' were trimmed away"), 1U) << log.text();
    consumer const other{owner, "name", noting(), {.group = "g", .idle_limit = 1h}};
    add(1'000, 1'100, 1);
    ASSERT_TRUE(eventually([&] { return done.different() == 200; }));
    EXPECT_EQ(one.statistics().missed + other.statistics().missed, 900U) << "nothing counts twice";
}

TEST_P(bounded_consumer, is_told_of_nothing_that_was_trimmed_before_there_was_its_group_or_after_it_was_read) {
    add(0, 1'000, 1, {.max_length = 100, .exact = true});
    consumer const one{a, "name", noting(), {.group = "g", .idle_limit = 1h}};
    ASSERT_TRUE(eventually([&] { return done.different() == 100; }));
    ASSERT_TRUE(all_is_acknowledged());
    orders.trim_to_length(0);
    add(1'000, 1'500, 1);
    ASSERT_TRUE(eventually([&] { return done.different() == 600; }));
    orders.trim_to_length(0);
    add(1'500, 1'501, 1);
    ASSERT_TRUE(eventually([&] { return done.different() == 601; }));
    EXPECT_EQ(one.statistics().missed, 0U);
    EXPECT_EQ(one.statistics().gaps, 0U);
}

TEST_P(bounded_consumer, is_told_of_what_is_trimmed_while_it_is_slow) {
    std::atomic<bool> hold{true};
    auto const work = [&](delivery const& entry) {
        EXPECT_TRUE(eventually([&] { return !hold.load(); }, 20s));
        done.note(*entry.find("n"));
    };
    orders.create_group("g");
    add(0, 3, 1);
    consumer const one{a, "name", delivery_handler{work}, {.group = "g", .idle_limit = 1h}};
    ASSERT_TRUE(eventually([&] { return one.statistics().running == 1; }));
    add(3, 500, 1, {.max_length = 50, .exact = true});
    hold = false;
    EXPECT_TRUE(eventually([&] { return done.different() + one.statistics().missed == 500; })) << done.different() << ", missed " << one.statistics().missed;
}

TEST_P(bounded_consumer, handles_large_entries_in_pieces_while_its_client_goes_on) {
    constexpr int count = 50;
    add(0, count, 60'000);
    consumer const one{small, "name", noting(), {.group = "g", .concurrency = 50, .idle_limit = 1h}};
    EXPECT_TRUE(eventually([&] {
        EXPECT_NO_THROW(small.command("PING"));
        return done.different() == count;
    }, 20s)) << done.different();
    EXPECT_TRUE(all_is_acknowledged());
    EXPECT_EQ(done.order().size(), static_cast<std::size_t>(count)) << "none twice";
    EXPECT_EQ(orders.dead_letters().length(), 0);
    EXPECT_LE(one.statistics().interruptions, 2U) << "it learns how large they are";
}

TEST_P(bounded_consumer, takes_over_large_entries_in_pieces) {
    constexpr int count = 50;
    add(0, count, 60'000);
    orders.create_group("g");
    ASSERT_EQ(orders.read_group("g", "dead").size(), static_cast<std::size_t>(count));
    consumer const one{small, "name", noting(), {.group = "g", .concurrency = 50, .idle_limit = 200ms}};
    EXPECT_TRUE(eventually([&] {
        EXPECT_NO_THROW(small.command("PING"));
        return done.different() == count;
    }, 20s)) << done.different();
    EXPECT_TRUE(all_is_acknowledged());
}

TEST_P(bounded_consumer, gives_up_an_entry_that_can_not_be_sent_to_it_and_handles_the_others) {
    add(0, 2, 10);
    add(2, 3, 2 * most_bytes);
    add(3, 5, 10);
    consumer const one{small, "name", noting(), {.group = "g", .idle_limit = 1h}};
    EXPECT_TRUE(eventually([&] { return done.different() == 4 && orders.dead_letters().length() == 1; }, 20s)) << done.different();
    EXPECT_TRUE(all_is_acknowledged());
    auto const dead = orders.dead_letters().range().at(0);
    EXPECT_EQ(*dead.find("n"), "2");
    EXPECT_THAT(*dead.find("dead.reason"), HasSubstr("max_reply_bytes"));
    EXPECT_NO_THROW(small.command("PING"));
}

TEST_P(bounded_consumer, of_large_entries_all_are_listed_and_read) {
    add(0, 50, 60'000);
    stream same{small, "name"};
    EXPECT_EQ(same.range().size(), 50U);
    auto const last = same.reverse_range("+", "-", 20);
    ASSERT_EQ(last.size(), 20U);
    EXPECT_EQ(*last.at(19).find("n"), "30");
    EXPECT_EQ(same.read("0").size(), 50U);
    std::size_t read = 0;
    for (std::string after = "0-0"; read < 50;) {
        auto const entries = same.read(after, 100, 5s);
        ASSERT_FALSE(entries.empty());
        read += entries.size();
        after = entries.back().id;
    }
    EXPECT_EQ(read, 50U);
    EXPECT_NO_THROW(small.command("PING"));
    add(50, 51, 2 * most_bytes);
    EXPECT_THAT(failure<protocol_error>([&] { same.reverse_range("+", "-", 1); }), HasSubstr("max_reply_bytes"));
    EXPECT_NO_THROW(small.command("PING")) << "and its connection lives";
}

TEST(bounded_subscription, passes_over_a_message_that_can_not_be_sent_to_it) {
    redis_server server;
    client a{server.url()};
    client small{{.url = server.url(), .max_reply_bytes = 256 * 1024}};
    durable_bus bus{a, "name"};
    durable_bus same{small, "name"};
    ledger_of_work done;
    auto const subscription = same.subscribe<std::string>("all", [&](std::string const& text) { done.note(text.substr(0, 5)); }, {.from = "0"});
    bus.publish("all", std::string{"first"});
    for (int i = 0; i < 20; ++i) bus.publish("all", "big" + std::to_string(10 + i) + std::string(60'000, 'x'));
    bus.publish("all", std::string(600'000, 'x'));
    bus.publish("all", std::string{"third"});
    EXPECT_TRUE(eventually([&] { return done.times("third") == 1; }, 20s));
    EXPECT_EQ(done.different(), 22U);
    EXPECT_EQ(subscription.counters().failed, 1U);
}

}  // namespace
}  // namespace lockstep::test
