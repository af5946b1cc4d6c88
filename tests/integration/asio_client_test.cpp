// Clients that live on the user's executor: an io_context run by one thread or by several, and a thread_pool; how they end, in every
// order of destruction; and clients that are destroyed by a coroutine on an I/O thread.

#include "support/eventually.hpp"
#include "support/redis_server.hpp"

#include <lockstep/asio.hpp>
#include <lockstep/error.hpp>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/use_future.hpp>
#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

namespace lockstep {
namespace {

namespace asio = boost::asio;
using asio::awaitable;
using test::eventually;
using test::redis_server;

bool is_cancelled(std::exception_ptr const& problem) {
    try {
        if (problem) std::rethrow_exception(problem);
    } catch (cancelled_error const&) {
        return true;
    } catch (std::exception const&) {
        return false;
    }
    return false;
}

// ---- the executors a client can live on

struct one_thread {
    static constexpr char const* name = "one_thread";
    asio::io_context context;
    asio::executor_work_guard<asio::io_context::executor_type> work{context.get_executor()};
    std::thread thread{[this] { context.run(); }};

    ~one_thread() {
        work.reset();
        thread.join();
    }
    auto executor() { return context.get_executor(); }
};

struct three_threads {
    static constexpr char const* name = "three_threads";
    asio::io_context context;
    asio::executor_work_guard<asio::io_context::executor_type> work{context.get_executor()};
    std::vector<std::thread> threads;

    three_threads() {
        for (int i = 0; i != 3; ++i) threads.emplace_back([this] { context.run(); });
    }
    ~three_threads() {
        work.reset();
        for (auto& one : threads) one.join();
    }
    auto executor() { return context.get_executor(); }
};

struct pool {
    static constexpr char const* name = "pool";
    asio::thread_pool threads{3};

    ~pool() { threads.join(); }
    auto executor() { return threads.get_executor(); }
};

struct any_executor_of_a_strand : one_thread {
    static constexpr char const* name = "any_executor_of_a_strand";
    asio::any_io_executor executor() { return asio::make_strand(context); }
};

struct names {
    template <class T>
    static std::string GetName(int) {
        return T::name;
    }
};

template <class Home>
class client_on : public testing::Test {
protected:
    redis_server server;
    Home home;  // goes before the server, after the client
    std::optional<client> on{make_client(home.executor(), {.url = server.url()})};

    // Runs it on the executor and waits for its end here.
    template <class T>
    T run(awaitable<T> work) {
        return asio::co_spawn(home.executor(), std::move(work), asio::use_future).get();
    }
};
using homes = testing::Types<one_thread, three_threads, pool, any_executor_of_a_strand>;
TYPED_TEST_SUITE(client_on, homes, names);

awaitable<int> echo_many(client& on, int times) {
    int right = 0;
    for (int i = 0; i != times; ++i) {
        auto const text = std::to_string(i);
        if (co_await as_awaitable(on.async_command<std::string>("ECHO", text)) == text) ++right;
    }
    co_return right;
}

TYPED_TEST(client_on, serves_coroutines_there) {
    std::vector<std::future<int>> all;
    for (int i = 0; i != 50; ++i) all.push_back(asio::co_spawn(this->home.executor(), echo_many(*this->on, 20), asio::use_future));
    for (auto& one : all) EXPECT_EQ(one.get(), 20);
    EXPECT_EQ(this->server.connections(), 1);
}

TYPED_TEST(client_on, serves_blocking_calls_from_other_threads) {
    std::vector<std::thread> callers;
    std::atomic<int> right = 0;
    for (int i = 0; i != 4; ++i) {
        callers.emplace_back([&, i] {
            for (int j = 0; j != 50; ++j) {
                auto const text = std::to_string(i * 100 + j);
                if (this->on->template command<std::string>("ECHO", text) == text) ++right;
            }
        });
    }
    for (auto& one : callers) one.join();
    EXPECT_EQ(right, 200);
}

awaitable<bool> blocks_here(client& on) {
    bool refused = false;
    try {
        on.command("PING");
    } catch (would_deadlock_error const&) {
        refused = true;
    }
    co_return refused;
}

TYPED_TEST(client_on, refuses_blocking_calls_on_its_executor) {
    EXPECT_TRUE(this->run(blocks_here(*this->on)));
    EXPECT_EQ(this->on->command("PING").text(), "PONG");
}

TYPED_TEST(client_on, refuses_blocking_calls_in_its_continuations) {
    std::promise<bool> refused;
    spawn(this->on->async_command("PING"), [&](std::exception_ptr, reply const&) {
        try {
            this->on->command("PING");
            refused.set_value(false);
        } catch (would_deadlock_error const&) {
            refused.set_value(true);
        }
    });
    EXPECT_TRUE(refused.get_future().get());
}

TYPED_TEST(client_on, delivers_messages) {
    std::mutex mutex;
    std::vector<std::string> received;
    auto const heard = this->on->subscribe("news", [&](message const& one) {
        std::lock_guard const guard{mutex};
        received.emplace_back(one.payload);
    });
    for (int i = 0; i != 100; ++i) this->on->command("PUBLISH", "news", i);
    ASSERT_TRUE(eventually([&] {
        std::lock_guard const guard{mutex};
        return received.size() == 100;
    }));
    for (int i = 0; i != 100; ++i) EXPECT_EQ(received[static_cast<std::size_t>(i)], std::to_string(i));
}

TYPED_TEST(client_on, closing_from_another_thread_ends_what_waits) {
    this->on->command("PING");
    this->server.stop();
    auto pending = asio::co_spawn(this->home.executor(), echo_many(*this->on, 1), asio::use_future);
    ASSERT_TRUE(eventually([&] { return this->on->statistics().pending == 1; }));
    this->on->close();
    EXPECT_THROW(pending.get(), cancelled_error);
    EXPECT_THROW(this->on->command("PING"), cancelled_error);
    EXPECT_THROW((void)this->on->subscribe("news", [](message const&) {}), cancelled_error);
    EXPECT_THROW(this->on->open_session(), cancelled_error);
    this->server.cont();
}

TYPED_TEST(client_on, closing_ends_its_sessions_too) {
    auto session = this->on->open_session();
    auto pending = spawn(session.async_command("BLPOP", "nothing", 0), asio::use_future);
    ASSERT_TRUE(eventually([&] { return this->server.info("blocked_clients") == "1"; }));
    this->on.reset();
    EXPECT_THROW(pending.get(), cancelled_error);
    EXPECT_TRUE(eventually([&] { return this->server.connections() == 0; }));
}

awaitable<std::string> two_at_once(client& first, client& second) {
    auto const one = co_await as_awaitable(first.async_command<std::string>("ECHO", "one"));
    auto const two = co_await as_awaitable(second.async_command<std::string>("ECHO", "two"));
    co_return one + two;
}

TYPED_TEST(client_on, shares_the_executor_with_another_client) {
    redis_server other;
    auto second = make_client(this->home.executor(), {.url = other.url()});
    for (int i = 0; i != 20; ++i) EXPECT_EQ(this->run(two_at_once(*this->on, second)), "onetwo");
    EXPECT_EQ(this->on->template command<std::string>("ECHO", "x"), "x");
    second.close();
    EXPECT_EQ(this->on->template command<std::string>("ECHO", "x"), "x");
}

// The coroutine is the client's only owner and lets go of it on the thread that has just resumed it.
task<void> use_up(client last) { co_await last.async_command("PING"); }

TYPED_TEST(client_on, may_be_destroyed_by_a_coroutine_that_it_resumed) {
    std::promise<bool> done;
    start(use_up(std::move(*this->on)), [&](std::exception_ptr error) { done.set_value(error == nullptr); });
    EXPECT_TRUE(done.get_future().get());
    this->on.reset();
    EXPECT_TRUE(eventually([&] { return this->server.connections() == 0; }));
}

// ---- the end of a context

TEST(client_on_a_context, lets_run_return_when_it_is_closed) {
    redis_server server;
    asio::io_context context;
    auto on = make_client(context.get_executor(), {.url = server.url()});
    context.run();  // a client that was not used is no work
    context.restart();
    auto counted = asio::co_spawn(context, echo_many(on, 10), asio::use_future);
    while (counted.wait_for(std::chrono::seconds{0}) != std::future_status::ready) context.run_one();
    EXPECT_EQ(counted.get(), 10);
    auto const news = spawn(on.async_subscribe({.channel = "news", .handler = [](message const&) {}}), asio::use_future);
    while (news.wait_for(std::chrono::seconds{0}) != std::future_status::ready) context.run_one();
    on.close();
    context.run();
    EXPECT_TRUE(eventually([&] { return server.connections() == 0; }));
}

TEST(client_on_a_context, lets_run_return_when_it_is_gone) {
    redis_server server;
    asio::io_context context;
    asio::co_spawn(
        context,
        [](asio::io_context& here, std::string url) -> awaitable<void> {
            auto on = make_client(here.get_executor(), {.url = url});
            co_await as_awaitable(on.async_command("PING"));
        }(context, server.url()),
        asio::detached);
    context.run();
    EXPECT_TRUE(eventually([&] { return server.connections() == 0; }));
}

// In which order the parts go.
enum class first_to_go { client, context };

// One request by a plain task and one by an awaitable; the context has run some steps only, so that everything is caught in every
// state: not begun, connecting, logging in, waiting for a reply, done.
void destroy_after(int steps, first_to_go order, redis_server& server, bool answers, bool subscribes = false) {
    std::optional<asio::io_context> context{std::in_place};
    std::optional<client> on{make_client(context->get_executor(), {.url = server.url()})};
    std::optional<std::exception_ptr> plain;
    start(on->async_command("PING"), [&](std::exception_ptr error, auto&&) { plain = std::move(error); });
    if (subscribes) {
        start(on->async_subscribe({.channel = "news", .handler = [](message const&) {}}), [](std::exception_ptr, auto&&) {});
    }
    auto awaited = asio::co_spawn(*context, echo_many(*on, 2), asio::use_future);
    for (int i = 0; i != steps; ++i) {
        if (answers) {
            context->run_one_for(std::chrono::milliseconds{5});
        } else {
            context->poll_one();
        }
    }
    if (order == first_to_go::client) {
        on.reset();
        context.reset();
    } else {
        context.reset();
        EXPECT_THROW(on->command("PING"), cancelled_error);
        on.reset();
    }
    ASSERT_TRUE(plain.has_value());
    EXPECT_TRUE(*plain == nullptr || is_cancelled(*plain));
    EXPECT_EQ(awaited.wait_for(std::chrono::seconds{0}), std::future_status::ready);  // by a value, an error or a broken promise
}

TEST(client_on_a_context, may_go_before_a_context_that_never_runs_dry) {
    redis_server server;
    for (int steps = 0; steps != 40; ++steps) destroy_after(steps, first_to_go::client, server, true);
    EXPECT_TRUE(eventually([&] { return server.connections() == 0; }));
}

TEST(client_on_a_context, may_go_before_its_context_while_the_server_is_silent) {
    redis_server server;
    server.stop();
    for (int steps = 0; steps != 15; ++steps) destroy_after(steps, first_to_go::client, server, false);
    server.cont();
}

TEST(client_on_a_context, ends_when_its_context_is_destroyed) {
    redis_server server;
    for (int steps = 0; steps != 40; ++steps) destroy_after(steps, first_to_go::context, server, true);
    EXPECT_TRUE(eventually([&] { return server.connections() == 0; }));
    server.stop();
    for (int steps = 0; steps != 15; ++steps) destroy_after(steps, first_to_go::context, server, false);
    server.cont();
}

TEST(client_on_a_context, ends_a_subscription_that_has_not_begun) {
    redis_server server;
    for (int steps = 0; steps != 40; ++steps) destroy_after(steps, first_to_go::client, server, true, true);
}

TEST(client_on_a_context, a_context_that_is_destroyed_takes_the_coroutine_along_that_owns_the_client) {
    redis_server server;
    auto const kept = std::make_shared<int>(0);
    {
        asio::io_context context;
        asio::co_spawn(
            context,
            [](asio::io_context& here, std::string url, std::shared_ptr<int>) -> awaitable<void> {
                auto on = make_client(here.get_executor(), {.url = url});
                auto session = co_await as_awaitable(on.async_open_session());
                co_await as_awaitable(session.async_command("BLPOP", "nothing", 0));
            }(context, server.url(), kept),
            asio::detached);
        ASSERT_TRUE(eventually([&] { return context.poll(), server.info("blocked_clients") == "1"; }));
    }
    EXPECT_EQ(kept.use_count(), 1);
    EXPECT_TRUE(eventually([&] { return server.connections() == 0; }));
}

TEST(client_on_a_context, a_pool_that_is_destroyed_ends_its_client) {
    redis_server server;
    std::optional<asio::thread_pool> threads{2};
    auto on = make_client(threads->get_executor(), {.url = server.url()});
    on.command("PING");
    server.stop();
    auto pending = spawn(on.async_command("PING"), asio::use_future);
    threads.reset();
    EXPECT_THROW(pending.get(), cancelled_error);
    server.cont();
}

// ---- clients with a thread of their own

TEST(client_with_a_thread, may_be_destroyed_on_that_thread) {
    redis_server server;
    for (int i = 0; i != 20; ++i) {
        std::promise<bool> done;
        start(use_up(client{server.url()}), [&](std::exception_ptr error) { done.set_value(error == nullptr); });
        EXPECT_TRUE(done.get_future().get());
    }
    EXPECT_TRUE(eventually([&] { return server.connections() == 0; }));
}

task<void> drop_the_other(client& here, std::optional<client>& other) {
    co_await here.async_command("PING");
    other.reset();
}

TEST(client_with_a_thread, may_be_destroyed_on_the_thread_of_another) {
    redis_server server;
    client here{server.url()};
    for (int i = 0; i != 20; ++i) {
        std::optional<client> other{server.url()};
        other->command("PING");
        sync_wait(drop_the_other(here, other));
    }
    EXPECT_TRUE(eventually([&] { return server.connections() == 1; }));
}

TEST(client_with_a_thread, closes_although_a_session_is_open) {
    redis_server server;
    client on{server.url()};
    auto session = on.open_session();
    auto pending = spawn(session.async_command("BLPOP", "nothing", 0), asio::use_future);
    on.close();
    EXPECT_THROW(pending.get(), cancelled_error);
    EXPECT_THROW(session.command("PING"), cancelled_error);
    EXPECT_THROW((void)on.subscribe("news", [](message const&) {}), cancelled_error);
}

}  // namespace
}  // namespace lockstep
