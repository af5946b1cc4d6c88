// Coroutines that are destroyed while they wait: whatever they wait for lets go of them, on whichever thread that is.
#include <lockstep/client.hpp>

#include "support/eventually.hpp"
#include "support/forms.hpp"
#include "support/fragile.hpp"
#include "support/redis_server.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <stop_token>
#include <string>
#include <vector>

namespace lockstep::test {
namespace {

using namespace std::chrono_literals;

fragile wait_for_a_command(client& on, std::stop_token token) { co_await with_stop_token(on.async_command("PING"), token); }
fragile wait_for_a_pipeline(client& on) {
    pipeline commands;
    commands.add("PING").add("ECHO", "x").add("PING");
    co_await on.async_execute(std::move(commands));
}
fragile wait_for_a_transaction(client& on, std::stop_token token) {
    transaction commands;
    commands.add("PING").add("ECHO", "x");
    co_await with_stop_token(on.async_execute(std::move(commands)), token);
}

// A request that can be cancelled is known to whoever may cancel it.
TEST(transport_lifetime, forgets_a_destroyed_coroutine_that_could_have_been_cancelled) {
    redis_server server;
    client client{{.url = server.url(), .command_timeout = 60s}};
    client.command("PING");
    server.stop();
    std::stop_source source;
    std::vector<fragile> frames;
    for (int i = 0; i < 10; ++i) {
        frames.push_back(wait_for_a_command(client, source.get_token()));
        frames.push_back(wait_for_a_pipeline(client));
        frames.push_back(wait_for_a_transaction(client, source.get_token()));
    }
    EXPECT_TRUE(eventually([&] { return client.statistics().pending == 50; }));
    frames.erase(frames.begin(), frames.begin() + 15);
    EXPECT_EQ(client.statistics().pending, 25U);
    source.request_stop();
    EXPECT_TRUE(eventually([&] { return client.statistics().pending == 15; })) << "of five pipelines";
    frames.clear();
    EXPECT_EQ(client.statistics().pending, 0U);
    server.cont();
    EXPECT_EQ(client.command<std::string>("ECHO", "in step"), "in step");
}

// Destroyed at once, it may be on its way from one list to the next on the I/O thread.
TEST(transport_lifetime, forgets_a_coroutine_that_is_destroyed_while_its_request_arrives) {
    redis_server server;
    client client{{.url = server.url(), .command_timeout = 60s}};
    client.command("PING");
    server.stop();
    std::stop_source source;
    for (int i = 0; i < 20'000; ++i) {
        wait_for_a_command(client, source.get_token()).destroy();
    }
    EXPECT_TRUE(eventually([&] { return client.statistics().pending == 0; }));
    server.cont();
    EXPECT_EQ(client.command<std::string>("ECHO", "in step"), "in step");
}

// All in one turn, so that the lock of the one is never free for the other, unless it is lent.
task<void> make_and_destroy(client& mine, client& other, std::atomic<int>& begun, std::atomic<int>& ended) {
    next_turn const turn{mine};
    co_await turn;
    ++begun;
    begun.notify_all();
    while (begun != 2) begun.wait(1);
    for (int i = 0; i < 2'000; ++i) wait_for_a_command(other, {}).destroy();
    ++ended;
}

TEST(transport_lifetime, lets_two_clients_destroy_each_others_coroutines) {
    redis_server server;
    client one{{.url = server.url(), .command_timeout = 60s}};
    client two{{.url = server.url(), .command_timeout = 60s}};
    for (auto* const each : {&one, &two}) each->command("PING");
    server.stop();
    std::atomic<int> begun{0};
    std::atomic<int> ended{0};
    start(make_and_destroy(one, two, begun, ended), [](std::exception_ptr) {});
    start(make_and_destroy(two, one, begun, ended), [](std::exception_ptr) {});
    EXPECT_TRUE(eventually([&] { return ended == 2; }));
    server.cont();
    for (auto* const each : {&one, &two}) EXPECT_EQ(each->command<std::string>("ECHO", "in step"), "in step");
}

}  // namespace
}  // namespace lockstep::test
