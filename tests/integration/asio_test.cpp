// Tasks in Boost.Asio programs: as_awaitable, completion tokens, executors and cancellation. The client has its own thread here;
// clients that live on the user's executor are in asio_client_test.cpp.

#include "support/eventually.hpp"
#include "support/redis_server.hpp"

#include <lockstep/asio.hpp>
#include <lockstep/error.hpp>

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/deferred.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/experimental/awaitable_operators.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_future.hpp>
#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <string>
#include <thread>
#include <vector>

namespace lockstep {
namespace {

namespace asio = boost::asio;
using asio::awaitable;
using test::eventually;
using test::redis_server;

template <class T>
T run(awaitable<T> work) {
    asio::io_context context;
    std::optional<std::future<T>> result = asio::co_spawn(context, std::move(work), asio::use_future);
    context.run();
    return result->get();
}

// A client that has spoken with its server.
struct connected {
    redis_server server;
    lockstep::client client{server.url()};
    connected() { client.command("PING"); }
};

struct no_default {
    explicit no_default(int n) noexcept : number(n) {}
    int number;
};

task<no_default> make_no_default(client& on) {
    auto const number = co_await on.async_command<int>("INCR", "counter");
    co_return no_default{number};
}

// ---- as_awaitable

awaitable<std::string> use_values(client& on) {
    co_await as_awaitable(on.async_command<void>("SET", "key", "value"));
    auto const text = co_await as_awaitable(on.async_command<std::string>("GET", "key"));
    auto const number = co_await as_awaitable(make_no_default(on));
    auto const raw = co_await as_awaitable(on.async_command("ECHO", "x"));
    auto session = co_await as_awaitable(on.async_open_session());
    auto const own = co_await as_awaitable(session.async_command<std::string>("ECHO", "own"));
    co_return text + std::to_string(number.number) + std::string{raw.text()} + own;
}

TEST(as_awaitable, brings_values_of_all_kinds) {
    connected with;
    EXPECT_EQ(run(use_values(with.client)), "value1xown");
}

awaitable<std::string> use_error(client& on) {
    std::string what;
    try {
        co_await as_awaitable(on.async_command("INCR", "text"));
    } catch (server_error const& problem) {
        what = problem.prefix();
    }
    try {
        co_await as_awaitable(on.async_command<int>("GET", "text"));
    } catch (conversion_error const&) {
        what += ", conversion";
    }
    co_return what;
}

TEST(as_awaitable, throws_the_error_of_the_task) {
    connected with;
    with.client.command("SET", "text", "x");
    EXPECT_EQ(run(use_error(with.client)), "ERR, conversion");
}

awaitable<int> count_strays(client& on, int times) {
    auto const home = std::this_thread::get_id();
    int strays = 0;
    for (int i = 0; i != times; ++i) {
        co_await as_awaitable(on.async_command("PING"));
        if (std::this_thread::get_id() != home) ++strays;
    }
    co_return strays;
}

TEST(as_awaitable, resumes_on_the_executor_of_the_coroutine) {
    connected with;
    EXPECT_EQ(run(count_strays(with.client, 200)), 0);
    asio::thread_pool pool{1};
    EXPECT_EQ(asio::co_spawn(pool, count_strays(with.client, 200), asio::use_future).get(), 0);
    pool.join();  // its destructor alone does not wait for the thread that has just posted there
}

awaitable<void> add_up(client& on, std::atomic<int>& sum) {
    for (int i = 0; i != 20; ++i) {
        auto const text = std::to_string(i);
        if (co_await as_awaitable(on.async_command<std::string>("ECHO", text)) == text) ++sum;
    }
}

TEST(as_awaitable, serves_many_coroutines_on_a_pool_of_threads) {
    connected with;
    std::atomic<int> sum = 0;
    {
        asio::thread_pool pool{4};
        for (int i = 0; i != 100; ++i) asio::co_spawn(pool, add_up(with.client, sum), asio::detached);
        pool.join();
    }
    EXPECT_EQ(sum, 2000);
}

awaitable<std::string> outcome_of_get(client& on) {
    std::string outcome;
    try {
        outcome = co_await as_awaitable(on.async_command<std::string>("GET", "key"));
    } catch (cancelled_error const&) {
        outcome = "cancelled";
    }
    co_return outcome;
}

TEST(as_awaitable, a_cancellation_signal_ends_it_and_the_connection_stays_right) {
    connected with;
    with.client.command("SET", "key", "value");
    with.server.stop();
    asio::io_context context;
    asio::cancellation_signal signal;
    auto result = asio::co_spawn(context, outcome_of_get(with.client), asio::bind_cancellation_slot(signal.slot(), asio::use_future));
    auto const before = with.client.statistics().requests;
    while (with.client.statistics().requests == before) context.poll();  // until it was sent
    signal.emit(asio::cancellation_type::terminal);
    context.run();
    EXPECT_EQ(result.get(), "cancelled");

    auto later = spawn(with.client.async_command<std::string>("ECHO", "mine"), asio::use_future);
    with.server.cont();
    EXPECT_EQ(later.get(), "mine");  // and not the reply that was given up
    EXPECT_EQ(with.client.statistics().reconnects, 0U);
}

awaitable<int> race_with_a_timer(client& on, int number) {
    using namespace asio::experimental::awaitable_operators;
    asio::steady_timer soon{co_await asio::this_coro::executor};
    // Even ones are given up before or after they were sent, as it comes; odd ones are waited for.
    soon.expires_after(number % 2 == 0 ? std::chrono::microseconds{50 * number} : std::chrono::hours{1});
    auto const text = std::to_string(number);
    auto const winner = co_await (as_awaitable(on.async_command<std::string>("ECHO", text)) || soon.async_wait(asio::use_awaitable));
    if (winner.index() == 1) co_return 0;
    co_return std::get<0>(winner) == text ? 1 : -10'000;
}

awaitable<void> add_race(client& on, int number, int& sum) { sum += co_await race_with_a_timer(on, number); }

TEST(as_awaitable, losing_a_race_leaves_the_replies_of_the_others_right) {
    connected with;
    asio::io_context context;
    int sum = 0;
    for (int i = 0; i != 200; ++i) asio::co_spawn(context, add_race(with.client, i, sum), asio::detached);
    context.run();
    EXPECT_GE(sum, 100);
    EXPECT_EQ(with.client.command<std::string>("ECHO", "still"), "still");
    EXPECT_EQ(with.client.statistics().reconnects, 0U);
}

awaitable<std::size_t> which_ends_first(client& on) {
    using namespace asio::experimental::awaitable_operators;
    asio::steady_timer soon{co_await asio::this_coro::executor, std::chrono::milliseconds{1}};
    auto const winner = co_await (as_awaitable(on.async_command("PING")) || soon.async_wait(asio::use_awaitable));
    co_return winner.index();
}

TEST(as_awaitable, a_timer_wins_against_a_server_that_does_not_answer) {
    connected with;
    with.server.stop();
    EXPECT_EQ(run(which_ends_first(with.client)), 1U);
    EXPECT_TRUE(eventually([&] { return with.client.statistics().pending == 0; }));
    with.server.cont();
    EXPECT_EQ(with.client.command<std::string>("ECHO", "still"), "still");
}

// ---- tokens

TEST(spawn, a_plain_callback_runs_where_the_task_ended) {
    connected with;
    std::promise<std::thread::id> where;
    spawn(with.client.async_command("PING"), [&](std::exception_ptr error, reply const& answer) {
        EXPECT_FALSE(error);
        EXPECT_EQ(answer.text(), "PONG");
        EXPECT_THROW(with.client.command("PING"), would_deadlock_error);
        where.set_value(std::this_thread::get_id());
    });
    EXPECT_NE(where.get_future().get(), std::this_thread::get_id());
}

TEST(spawn, a_callback_with_an_executor_runs_there_and_never_inside_the_call) {
    connected with;
    asio::io_context context;
    int calls = 0;
    auto const count = [&](std::exception_ptr error, auto&&...) {
        ++calls;
        EXPECT_TRUE(error);
    };
    spawn(task<int>{}, asio::bind_executor(context, count));  // ends at once
    spawn(with.client.async_command("NONSENSE"), asio::bind_executor(context, count));
    spawn(with.client.async_command<void>("NONSENSE"), asio::bind_executor(context, count));
    EXPECT_EQ(calls, 0);
    context.run();  // returns when all have ended: a task under way is work
    EXPECT_EQ(calls, 3);
}

TEST(spawn, gives_an_optional_where_the_value_can_not_be_made_of_nothing) {
    connected with;
    asio::io_context context;
    std::optional<no_default> value;
    spawn(make_no_default(with.client), asio::bind_executor(context, [&](std::exception_ptr, std::optional<no_default> result) { value = result; }));
    context.run();
    ASSERT_TRUE(value);
    EXPECT_EQ(value->number, 1);
}

TEST(spawn, a_future_holds_the_value_or_the_error) {
    connected with;
    EXPECT_EQ(spawn(with.client.async_command<std::string>("ECHO", "x"), asio::use_future).get(), "x");
    EXPECT_THROW(spawn(with.client.async_command("NONSENSE"), asio::use_future).get(), server_error);
    EXPECT_NO_THROW(spawn(with.client.async_command<void>("PING"), asio::use_future).get());
}

TEST(spawn, detached_runs_all_the_same) {
    connected with;
    spawn(with.client.async_command("INCR", "counter"), asio::detached);
    EXPECT_TRUE(eventually([&] { return with.server.must({"GET", "counter"}).text == "1"; }));
}

TEST(spawn, deferred_starts_when_it_is_called) {
    connected with;
    auto later = spawn(with.client.async_command<int>("INCR", "counter"), asio::deferred);
    EXPECT_EQ(with.client.command<int>("INCR", "counter"), 1);
    EXPECT_EQ(std::move(later)(asio::use_future).get(), 2);
}

TEST(spawn, obeys_the_cancellation_slot) {
    connected with;
    with.server.stop();
    asio::io_context context;
    asio::cancellation_signal signal;
    bool cancelled = false;
    auto handler = [&](std::exception_ptr error, reply const&) {
        try {
            if (error) std::rethrow_exception(error);
        } catch (cancelled_error const&) {
            cancelled = true;
        }
    };
    spawn(with.client.async_command("PING"), asio::bind_cancellation_slot(signal.slot(), asio::bind_executor(context, handler)));
    signal.emit(asio::cancellation_type::total);
    context.run();
    EXPECT_TRUE(cancelled);
    signal.emit(asio::cancellation_type::total);  // nothing is left to hear it
    with.server.cont();
}

// ---- resume_on

task<std::vector<std::thread::id>> travel(client& on, asio::any_io_executor there) {
    std::vector<std::thread::id> threads;
    co_await on.async_command("PING");
    threads.push_back(std::this_thread::get_id());
    co_await resume_on(there);
    threads.push_back(std::this_thread::get_id());
    co_return threads;
}

TEST(resume_on, moves_a_plain_coroutine_to_an_executor) {
    connected with;
    asio::thread_pool pool{1};
    auto const pool_thread = asio::post(pool, asio::use_future([] { return std::this_thread::get_id(); })).get();
    auto const threads = sync_wait(travel(with.client, pool.get_executor()));
    EXPECT_NE(threads[0], pool_thread);
    EXPECT_EQ(threads[1], pool_thread);
    pool.join();
}

task<int> block_on_the_pool(client& on, asio::any_io_executor there) {
    co_await on.async_command("PING");
    co_await resume_on(there);
    co_return on.command<int>("INCR", "counter");  // may block here
}

TEST(resume_on, leads_to_where_blocking_is_allowed) {
    connected with;
    asio::thread_pool pool{1};
    EXPECT_EQ(sync_wait(block_on_the_pool(with.client, pool.get_executor())), 1);
    pool.join();
}

task<void> move_only(asio::any_io_executor there, std::shared_ptr<int> /*kept*/) { co_await resume_on(there); }

TEST(resume_on, a_context_that_is_destroyed_first_ends_the_coroutine) {
    auto const kept = std::make_shared<int>(0);
    bool cancelled = false;
    {
        asio::io_context context;
        start(move_only(context.get_executor(), kept), [&](std::exception_ptr error) { cancelled = error != nullptr; });
        EXPECT_FALSE(cancelled);
    }
    EXPECT_TRUE(cancelled);
    EXPECT_EQ(kept.use_count(), 1);
}

struct owned {
    struct promise_type {
        owned get_return_object() noexcept { return {std::coroutine_handle<promise_type>::from_promise(*this)}; }
        std::suspend_never initial_suspend() const noexcept { return {}; }
        std::suspend_always final_suspend() const noexcept { return {}; }
        void return_void() const noexcept {}
        void unhandled_exception() const noexcept { std::terminate(); }
    };
    std::coroutine_handle<promise_type> frame;
};

owned move_in_plain(asio::io_context& context, bool& moved) {
    co_await resume_on(context.get_executor());
    moved = true;
}

TEST(resume_on, does_not_resume_a_coroutine_that_was_destroyed) {
    asio::io_context context;
    bool moved = false;
    auto const user = move_in_plain(context, moved);
    user.frame.destroy();
    context.run();
    EXPECT_FALSE(moved);
}

}  // namespace
}  // namespace lockstep
