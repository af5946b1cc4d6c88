// Redlock over clients that exist: closed meanwhile, on several threads, on the user's executor.
#include "redlock_support.hpp"

#include <lockstep/asio.hpp>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <gmock/gmock.h>

#include <atomic>
#include <memory>
#include <thread>
#include <vector>

namespace lockstep::test {
namespace {

namespace asio = boost::asio;

std::vector<std::unique_ptr<client>> clients_of(server_set& servers) {
    std::vector<std::unique_ptr<client>> made;
    for (std::size_t i = 0; i != servers.size(); ++i) made.push_back(std::make_unique<client>(servers[i].url()));
    return made;
}

redlock_nodes nodes_of(std::vector<std::unique_ptr<client>> const& clients) {
    std::vector<client*> pointers;
    for (auto const& one : clients) pointers.push_back(one.get());
    return redlock_nodes{std::span<client* const>{pointers}};
}

TEST(redlock_clients, a_try_ends_when_the_client_is_closed) {
    redis_server server;
    fault_proxy proxy{server.address()};
    for (bool const fenced : {false, true}) {
        client by{proxy.url()};
        redlock lock{by, "name", {.ttl = 60s, .node_timeout = 30s, .fence = fenced}};
        lock.acquire().release();
        proxy.hold();
        begun<std::optional<redlock_lease>> tries{lock.async_try_acquire()};
        begun<redlock_lease> waits{lock.async_acquire()};
        run_turn(by);
        by.close();
        EXPECT_EQ(ending_of([&] { static_cast<void>(tries.get()); }).reason, errc::cancelled);
        EXPECT_EQ(ending_of([&] { static_cast<void>(waits.get()); }).reason, errc::cancelled);
        proxy.heal();
    }
}

TEST(redlock_clients, the_same_one_twice_is_refused) {
    redis_server server;
    client first{server.url()};
    client again{server.url()};
    for (auto* const second : {&first, &again}) {
        client* const both[] = {&first, second};
        auto const end = ending_of([&] { redlock_nodes{std::span<client* const>{both}}; });
        EXPECT_EQ(end.reason, errc::invalid_argument);
        EXPECT_THAT(end.text, testing::HasSubstr("given twice"));
    }
}

TEST(redlock_clients, locks_of_one_client_share_what_they_listen_with) {
    redis_server server;
    client by{server.url()};
    redlock first{by, "name"};
    redlock second{by, "name"};
    redlock_nodes const nodes{by};
    redlock third{nodes, "name"};
    for (auto* const one : {&first, &second, &third}) one->acquire().release();
    EXPECT_TRUE(eventually([&] { return server.must({"PUBSUB", "CHANNELS", "lockstep:wake:redlock-*"}).elements.size() == 1; }));
}

// The answers of the nodes come on threads of their own, and the last may overtake the one that decides.
TEST(redlock_clients, each_release_is_answered_while_nodes_answer_on_several_threads) {
    server_set servers{5};
    auto const clients = clients_of(servers);
    auto const nodes = nodes_of(clients);
    connect(nodes);
    std::atomic<int> failures = 0;
    std::vector<std::thread> threads;
    for (int i = 0; i != 4; ++i) {
        threads.emplace_back([&, i] {
            redlock lock{nodes, "name-" + std::to_string(i), {.node_timeout = 10s}};
            for (int k = 0; k != 300; ++k) {
                auto const end = ending_of([&] { lock.acquire().release(); });
                if (end.reason && failures++ == 0) ADD_FAILURE() << end.text;
            }
        });
    }
    for (auto& one : threads) one.join();
    EXPECT_EQ(failures, 0);
}

// Nobody runs the executor of two nodes of three. Their own time limits do not run either.
TEST(redlock_clients, gives_up_on_nodes_whose_thread_is_busy) {
    server_set servers{3};
    asio::io_context idle;
    auto first = make_client(idle.get_executor(), {.url = servers[0].url()});
    auto second = make_client(idle.get_executor(), {.url = servers[1].url()});
    client third{servers[2].url()};
    client* const all[] = {&first, &second, &third};
    redlock_nodes const nodes{std::span<client* const>{all}};
    redlock lock{nodes, "name", {.node_timeout = 100ms}};
    begun<std::optional<redlock_lease>> tries{lock.async_try_acquire()};
    EXPECT_EQ(ending_of([&] { static_cast<void>(tries.get(20s)); }).reason, errc::unavailable);
}

/// A lease, its lock and all that stands behind them end on the thread that has to send the release.
asio::awaitable<void> hold_for_a_moment(client& by, redis_server& server, std::atomic<std::int64_t>& took) {
    std::int64_t begin = 0;
    {
        redlock lock{by, "name", {.ttl = 60s}};
        auto const held = co_await as_awaitable(lock.async_acquire());
        EXPECT_EQ(server.must({"GET", "name"}).text, held.token());
        begin = now_ms();
    }
    took = now_ms() - begin;
}

TEST(redlock_clients, an_executors_thread_does_not_wait_for_itself) {
    redis_server server;
    asio::io_context context;
    auto by = make_client(context.get_executor(), {.url = server.url()});
    std::atomic<std::int64_t> took = -1;
    asio::co_spawn(context, hold_for_a_moment(by, server, took), asio::detached);
    EXPECT_TRUE(eventually([&] { return context.poll(), took >= 0; }));
    EXPECT_LT(took, 500) << "it waited for a release that only this thread can send";
    EXPECT_TRUE(eventually([&] { return context.poll(), server.must({"EXISTS", "name"}).integer == 0; })) << "it is locked for a minute";
}

}  // namespace
}  // namespace lockstep::test
