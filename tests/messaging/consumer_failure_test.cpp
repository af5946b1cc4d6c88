// Consumers whose handlers fail: they slow down, hold a bounded number of entries, and leave the stream to those that are healthy.
#include "consumer_support.hpp"
#include "messaging/failure_circuit.hpp"
#include "support/log_lines.hpp"

#include <lockstep/later.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <memory>

namespace lockstep::test {
namespace {

using testing::AllOf;
using testing::Ge;
using testing::Le;

class failing_consumer : public testing::TestWithParam<form> {
protected:
    void add(int count) {
        std::vector<stream_fields> entries;
        for (int i = 0; i < count; ++i) entries.push_back({{"data", std::to_string(i)}});
        orders.add_all(entries);
    }
    delivery_handler failing() {
        return handler_of(GetParam(), [this](delivery const& entry) {
            ++failures;
            if (is_sick) throw std::runtime_error{"no database"};
            done.note(entry.as<std::string>());
        });
    }
    delivery_handler noting() {
        return handler_of(GetParam(), [this](delivery const& entry) { done.note(entry.as<std::string>()); });
    }
    bool all_is_acknowledged() {
        return eventually([&] { return pending_at(server) == 0; }, 20s);
    }

    ledger_of_work done;
    std::atomic<int> failures{0};
    std::atomic<bool> is_sick{true};
    redis_server server;
    client a{server.url()};
    client b{server.url()};
    stream orders{a, "name"};
};
INSTANTIATE_TEST_SUITE_P(as, failing_consumer, testing::Values(form::blocking, form::coroutine),
                         [](auto const& of) { return std::string{of.param == form::blocking ? "function" : "coroutine"}; });

TEST_P(failing_consumer, leaves_the_stream_to_a_healthy_one_and_nothing_to_the_dead_letters) {
    constexpr int count = 2'000;
    add(count);
    consumer const sick{a, "name", failing(), {.group = "g", .concurrency = 4, .idle_limit = 1h, .max_deliveries = 5, .retry_min = 50ms}};
    ASSERT_TRUE(eventually([&] { return failures > 0; }));
    consumer const healthy{b, "name", noting(), {.group = "g", .concurrency = 4, .idle_limit = 1h}};
    EXPECT_TRUE(eventually([&] { return done.different() == count; }, 20s)) << done.different();
    EXPECT_TRUE(all_is_acknowledged());
    EXPECT_EQ(orders.dead_letters().length(), 0);
    EXPECT_LE(failures, count / 20);
}

TEST_P(failing_consumer, that_is_alone_holds_no_more_than_max_pending_and_reads_little) {
    add(2'000);
    consumer const sick{a, "name", failing(), {.group = "g", .concurrency = 4, .max_pending = 50, .max_deliveries = 0, .retry_min = 50ms}};
    ASSERT_TRUE(eventually([&] { return failures >= 16; })) << failures;
    auto const now = sick.statistics();
    EXPECT_LE(now.waiting + now.running, 50U);
    EXPECT_LE(pending_at(server), 100) << "what it gave back, too";
}

TEST_P(failing_consumer, handles_everything_when_it_is_healthy_again) {
    add(500);
    consumer const one{a, "name", failing(), {.group = "g", .concurrency = 4, .idle_limit = 1h, .retry_min = 20ms, .retry_max = 200ms}};
    ASSERT_TRUE(eventually([&] { return failures >= 16; })) << failures;
    is_sick = false;
    EXPECT_TRUE(eventually([&] { return done.different() == 500; }, 20s)) << done.different();
    EXPECT_TRUE(all_is_acknowledged());
    EXPECT_EQ(done.order().size(), 500U) << "none twice";
    EXPECT_EQ(orders.dead_letters().length(), 0);
}

TEST_P(failing_consumer, tries_an_entry_twice_and_then_another_consumer_may_have_it) {
    add(1);
    consumer const sick{a, "name", failing(), {.group = "g", .idle_limit = 1h, .retry_min = 20ms, .retry_max = 40ms}};
    ASSERT_TRUE(eventually([&] { return sick.statistics().returned > 0; }));
    EXPECT_EQ(failures, 2);
    std::atomic<std::int64_t> deliveries{0};
    consumer const healthy{b, "name",
                           handler_of(GetParam(), [&](delivery const& entry) { deliveries = entry.deliveries; done.note(entry.as<std::string>()); }),
                           {.group = "g", .idle_limit = 1h}};
    // Whichever of the two looks first when it is due has it; in the end it is the healthy one.
    EXPECT_TRUE(eventually([&] { return done.times("0") == 1; }, 20s));
    EXPECT_EQ(deliveries, failures + 1) << "each failure counted, and nothing else did";
    EXPECT_TRUE(all_is_acknowledged());
    EXPECT_TRUE(eventually([&] { return server.must({"EXISTS", stream_key + ":returned:g"}).integer == 0; }));
}

TEST_P(failing_consumer, moves_an_entry_to_the_dead_letters_after_as_many_failures_as_it_may_have) {
    add(1);
    consumer const sick{a, "name", failing(), {.group = "g", .idle_limit = 1h, .max_deliveries = 15, .retry_min = 2ms, .retry_max = 10ms}};
    ASSERT_TRUE(eventually([&] { return orders.dead_letters().length() == 1; }));
    EXPECT_EQ(failures, 15);
    EXPECT_EQ(*orders.dead_letters().range().at(0).find("dead.deliveries"), "15");
    EXPECT_TRUE(all_is_acknowledged());
}

TEST_P(failing_consumer, logs_a_few_of_its_failures_and_how_many_there_were) {
    log_lines log;
    {
        client owner{server.url()};
        add(100);
        consumer const sick{owner, "name", failing(), {.group = "g", .concurrency = 4, .idle_limit = 1h, .max_deliveries = 0, .retry_min = 1ms, .retry_max = 2ms}};
        ASSERT_TRUE(eventually([&] { return failures >= 200; })) << failures;
    }
    EXPECT_THAT(log.count("threw at entry"), AllOf(Ge(1U), Le(3U))) << log.text();
    EXPECT_LE(log.count("slows down"), 2U) << log.text();
}

TEST_P(failing_consumer, holds_no_more_than_max_pending_however_fast_the_stream_is) {
    consumer quick{a, "name", noting(), {.group = "g", .max_pending = 20}};
    add(200);
    ASSERT_TRUE(eventually([&] { return done.different() == 200; }));
    EXPECT_TRUE(all_is_acknowledged());
    quick.stop();
    std::atomic<bool> hold{true};
    std::atomic<int> begun_here{0};
    delivery_handler const slow{[&](delivery const&) {
        ++begun_here;
        EXPECT_TRUE(eventually([&] { return !hold.load(); }, 20s));
    }};
    consumer const other{b, "name", slow, {.group = "g", .concurrency = 8, .max_pending = 10}};
    add(200);
    ASSERT_TRUE(eventually([&] { return begun_here == 8; }));
    EXPECT_LE(pending_at(server), 10);
    hold = false;
    EXPECT_TRUE(eventually([&] { return begun_here == 200; }));
}

class slow_handler : public failing_consumer {};  // a function: nothing may block in a coroutine
INSTANTIATE_TEST_SUITE_P(as, slow_handler, testing::Values(form::blocking), [](auto const&) { return std::string{"function"}; });

// Each retry that is due is tried, however long the backlog is and however slow the handler.
TEST_P(slow_handler, tries_again_what_is_due_although_it_never_catches_up) {
    add(1);
    std::atomic<int> others{0};
    std::atomic<int> tries{0};
    auto const work = [&](delivery const& entry) {
        if (entry.as<std::string>() == "0") {
            if (++tries < 4) throw std::runtime_error{"not yet"};
            done.note("0");
        } else {
            ++others;
            std::this_thread::sleep_for(20ms);
            orders.add_value(std::string{"more"});  // one comes for each that goes
        }
    };
    consumer const one{b, "name", delivery_handler{work}, {.group = "g", .idle_limit = 1h, .retry_min = 5ms, .retry_max = 10ms}};
    for (int i = 0; i < 20; ++i) orders.add_value(std::string{"more"});
    EXPECT_TRUE(eventually([&] { return done.times("0") == 1; }, 20s)) << tries << " tries among " << others;
}

// ---- the parts, with a clock of their own

using detail::failure_circuit;

class circuit_of_failures : public testing::Test {
protected:
    void fail(int times) {
        for (int i = 0; i < times; ++i) circuit.failed(now, now);
    }
    failure_circuit::clock::time_point now{1h};
    failure_circuit circuit{100ms, 10s};
};

TEST_F(circuit_of_failures, opens_after_ten_in_a_row) {
    fail(9);
    EXPECT_FALSE(circuit.is_open());
    EXPECT_FALSE(circuit.succeeded());
    fail(9);
    EXPECT_FALSE(circuit.is_open());
    EXPECT_TRUE(circuit.failed(now, now));
    EXPECT_TRUE(circuit.is_open());
}

TEST_F(circuit_of_failures, lets_one_be_tried_at_intervals_that_grow_up_to_the_longest) {
    fail(10);
    auto longest = 0ms;
    for (int i = 0; i < 20; ++i) {
        EXPECT_FALSE(circuit.try_probe(now));
        auto const wait = circuit.next_probe() - now;
        now = circuit.next_probe();
        EXPECT_TRUE(circuit.try_probe(now));
        EXPECT_FALSE(circuit.failed(now, now)) << "it is open already";
        longest = std::max(longest, std::chrono::duration_cast<std::chrono::milliseconds>(wait));
    }
    EXPECT_GT(longest, 7s);
    EXPECT_LE(longest, 10s);
    EXPECT_TRUE(circuit.succeeded());
    EXPECT_FALSE(circuit.is_open());
}

TEST_F(circuit_of_failures, learns_nothing_from_what_had_begun_before_it_opened) {
    auto const earlier = now;
    now += 1s;
    fail(10);
    auto const next = circuit.next_probe();
    for (int i = 0; i < 10; ++i) circuit.failed(earlier, now);
    EXPECT_EQ(circuit.next_probe(), next);
}

}  // namespace
}  // namespace lockstep::test
