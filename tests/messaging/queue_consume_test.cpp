// Handlers at work on a queue, and many items by several processes.
#include "queue_support.hpp"

#include <lockstep/json.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <map>
#include <mutex>

namespace lockstep::test {

struct job {
    int id = 0;
    std::string what;
};
BOOST_DESCRIBE_STRUCT(job, (), (id, what))

namespace {

using texts = queue<std::string>;

class queue_consume : public testing::Test {
protected:
    redis_server server;
    client a{server.url()};
    client b{server.url()};
};

TEST_F(queue_consume, handles_values_of_own_types_on_threads) {
    queue<job> jobs{a, "name"};
    std::mutex mutex;
    std::map<int, std::string> seen;
    auto worker = queue<job>{b, "name"}.consume({.concurrency = 4}, [&](job const& one) {
        std::lock_guard const guard{mutex};
        seen[one.id] = one.what;
    });
    for (int i = 0; i < 100; ++i) jobs.enqueue(job{i, "job " + std::to_string(i)});
    ASSERT_TRUE(eventually([&] { return worker.done() == 100; }));
    worker.stop();
    EXPECT_EQ(seen.size(), 100);
    EXPECT_EQ(seen[7], "job 7");
    EXPECT_EQ(jobs.counts().held, 0) << "all was acknowledged when it has stopped";
    EXPECT_EQ(waiting(server), "0");
}

TEST_F(queue_consume, runs_coroutines_of_which_so_many_are_at_work) {
    texts names{a, "name"};
    std::atomic<int> now{0};
    std::atomic<int> most{0};
    auto worker = names.consume({.concurrency = 8}, [&](texts::item& one) -> task<void> {
        most = std::max(most.load(), ++now);
        auto asking = b.async_command("INCR", one.value());
        co_await std::move(asking);
        --now;
    });
    for (int i = 0; i < 200; ++i) names.enqueue("n");
    ASSERT_TRUE(eventually([&] { return worker.done() == 200; }));
    worker.stop();
    EXPECT_EQ(server.must({"GET", "n"}).text, "200");
    EXPECT_LE(most, 8);
    EXPECT_GT(most, 1);
}

TEST_F(queue_consume, tries_again_later_what_threw_and_then_gives_it_up) {
    texts names{a, "name", {.max_deliveries = 3}};
    std::atomic<int> tries{0};
    auto worker = names.consume({.backoff = 20ms}, [&](std::string const&) {
        ++tries;
        throw std::runtime_error("no such thing");
    });
    names.enqueue("x");
    ASSERT_TRUE(eventually([&] { return names.counts().dead == 1; }));
    worker.stop();
    EXPECT_EQ(tries, 3);
    EXPECT_EQ(worker.failed(), 3);
    EXPECT_EQ(names.dead_letters().at(0).reason, "no such thing");
}

TEST_F(queue_consume, stops_after_what_is_under_way_and_takes_no_more) {
    texts names{a, "name"};
    std::atomic<int> begun_ones{0};
    std::atomic<bool> go_on{false};
    auto worker = names.consume({.concurrency = 2}, [&](std::string const&) {
        ++begun_ones;
        while (!go_on) std::this_thread::yield();
    });
    for (int i = 0; i < 10; ++i) names.enqueue("x");
    ASSERT_TRUE(eventually([&] { return begun_ones == 2; }));
    begun stopping{as_true(worker.async_stop())};
    EXPECT_FALSE(stopping.done());
    go_on = true;
    EXPECT_TRUE(stopping.get());
    EXPECT_EQ(begun_ones, 2);
    auto const left = names.counts();
    EXPECT_EQ(left.ready, 8);
    EXPECT_EQ(left.held, 0);
}

TEST_F(queue_consume, acknowledges_and_takes_in_the_same_call) {
    texts names{a, "name"};
    std::vector<std::string> const many(5000, "x");
    names.enqueue_many(std::span{many}.first(4000));
    names.enqueue_many(std::span{many}.last(1000));
    auto const before = calls(server);
    auto worker = names.consume({.concurrency = 50}, [](std::string const&) -> task<void> { co_return; });
    ASSERT_TRUE(eventually([&] { return worker.done() == 5000; }));
    worker.stop();
    EXPECT_LT(calls(server) - before, 400) << "about one for each 50, and some that say who this client is";
}

TEST_F(queue_consume, gathers_enqueues_that_are_asked_at_the_same_time) {
    texts names{a, "name"};
    names.enqueue("x");
    auto const before = calls(server);
    std::vector<begun<enqueued>> all;
    sync_wait(in_turn_of(a, [&] {
        for (int i = 0; i < 1000; ++i) all.emplace_back(names.async_enqueue(std::to_string(i)));
        return true;
    }));
    for (auto const& one : all) EXPECT_TRUE(one.get().is_new);
    EXPECT_LE(calls(server) - before, 3);
}

TEST_F(queue_consume, keeps_the_order_for_one_consumer) {
    texts names{a, "name"};
    texts of_b{b, "name"};
    std::vector<std::string> seen;
    std::mutex mutex;
    auto worker = of_b.consume({.concurrency = 1}, [&](std::string const& one) {
        std::lock_guard const guard{mutex};
        seen.push_back(one);
    });
    std::vector<begun<enqueued>> all;
    sync_wait(in_turn_of(a, [&] {
        for (int i = 0; i < 2000; ++i) all.emplace_back(names.async_enqueue(std::to_string(i)));
        return true;
    }));
    ASSERT_TRUE(eventually([&] { return worker.done() == 2000; }));
    worker.stop();
    for (int i = 0; i < 2000; ++i) ASSERT_EQ(seen[static_cast<std::size_t>(i)], std::to_string(i));
}

// Every item that was acknowledged to its producer is handled, none is invented, and nothing is left; also when consumers are killed.
TEST_F(queue_consume, several_processes_handle_ten_thousand_items_while_some_are_killed) {
    texts names{a, "name"};
    std::vector<std::string> many;
    for (int i = 0; i < 10'000; ++i) many.push_back(std::to_string(i));
    for (int i = 0; i < 10; ++i) names.enqueue_many(std::span{many}.subspan(static_cast<std::size_t>(i) * 1000, 1000));
    std::map<std::string, int> seen;
    auto const spawn = [&] { return child_process{{program_path("queue_consumer"), server.url(), "name", "drain", "1500"}}; };
    auto const read = [&](child_process& from) {
        auto const line = from.read_line();
        if (!line || *line == "end") return false;
        ++seen[line->substr(0, line->find(' '))];
        return true;
    };
    for (int i = 0; i < 4; ++i) {
        auto dying = spawn();
        for (int n = 0; n < 200; ++n) ASSERT_TRUE(read(dying));
        dying.kill();
        while (read(dying)) {}
    }
    std::vector<child_process> alive;
    for (int i = 0; i < 3; ++i) alive.push_back(spawn());
    for (auto& one : alive) {
        while (read(one)) {}
        EXPECT_TRUE(one.wait());
    }
    EXPECT_EQ(seen.size(), 10'000);
    int twice = 0;
    for (auto const& [value, times] : seen) twice += times > 1 ? 1 : 0;
    EXPECT_LE(twice, 4) << "only what a killed one held";
    EXPECT_EQ(leftovers(server), std::vector{queue_key});
}

class slow_queue_soak : public queue_consume {};

TEST_F(slow_queue_soak, a_million_items_leave_nothing_behind) {
    texts to{a, "name"};
    texts from{b, "name"};
    auto const memory = [&] { return std::stol(server.info("used_memory")); };
    std::vector<std::string> const many(4000, std::string(16, 'x'));
    constexpr std::uint64_t total = 1'000'000;
    auto worker = from.consume({.concurrency = 200}, [](texts::item&) -> task<void> { co_return; });
    long first = 0;
    std::uint64_t sent = 0;
    while (sent < total) {
        to.enqueue_many(many);
        sent += many.size();
        ASSERT_TRUE(eventually([&] { return worker.done() + 40'000 > sent; }, 30s));
        if (sent == total / 10) first = memory();
    }
    ASSERT_TRUE(eventually([&] { return worker.done() == total; }, 30s));
    worker.stop();
    EXPECT_LT(memory(), first + (4 << 20));
    EXPECT_EQ(leftovers(server), std::vector{queue_key});
    EXPECT_LE(server.must({"HLEN", queue_key}).integer, 6);
}

TEST_F(slow_queue_soak, a_waiting_item_costs_its_bytes_and_little_more_however_many_there_are) {
    texts to{a, "name"};
    to.enqueue("x");
    auto const memory = [&] { return std::stod(server.info("used_memory_dataset")); };
    auto const each = [&](int count) {
        server.must({"FLUSHALL"});
        auto const before = memory();
        std::vector<std::string> const many(1000, std::string(32, 'x'));
        for (int i = 0; i < count / 1000; ++i) to.enqueue_many(many);
        return (memory() - before) / count;
    };
    EXPECT_LT(each(10'000), 100);
    EXPECT_LT(each(500'000), 100);
}

}  // namespace
}  // namespace lockstep::test
