// Very many requests on one connection: who is cancelled, how much is pending and what the bytes are changes nothing for
// the others.
#include <lockstep/client.hpp>

#include "support/eventually.hpp"
#include "support/failures.hpp"
#include "support/fault_proxy.hpp"
#include "support/forms.hpp"
#include "support/fragile.hpp"
#include "support/redis_server.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <random>
#include <span>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace lockstep::test {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

std::mt19937 randomness() {
    auto seed = testing::UnitTest::GetInstance()->random_seed();
    if (seed == 0) seed = static_cast<int>(std::random_device{}() % 99999 + 1);
    std::printf("replay with --gtest_random_seed=%d\n", seed);
    return std::mt19937{static_cast<std::uint32_t>(seed)};
}

struct tally {
    std::atomic<int> right{0};
    std::atomic<int> wrong{0};
    std::atomic<int> cancelled{0};
    std::atomic<int> failed{0};
    std::atomic<int> ended{0};
};

// Asks for a value that only it knows; of that size, so that not all requests fit in the socket's buffers.
task<void> ask(client& on, int id, int rounds, std::size_t size, tally& counts) {
    for (int i = 0; i < rounds; ++i) {
        auto mine = std::to_string(id) + "." + std::to_string(i);
        mine.resize(std::max(mine.size(), size), '-');
        bool const same = co_await on.async_command<std::string>("ECHO", mine) == mine;
        ++(same ? counts.right : counts.wrong);
    }
}

void launch(task<void> work, tally& counts) {
    start(std::move(work), [&counts](std::exception_ptr problem) {
        if (problem) {
            auto const why = outcome([&] { std::rethrow_exception(problem); });
            ++(why == errc::cancelled ? counts.cancelled : counts.failed);
        }
        ++counts.ended;
    });
}

fragile ask_and_count(client& on, int id, int rounds, std::size_t size, tally& counts) {
    co_await ask(on, id, rounds, size, counts);
    ++counts.ended;
}

constexpr auto long_enough = 60s;

TEST(transport_load, carries_ten_thousand_coroutines_on_one_connection) {
    constexpr int coroutines = 10'000;
    redis_server server;
    client client{{.url = server.url(), .command_timeout = long_enough}};
    client.command("PING");
    server.stop();
    tally counts;
    for (int i = 0; i < coroutines; ++i) launch(ask(client, i, 5, 0, counts), counts);
    EXPECT_TRUE(eventually([&] { return client.statistics().pending == coroutines; })) << "all at the same time";
    server.cont();
    EXPECT_EQ(server.connections(), 1);
    EXPECT_TRUE(eventually([&] { return counts.ended == coroutines; }, long_enough));
    EXPECT_EQ(counts.right, 5 * coroutines);
    EXPECT_EQ(counts.wrong, 0);
    EXPECT_EQ(server.connections(), 1);
    auto const seen = client.statistics();
    EXPECT_EQ(seen.connects, 1U);
    EXPECT_EQ(seen.pending, 0U);
    EXPECT_LT(seen.batches, seen.requests / 4) << "requests of one turn leave together";
}

// Cancelled in every place: not sent yet, sent, at the head, in the middle, at the tail, in runs.
TEST(transport_load, gives_all_others_their_own_replies_when_a_random_subset_is_cancelled) {
    auto random = randomness();
    for (std::size_t const size : {std::size_t{0}, std::size_t{2'000}}) {
        constexpr int coroutines = 10'000;
        redis_server server;
        client client{{.url = server.url(), .command_timeout = long_enough, .keepalive_interval = 0s}};
        client.command("PING");
        server.stop();

        tally counts;
        tally destroyed_counts;
        std::vector<std::stop_source> stops(coroutines);
        std::vector<fragile> frames;
        std::vector<int> stopped;
        int kept = 0;
        for (int i = 0; i < coroutines; ++i) {
            // Runs of the same fate: every kind of neighbourhood comes up.
            auto const fate = (random() >> 3) % 4;
            auto const run = std::min(coroutines - i, static_cast<int>(1 + random() % 5));
            for (int end = i + run; i < end; ++i) {
                if (fate == 0) {
                    frames.push_back(ask_and_count(client, i, 2, size, destroyed_counts));
                } else {
                    auto const token = stops[static_cast<std::size_t>(i)].get_token();
                    launch(with_stop_token(ask(client, i, 2, size, counts), token), counts);
                    if (fate == 1) stopped.push_back(i);
                    if (fate != 1) ++kept;
                }
            }
            --i;
        }
        EXPECT_TRUE(eventually([&] { return client.statistics().pending == coroutines; }));
        auto const destroyed = static_cast<int>(frames.size());
        std::shuffle(stopped.begin(), stopped.end(), random);
        for (auto const i : stopped) stops[static_cast<std::size_t>(i)].request_stop();
        EXPECT_TRUE(eventually([&] { return counts.cancelled == static_cast<int>(stopped.size()); }))
            << "cancelled at once, though the server is silent";
        while (!frames.empty()) {
            std::swap(frames[random() % frames.size()], frames.back());
            frames.pop_back();
        }
        EXPECT_EQ(client.statistics().pending, static_cast<std::uint64_t>(kept));

        server.cont();
        auto const others = kept + static_cast<int>(stopped.size());
        EXPECT_TRUE(eventually([&] { return counts.ended == others; }, long_enough))
            << counts.ended << " of " << others;
        EXPECT_EQ(counts.right, 2 * kept);
        EXPECT_EQ(counts.wrong, 0);
        EXPECT_EQ(counts.failed, 0);
        EXPECT_EQ(destroyed_counts.ended, 0) << "none of " << destroyed << " was resumed";
        EXPECT_EQ(client.statistics().connects, 1U) << "the stream stayed in step";
        EXPECT_EQ(client.command<std::string>("ECHO", "last"), "last");
    }
}

// The same while replies stream in: coroutines on the I/O thread destroy others between two replies.
task<void> destroy_others(client& on, std::vector<fragile>& frames, std::mt19937& random, int count) {
    next_turn const turn{on};
    co_await turn;
    for (int i = 0; i < count; ++i) {
        co_await on.async_command("PING");
        for (int j = 0; j < 20; ++j) frames[random() % frames.size()].destroy();
    }
}

TEST(transport_load, gives_all_others_their_own_replies_while_frames_are_destroyed_between_replies) {
    auto random = randomness();
    redis_server server;
    client client{{.url = server.url(), .command_timeout = long_enough}};
    client.command("PING");
    tally counts;
    tally fragile_counts;
    std::vector<fragile> frames;
    server.stop();
    for (int i = 0; i < 3'000; ++i) {
        frames.push_back(ask_and_count(client, i, 20, 100, fragile_counts));
        launch(ask(client, 10'000 + i, 20, 100, counts), counts);
    }
    server.cont();
    sync_wait(destroy_others(client, frames, random, 50));
    EXPECT_TRUE(eventually([&] { return counts.ended == 3'000; }, long_enough));
    EXPECT_EQ(counts.right, 20 * 3'000);
    EXPECT_EQ(counts.wrong + fragile_counts.wrong, 0);
    auto const over = [&] {
        return std::none_of(frames.begin(), frames.end(), [](fragile const& one) { return one.waits(); });
    };
    // Looked at on the I/O thread: that is where they change.
    auto const looks = [&]() -> task<bool> {
        next_turn const turn{client};
        co_await turn;
        co_return over();
    };
    EXPECT_TRUE(eventually([&] { return sync_wait(looks()); }, long_enough));
    EXPECT_EQ(client.statistics().connects, 1U);
}

// Stops that come from many threads, at any moment: before, while and after the reply comes.
TEST(transport_load, survives_cancellation_from_many_threads) {
    redis_server server;
    client client{{.url = server.url(), .command_timeout = long_enough}};
    tally counts;
    std::vector<std::thread> threads;
    constexpr int each = 500;
    for (int t = 0; t < 8; ++t) {
        threads.emplace_back([&, t] {
            for (int i = 0; i < each; ++i) {
                std::stop_source stop;
                launch(with_stop_token(ask(client, t * each + i, 2, 0, counts), stop.get_token()), counts);
                if (i % 2 == 0) stop.request_stop();
                if (i % 50 != 0) continue;
                EXPECT_EQ(client.command<int>("ECHO", i), i);
            }
        });
    }
    for (auto& thread : threads) thread.join();
    EXPECT_TRUE(eventually([&] { return counts.ended == 8 * each; }, long_enough));
    EXPECT_EQ(counts.wrong, 0);
    EXPECT_EQ(counts.failed, 0);
    EXPECT_GE(counts.right, 2 * 4 * each) << "those that nobody stopped";
    EXPECT_EQ(client.statistics().pending, 0U);
}

TEST(transport_load, serves_many_threads_in_both_forms) {
    redis_server server;
    client client{{.url = server.url(), .command_timeout = long_enough}};
    std::vector<std::thread> threads;
    std::atomic<int> wrong{0};
    for (int t = 0; t < 8; ++t) {
        threads.emplace_back([&, t] {
            auto const key = "key" + std::to_string(t);
            for (int i = 1; i <= 300; ++i) {
                auto const now = t % 2 == 0 ? blocking::command<int>(client, "INCR", key)
                                            : coroutine::command<int>(client, "INCR", key);
                if (now != i) ++wrong;
            }
        });
    }
    for (auto& thread : threads) thread.join();
    EXPECT_EQ(wrong, 0);
    EXPECT_EQ(server.connections(), 1);
}

TEST(transport_load, refuses_at_once_what_is_more_than_max_pending) {
    redis_server server;
    client client{{.url = server.url(), .command_timeout = long_enough, .max_pending = 100}};
    client.command("PING");
    server.stop();
    tally counts;
    for (int i = 0; i < 150; ++i) launch(ask(client, i, 1, 0, counts), counts);
    EXPECT_TRUE(eventually([&] { return counts.failed == 50; }));
    EXPECT_THAT(failure<unavailable_error>([&] { client.command("PING"); }), HasSubstr("max_pending"));
    EXPECT_EQ(client.statistics().pending, 100U);
    server.cont();
    EXPECT_TRUE(eventually([&] { return counts.ended == 150; }));
    EXPECT_EQ(counts.right, 100);
    EXPECT_EQ(client.command("PING").text(), "PONG");
}

// A full queue must not keep the client from finding out that the server is gone.
TEST(transport_load, notices_a_dead_connection_although_the_queue_is_full) {
    redis_server server;
    fault_proxy proxy{server.address()};
    client client{{.url = proxy.url(),
                   .command_timeout = long_enough,
                   .keepalive_interval = 30ms,
                   .keepalive_timeout = 60ms,
                   .max_pending = 10}};
    client.command("PING");
    proxy.half_open();
    tally counts;
    for (int i = 0; i < 10; ++i) launch(ask(client, i, 1, 0, counts), counts);
    EXPECT_TRUE(eventually([&] { return client.statistics().reconnects == 1; }));
    EXPECT_TRUE(eventually([&] { return counts.failed == 10; }));
}

TEST(transport_load, keeps_a_batch_within_its_options) {
    redis_server server;
    client one_by_one{{.url = server.url(), .max_batch_bytes = 1}};
    auto commands = pipeline{};
    for (int i = 0; i < 100; ++i) commands.add("ECHO", i);
    auto const replies = one_by_one.execute(commands);
    for (int i = 0; i < 100; ++i) EXPECT_EQ(replies[static_cast<std::size_t>(i)].as<int>(), i);
    EXPECT_GE(one_by_one.statistics().batches, 100U);

    client patient{{.url = server.url(), .batch_delay = 200ms}};
    patient.command("PING");
    auto const before = patient.statistics().batches;
    auto const began = now_ms();
    tally counts;
    for (int i = 0; i < 100; ++i) launch(ask(patient, i, 1, 0, counts), counts);
    EXPECT_TRUE(eventually([&] { return counts.ended == 100; }));
    EXPECT_EQ(counts.right, 100);
    EXPECT_GE(now_ms() - began, 199) << "it waited for more";
    EXPECT_LE(patient.statistics().batches - before, 10U) << "though they came one by one";
}

template <class Form>
class transport_bytes : public testing::Test {};
TYPED_TEST_SUITE(transport_bytes, forms, form_names);

TYPED_TEST(transport_bytes, carries_any_name_and_any_value) {
    redis_server server;
    client client{{.url = server.url(), .command_timeout = long_enough}};
    std::string every;
    for (int i = 0; i < 256; ++i) every += static_cast<char>(i);
    std::vector<std::string> const texts{"",
                                         std::string(1, '\0'),
                                         std::string{"a\0b", 3},
                                         "\r\n",
                                         "$5\r\nhello\r\n",
                                         "*1\r\n",
                                         "{",
                                         "}",
                                         "{}",
                                         "{a}{b}",
                                         "-ERR no\r\n",
                                         every,
                                         std::string(10'000'000, 'x'),
                                         std::string(10'000'000, '\0')};
    for (auto const& text : texts) {
        SCOPED_TRACE(text.substr(0, 20));
        TypeParam::command(client, "SET", text, text);
        EXPECT_TRUE(TypeParam::template command<std::string>(client, "GET", text) == text);
        auto const bytes = std::as_bytes(std::span{text});
        EXPECT_TRUE(TypeParam::template command<std::string>(client, "ECHO", bytes) == text);
        auto const both = TypeParam::execute(client, transaction{}.add("GETDEL", text).add("ECHO", text));
        EXPECT_TRUE(both && (*both)[0].text() == text && (*both)[1].text() == text);
    }
    EXPECT_EQ(client.statistics().connects, 1U);
    EXPECT_EQ(server.must({"DBSIZE"}).integer, 0);
}

TYPED_TEST(transport_bytes, reads_replies_that_come_in_crumbs) {
    redis_server server;
    fault_proxy proxy{server.address()};
    client client{{.url = proxy.url(), .command_timeout = long_enough}};
    TypeParam::command(client, "HSET", "hash", "a", 1, "b", "\r\n");
    proxy.throttle(250);  // five bytes at a time
    auto const replies = TypeParam::execute(
        client, pipeline{}.add("HGETALL", "hash").add("ECHO", "\r\n\r\n").add("NONSENSE").add("PING"));
    EXPECT_EQ(replies[0].find("b").text(), "\r\n");
    EXPECT_EQ(replies[1].text(), "\r\n\r\n");
    EXPECT_TRUE(replies[2].is_error());
    EXPECT_EQ(replies[3].text(), "PONG");
}

// Asks again at once when it is refused, which happens in the turn in which it asks.
task<void> insist(client& on) {
    for (;;) {
        try {
            co_await on.async_command("PING");
            co_return;
        } catch (unavailable_error const&) {
        }
    }
}

TEST(transport_load, reads_replies_although_somebody_asks_again_whenever_he_is_refused) {
    redis_server server;
    client client{{.url = server.url(), .command_timeout = long_enough, .max_pending = 1}};
    client.command("PING");
    server.stop();
    tally counts;
    launch(insist(client), counts);
    EXPECT_TRUE(eventually([&] { return client.statistics().pending == 1; }));
    launch(insist(client), counts);
    launch(insist(client), counts);
    server.cont();
    EXPECT_TRUE(eventually([&] { return counts.ended == 3; }));
    EXPECT_EQ(counts.failed, 0);
}

}  // namespace
}  // namespace lockstep::test
