// Nothing leaks and nothing grows: steady use allocates nothing, and what gives up waiting leaves nothing behind.
#include <lockstep/counting_semaphore.hpp>
#include <lockstep/mutex.hpp>

#include "lease_support.hpp"
#include "support/child_process.hpp"
#include "support/program_path.hpp"

#include <malloc.h>

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

task<bool> run_out(task<std::optional<lease>> work) {
    auto const held = co_await std::move(work);
    co_return !held.has_value();
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

    auto const round = [&] {
        all_give_up([&] { return shared.async_acquire(); }, [&](auto time) { return shared.async_try_acquire_for(time); });
        all_give_up([&] { return strict.async_acquire(); }, [&](auto time) { return strict.async_try_acquire_for(time); });
        all_give_up([&] { return few.async_acquire(); }, [&](auto time) { return few.async_try_acquire_for(time); });
    };
    auto const settled = [&] {
        return eventually([&] {
            return waiting_at(server, "held") == 0 && pool_numbers(server, "lockstep:{permits}:semaphore").waiting == 0 &&
                   others.statistics().pending == 0;
        });
    };
    auto const server_memory = [&] { return std::stoll(server.info("used_memory_dataset")); };
    for (int i = 0; i < 3; ++i) round();
    ASSERT_TRUE(settled());
    ASSERT_TRUE(eventually([&] { return server.must({"ZCARD", "lockstep:{clients}:index"}).integer == 2; })) << "who they are";
    auto const keys = server.must({"DBSIZE"}).integer;
    auto const channels = server.must({"PUBSUB", "CHANNELS"}).elements.size();
    auto const heap = heap_in_use();
    auto const dataset = server_memory();

    for (int i = 0; i < 33; ++i) round();
    ASSERT_TRUE(settled());
    EXPECT_EQ(server.must({"DBSIZE"}).integer, keys);
    EXPECT_EQ(server.must({"PUBSUB", "CHANNELS"}).elements.size(), channels);
    // Buffers and tables are as large as the busiest moment was, which differs; 30 bytes for each who gave up would be more.
    EXPECT_LE(heap_in_use(), heap + 3'000'000);
    EXPECT_TRUE(eventually([&] { return server_memory() <= dataset + 1'000'000; }));
    EXPECT_EQ(others.statistics().connections, 1U);
    EXPECT_TRUE(kept.valid());
    EXPECT_TRUE(permit.valid());
}

}  // namespace
}  // namespace lockstep::test
