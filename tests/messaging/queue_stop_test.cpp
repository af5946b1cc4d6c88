// How workers of a queue stop, and what handlers can say besides that they failed.
#include "queue_support.hpp"

#include "support/log_lines.hpp"

#include <lockstep/consumer.hpp>
#include <lockstep/idempotency.hpp>
#include <lockstep/later.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <optional>
#include <stdexcept>
#include <thread>
#include <vector>

namespace lockstep::test {
namespace {

using texts = queue<std::string>;
using clock = std::chrono::steady_clock;

class queue_stop : public testing::Test {
protected:
    void wait_for_token(std::stop_token token) {
        begun_ones++;
        while (!token.stop_requested()) std::this_thread::sleep_for(1ms);
        told = true;
    }
    /// It is there at once, as if it had never been delivered.
    void expect_given_back(std::string const& value) {
        auto again = sent.dequeue(10s);
        ASSERT_TRUE(again);
        EXPECT_EQ(again->value(), value);
        EXPECT_EQ(again->deliveries(), 1);
        again->ack();
    }

    redis_server server;
    client a{server.url()};
    client b{server.url()};
    texts sent{a, "name"};
    texts received{b, "name"};
    std::atomic<int> begun_ones{0};
    std::atomic<bool> told{false};
    std::atomic<bool> go_on{false};
};

TEST_F(queue_stop, with_a_limit_gives_back_what_is_not_done_by_then_uncounted) {
    sent.enqueue("x");
    auto worker = received.consume({}, [&](std::string const&) {
        ++begun_ones;
        while (!go_on) std::this_thread::sleep_for(1ms);  // does not look at its token
    });
    ASSERT_TRUE(eventually([&] { return begun_ones == 1; }));
    EXPECT_FALSE(worker.stop(50ms));
    expect_given_back("x");
    go_on = true;
    worker.stop();
    EXPECT_EQ(worker.done(), 0U) << "it was given back";
    EXPECT_EQ(worker.failed(), 0U);
    EXPECT_EQ(sent.counts().held, 0);
}

TEST_F(queue_stop, with_a_limit_trips_the_tokens_of_handlers_at_once) {
    sent.enqueue("x");
    auto worker = received.consume({}, [&](texts::item& item) { wait_for_token(item.stop_token()); });
    ASSERT_TRUE(eventually([&] { return begun_ones == 1; }));
    EXPECT_TRUE(worker.stop(60s));
    EXPECT_TRUE(told);
    EXPECT_EQ(worker.done(), 1U) << "it returned, so it is done";
    auto const left = sent.counts();
    EXPECT_EQ(left.ready + left.held + left.delayed + left.dead, 0);
}

TEST_F(queue_stop, with_a_limit_counts_no_failure_of_a_handler_that_throws_because_of_it) {
    sent.enqueue("x");
    auto worker = received.consume({}, [&](texts::item& item) {
        wait_for_token(item.stop_token());
        throw std::runtime_error("interrupted");
    });
    ASSERT_TRUE(eventually([&] { return begun_ones == 1; }));
    EXPECT_TRUE(worker.stop(60s));
    EXPECT_EQ(worker.failed(), 0U);
    expect_given_back("x");
}

TEST_F(queue_stop, with_a_limit_cancels_coroutines) {
    sent.enqueue("x");
    texts other{a, "other"};
    auto worker = received.consume({}, [&](std::string const&) -> task<void> {
        ++begun_ones;
        auto waiting = other.async_dequeue();
        co_await std::move(waiting);
    });
    ASSERT_TRUE(eventually([&] { return begun_ones == 1; }));
    begun<bool> stopping{worker.async_stop(60s)};
    EXPECT_TRUE(stopping.get());
    EXPECT_EQ(worker.failed(), 0U);
    expect_given_back("x");
}

TEST_F(queue_stop, without_a_limit_lets_handlers_finish_undisturbed) {
    sent.enqueue("x");
    auto worker = received.consume({}, [&](texts::item& item) {
        ++begun_ones;
        while (!go_on) std::this_thread::sleep_for(1ms);
        told = item.stop_token().stop_requested();
    });
    ASSERT_TRUE(eventually([&] { return begun_ones == 1; }));
    begun stopping{as_true(worker.async_stop())};
    EXPECT_TRUE(eventually([&] { return waiting(server) == "0"; }));
    go_on = true;
    EXPECT_TRUE(stopping.get());
    EXPECT_FALSE(told);
    EXPECT_EQ(worker.done(), 1U);
}

TEST_F(queue_stop, destruction_asks_handlers_to_end_after_the_stop_limit) {
    sent.enqueue("x");
    {
        auto const worker = received.consume({.stop_limit = 50ms}, [&](texts::item& item) {
            wait_for_token(item.stop_token());
            throw std::runtime_error("interrupted");
        });
        ASSERT_TRUE(eventually([&] { return begun_ones == 1; }));
    }
    EXPECT_TRUE(told);
    expect_given_back("x");
}

TEST_F(queue_stop, destruction_gives_back_what_a_handler_does_not_end_and_waits_for_it) {
    sent.enqueue("x");
    std::optional worker{received.consume({.stop_limit = 0ms}, [&](std::string const&) {
        ++begun_ones;
        while (!go_on) std::this_thread::sleep_for(1ms);
        told = true;
    })};
    ASSERT_TRUE(eventually([&] { return begun_ones == 1; }));
    std::thread destroying{[&] { worker.reset(); }};
    expect_given_back("x");
    EXPECT_FALSE(told) << "it still runs";
    go_on = true;
    destroying.join();
    EXPECT_TRUE(told) << "and nothing of it is used after the worker is gone";
}

TEST_F(queue_stop, closing_the_client_gives_back_uncounted) {
    sent.enqueue("x");
    for (int deploy = 0; deploy < 4; ++deploy) {
        begun_ones = 0;
        client mine{server.url()};
        texts names{mine, "name", {.max_deliveries = 2}};
        auto worker = names.consume({}, [&](texts::item& item) {
            wait_for_token(item.stop_token());
            throw std::runtime_error("interrupted");
        });
        ASSERT_TRUE(eventually([&] { return begun_ones == 1; }));
        mine.close();
    }
    expect_given_back("x");
}

TEST_F(queue_stop, does_not_wait_for_the_rest_of_threads_that_could_take_nothing) {
    log_lines log;
    server.must({"SET", queue_key, "this is no queue"});
    std::vector<queue_worker> workers;
    for (int i = 0; i < 8; ++i) workers.push_back(received.consume({}, [](std::string const&) {}));
    ASSERT_TRUE(eventually([&] { return log.count("a consumer of 'name'") >= 8U; }));
    auto const began = clock::now();
    for (auto& one : workers) one.stop();
    EXPECT_LT(clock::now() - began, 2s) << "each would wait for half a second on average, and take again";
    workers.clear();
    server.must({"DEL", queue_key});
}

// ---- what handlers say

TEST_F(queue_stop, later_puts_off_without_counting) {
    texts strict{b, "name", {.max_deliveries = 2}};
    std::atomic<int> deliveries{0};
    auto worker = strict.consume({}, [&](texts::item& item) {
        deliveries = item.deliveries();
        if (++begun_ones < 6) throw later{10ms};
    });
    sent.enqueue("x");
    ASSERT_TRUE(eventually([&] { return worker.done() == 1; }));
    EXPECT_EQ(begun_ones, 6);
    EXPECT_EQ(deliveries, 1);
    EXPECT_EQ(worker.failed(), 0U);
}

TEST_F(queue_stop, later_waits_for_its_delay) {
    auto worker = received.consume({}, [](std::string const&) -> task<void> {
        throw later{1h};
        co_return;
    });
    sent.enqueue("x", {.priority = 5});
    ASSERT_TRUE(eventually([&] { return sent.counts().delayed == 1; }));
    EXPECT_EQ(sent.counts().ready, 0);
    worker.stop();
}

TEST_F(queue_stop, a_handler_that_throws_after_its_lease_has_ended_has_failed) {
    log_lines log;
    texts brief{b, "name", {.visibility = 50ms, .renew = false, .max_deliveries = 3}};
    auto worker = brief.consume({.backoff = 1ms}, [&](std::string const&) {
        ++begun_ones;
        std::this_thread::sleep_for(80ms);
        throw std::runtime_error("too slow, and broken");
    });
    sent.enqueue("x");
    EXPECT_TRUE(eventually([&] { return sent.counts().dead == 1; }));
    worker.stop();
    EXPECT_EQ(begun_ones, 3);
    EXPECT_EQ(worker.failed(), 3U);
}

TEST_F(queue_stop, reject_is_a_dead_letter_at_once) {
    auto worker = received.consume({}, [](std::string const&) { throw reject("no such customer"); });
    sent.enqueue("x", {.key = "k"});
    ASSERT_TRUE(eventually([&] { return sent.counts().dead == 1; }));
    worker.stop();
    EXPECT_EQ(worker.failed(), 1U);
    EXPECT_EQ(sent.dead_letters().at(0).reason, "no such customer");
    EXPECT_EQ(sent.dead_letters().at(0).deliveries, 1);
    EXPECT_TRUE(sent.enqueue("y", {.key = "k"}).is_new) << "its key is free";
}

TEST_F(queue_stop, what_is_busy_is_tried_again_without_counting) {
    idempotency charged{a, "charged"};
    std::atomic<int> tries{0};
    texts strict{b, "name", {.max_deliveries = 2}};
    idempotency there{b, "charged"};
    begun busy{charged.async_run("order", [&]() -> task<void> {
        while (!go_on) {
            auto asking = a.async_command("PING");
            co_await std::move(asking);
        }
        throw std::runtime_error("not done");
    })};
    ASSERT_TRUE(eventually([&] { return server.must({"KEYS", "*charged*"}).elements.size() == 1U; }));
    auto worker = strict.consume({}, [&](std::string const&) {
        ++tries;
        there.run("order", [&] { ++begun_ones; });
    });
    sent.enqueue("x");
    ASSERT_TRUE(eventually([&] { return tries >= 4; }));
    EXPECT_EQ(begun_ones, 0);
    go_on = true;
    EXPECT_THROW(busy.get(), std::runtime_error);
    ASSERT_TRUE(eventually([&] { return worker.done() == 1; }));
    EXPECT_EQ(begun_ones, 1);
    EXPECT_EQ(worker.failed(), 0U);
    worker.stop();
}

// ---- a worker that can not do its work

TEST_F(queue_stop, a_worker_whose_handlers_all_throw_leaves_the_items_to_a_healthy_one) {
    log_lines log;
    constexpr int count = 1000;
    std::vector<std::string> const many(count, "x");
    auto sick = std::make_optional(received.consume({.concurrency = 4}, [](std::string const&) { throw std::runtime_error("no database"); }));
    texts alive{a, "name"};
    auto healthy = std::make_optional(alive.consume({}, [](std::string const&) { std::this_thread::sleep_for(2ms); }));
    sent.enqueue_many(many);
    EXPECT_TRUE(eventually([&] { return healthy->done() == count; }));
    EXPECT_LT(sick->failed(), count / 20U);
    EXPECT_GT(sick->failed(), 0U);
    EXPECT_EQ(sent.counts().dead, 0);
    EXPECT_LE(log.count("no database"), 4U);
    EXPECT_GE(log.count("no database"), 1U);
    sick.reset();
    healthy.reset();
}

TEST_F(queue_stop, a_worker_that_has_slowed_down_recovers_by_itself) {
    log_lines log;
    std::atomic<bool> is_sick{true};
    auto worker = std::make_optional(received.consume({.concurrency = 8, .backoff = 0ms}, [&](std::string const&) -> task<void> {
        if (is_sick) throw std::runtime_error("no database");
        co_return;
    }));
    sent.enqueue_many(std::vector<std::string>(500, "x"));
    ASSERT_TRUE(eventually([&] { return worker->failed() >= 12U; }));
    is_sick = false;
    EXPECT_TRUE(eventually([&] { return worker->done() == 500U; }));
    worker.reset();
}

TEST_F(queue_stop, a_worker_that_has_slowed_down_stops_at_once) {
    log_lines log;
    std::vector<queue_worker> workers;
    workers.push_back(received.consume({.concurrency = 4, .backoff = 0ms}, [](std::string const&) { throw std::runtime_error("no database"); }));
    workers.push_back(received.consume({.concurrency = 4, .backoff = 0ms}, [](std::string const&) -> task<void> {
        throw std::runtime_error("no database");
        co_return;
    }));
    texts patient{a, "name", {.max_deliveries = 1000}};
    patient.enqueue_many(std::vector<std::string>(500, "x"));
    ASSERT_TRUE(eventually([&] { return workers[0].failed() >= 13U && workers[1].failed() >= 13U; }));
    auto const began = clock::now();
    for (auto& one : workers) one.stop();
    EXPECT_LT(clock::now() - began, 2s);
}

}  // namespace
}  // namespace lockstep::test
