// Nothing leaks and nothing grows: steady use allocates nothing, and what gives up waiting leaves nothing behind.
#include <lockstep/counting_semaphore.hpp>
#include <lockstep/event.hpp>
#include <lockstep/mutex.hpp>
#include <lockstep/shared_mutex.hpp>

#include "lease_fault_support.hpp"

#include <malloc.h>

#include <algorithm>
#include <atomic>
#include <list>
#include <set>
#include <sstream>

namespace lockstep::test {
namespace {

#ifndef LOCKSTEP_SANITIZE  // which allocates by itself, and with which no frame is kept

TEST(lease_memory, is_not_allocated_in_steady_use) {
    redis_server server;
    child_process use{{program_path("steady_use"), server.url()}};
    auto const line = use.read_line(60s);
    ASSERT_TRUE(line);
    std::istringstream numbers{*line};
    int in_coroutines = -1;
    int in_blocking_calls = -1;
    numbers >> in_coroutines >> in_blocking_calls;
    // Of 10,000 each. The client may have said who it is meanwhile, and Asio may have had to post to a slow thread.
    EXPECT_GE(in_coroutines, 0);
    EXPECT_LE(in_coroutines, 100);
    EXPECT_GE(in_blocking_calls, 0);
    EXPECT_LE(in_blocking_calls, 200);
}

#endif

std::size_t heap_in_use() { return ::mallinfo2().uordblks; }

task<bool> give_up(task<lease> work, std::stop_token token) {
    try {
        auto stopped = with_stop_token(std::move(work), token);
        auto const held = co_await std::move(stopped);
        co_return false;
    } catch (cancelled_error const&) {
        co_return true;
    }
}

task<bool> give_up(task<void> work, std::stop_token token) {
    try {
        auto stopped = with_stop_token(std::move(work), token);
        co_await std::move(stopped);
        co_return false;
    } catch (cancelled_error const&) {
        co_return true;
    }
}

task<bool> run_out(task<std::optional<lease>> work) {
    auto const held = co_await std::move(work);
    co_return !held.has_value();
}

task<bool> run_out(task<bool> work) {
    auto const signalled = co_await std::move(work);
    co_return !signalled;
}

// 1,000 who wait for what is held, of which half run out of time and half are cancelled.
template <class Waits, class Tries>
void all_give_up(Waits wait, Tries try_for) {
    std::stop_source stop;
    std::vector<task<bool>> all;
    for (int i = 0; i < 500; ++i) {
        all.push_back(give_up(wait(), stop.get_token()));
        all.push_back(run_out(try_for(1ms)));
    }
    begun<std::vector<bool>> ends{when_all(std::move(all))};
    stop.request_stop();
    for (bool const gave_up : ends.get()) ASSERT_TRUE(gave_up);
}

TEST(slow_lease_memory, is_what_it_was_after_a_hundred_thousand_who_gave_up) {
    redis_server server;
    client holder{server.url()};
    client others{server.url()};
    auto const kept = mutex(holder, "held").acquire();
    mutex shared{others, "held"};
    mutex strict{others, "held", {.cohort_passes = 0}};
    auto permits = counting_semaphore::create(holder, "permits", 1);
    auto const permit = permits.acquire();
    auto few = counting_semaphore::create(others, "permits", 1);
    auto const writing = shared_mutex(holder, "shared").acquire();
    shared_mutex readers{others, "shared"};
    event signal{others, "signal"};

    auto const round = [&] {
        all_give_up([&] { return shared.async_acquire(); },
                    [&](auto time) { return shared.async_try_acquire_for(time); });
        all_give_up([&] { return strict.async_acquire(); },
                    [&](auto time) { return strict.async_try_acquire_for(time); });
        all_give_up([&] { return few.async_acquire(); }, [&](auto time) { return few.async_try_acquire_for(time); });
        all_give_up([&] { return readers.async_acquire_shared(); },
                    [&](auto time) { return readers.async_try_acquire_shared_for(time); });
        all_give_up([&] { return signal.async_wait(); }, [&](auto time) { return signal.async_wait_for(time); });
    };
    auto const nobody_waits_for = [&](std::string const& key) { return pool_numbers(server, key).waiting == 0; };
    auto const settled = [&] {
        return eventually([&] {
            return waiting_at(server, "held") == 0 && nobody_waits_for("lockstep:{permits}:semaphore") &&
                   nobody_waits_for("lockstep:{shared}:shared") && nobody_waits_for("lockstep:{signal}:event") &&
                   others.statistics().pending == 0;
        });
    };
    auto const server_memory = [&] { return std::stoll(server.info("used_memory_dataset")); };
    for (int i = 0; i < 3; ++i) round();
    signal.set();  // of those who gave up none may have come to ask, and then it has no key
    signal.wait();
    ASSERT_TRUE(settled());
    ASSERT_TRUE(eventually([&] {
        return server.must({"ZCARD", "lockstep:{clients}:index"}).integer == 2;
    })) << "who they are";
    // Without those for people, which come from time to time: what is counted, and which objects there are.
    auto const kept_keys = [&] {
        std::set<std::string> names;
        for (auto const& key : server.must({"KEYS", "*"}).elements) {
            if (!key.text.starts_with("lockstep:{statistics}:") && !key.text.starts_with("lockstep:{objects/")) names.insert(key.text);
        }
        return names;
    };
    auto const keys = kept_keys();
    auto const channels = server.must({"PUBSUB", "CHANNELS"}).elements.size();
    auto const heap = heap_in_use();
    auto const dataset = server_memory();

    for (int i = 0; i < 20; ++i) round();  // of 5,000
    ASSERT_TRUE(settled());
    EXPECT_EQ(kept_keys(), keys);
    EXPECT_EQ(server.must({"PUBSUB", "CHANNELS"}).elements.size(), channels);
    // Buffers and tables are as large as the busiest moment was, which differs; 30 bytes for each who gave up would be more.
    EXPECT_LE(heap_in_use(), heap + 3'000'000);
    EXPECT_TRUE(eventually([&] { return server_memory() <= dataset + 1'000'000; }));
    EXPECT_EQ(others.statistics().connections, 1U);
    EXPECT_TRUE(kept.valid());
    EXPECT_TRUE(permit.valid());
    EXPECT_TRUE(writing.valid());
}

#ifndef LOCKSTEP_SANITIZE

class lease_memory_of_waiters : public testing::TestWithParam<kind> {
protected:
    static constexpr std::size_t many = 1'000;

    std::int64_t at_the_server() {
        return server.must({"MEMORY", "USAGE", key_of(GetParam(), "name"), "SAMPLES", "0"}).integer;
    }
    std::int64_t places() { return record(server, key_of(GetParam(), "name")).waiting(); }
    static std::size_t here() { return heap_in_use() + ::mallinfo2().hblkhd; }
    void make(std::size_t count, lease_options const& options) {
        for (std::size_t i = 0; i < count; ++i) objects.emplace_back(GetParam(), waits, "name", options);
    }
    /// By all that were made and do not wait yet, some at a time: how large buffers are does not matter here.
    void wait() {
        for (auto& one : objects) {
            start(one.async_acquire(), [this](std::exception_ptr, std::optional<lease>) { ++ended; });
            if (++waiting % 50 == 0) {
                run_turn(waits);
                ASSERT_TRUE(eventually([&] { return waits.statistics().pending == 0; }));
            }
        }
        used.splice(used.end(), objects);
    }

    /// The objects through which they wait are not counted, the frames of their coroutines are.
    void measure(lease_options const& options) {
        held = holdable(GetParam(), holds, "name").acquire();
        make(150, options);
        ASSERT_NO_FATAL_FAILURE(wait());  // which makes the tables and buffers that are there once
        make(many, options);
        auto const there_before = at_the_server();
        auto const here_before = here();
        ASSERT_NO_FATAL_FAILURE(wait());
        grown_here = here() - here_before;
        grown_there = at_the_server() - there_before;
        EXPECT_EQ(waits.statistics().connections, 1U);
        EXPECT_EQ(ended, 0);
    }

    redis_server server;
    client holds{server.url()};
    std::atomic<int> ended{0};
    int waiting = 0;
    lease held{};
    std::size_t grown_here = 0;
    std::int64_t grown_there = 0;
    client waits{server.url()};
    std::list<holdable> objects{};
    std::list<holdable> used{};
};
INSTANTIATE_TEST_SUITE_P(of, lease_memory_of_waiters,
                         testing::Values(kind::mutex, kind::recursive_mutex, kind::writer, kind::permits), kind_name);

TEST_P(lease_memory_of_waiters, is_bounded_here_and_at_the_server) {
    measure({.cohort_passes = 0});
    EXPECT_EQ(places(), waiting) << "each has one of its own";
    EXPECT_LE(grown_here / many, 2'048U);
    EXPECT_LE(grown_there / static_cast<std::int64_t>(many), 300);
}

class lease_memory_of_a_cohort : public lease_memory_of_waiters {};
INSTANTIATE_TEST_SUITE_P(of, lease_memory_of_a_cohort, testing::Values(kind::mutex), kind_name);

TEST_P(lease_memory_of_a_cohort, is_bounded_here_and_does_not_grow_at_the_server) {
    measure({});
    EXPECT_EQ(places(), 1);
    EXPECT_LE(grown_here / many, 1'024U);
    EXPECT_LE(grown_there, 300);
}

#endif

}  // namespace
}  // namespace lockstep::test
