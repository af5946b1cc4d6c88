// How handlers at work on a queue end where the client ends before them, and on a thread that must not wait.
#include "queue_support.hpp"

#include "support/executor_thread.hpp"

#include <lockstep/asio.hpp>

#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <future>
#include <optional>

namespace lockstep::test {
namespace {

using texts = queue<std::string>;

class queue_worker_ends : public testing::Test {
protected:
    /// Its client is closed while somebody waits for its handler, which ends after that.
    void close_while_stopping(queue_worker worker, std::function<void()> const& let_it_end) {
        names.enqueue("x");
        ASSERT_TRUE(eventually([&] { return at_work.load(); }));
        auto stopping = std::async(std::launch::async, [&] { worker.stop(); });
        ASSERT_TRUE(eventually([&] { return waiting(server) == "0"; }));
        a->close();
        let_it_end();
        ASSERT_EQ(stopping.wait_for(30s), std::future_status::ready);
        try {
            stopping.get();
        } catch (cancelled_error const&) {
            // What the handler did could not be said any more.
        }
    }

    redis_server server;
    std::optional<client> a{std::in_place, server.url()};
    client b{server.url()};
    texts names{*a, "name"};
    std::atomic<bool> at_work{false};
};

TEST_F(queue_worker_ends, whoever_stops_threads_hears_of_it_although_the_client_was_closed_meanwhile) {
    std::promise<void> end;
    auto worker = names.consume({.concurrency = 2}, [&](std::string const&) {
        at_work = true;
        end.get_future().wait();
    });
    close_while_stopping(std::move(worker), [&] { end.set_value(); });
}

TEST_F(queue_worker_ends, whoever_stops_coroutines_hears_of_it_although_the_client_was_closed_meanwhile) {
    texts other{b, "other"};
    auto worker = names.consume({.concurrency = 2}, [&](std::string const&) -> task<void> {
        at_work = true;
        auto taking = other.async_dequeue();
        co_await std::move(taking);  // and goes on on the other client's thread
    });
    close_while_stopping(std::move(worker), [&] { other.enqueue("y"); });
}

TEST_F(queue_worker_ends, what_a_coroutine_did_counts_although_it_ended_on_another_thread_after_its_client_was_closed) {
    texts other{b, "other"};
    auto worker = names.consume({}, [&](std::string const&) -> task<void> {
        at_work = true;
        auto taking = other.async_dequeue();
        co_await std::move(taking);  // and goes on on the other client's thread
    });
    names.enqueue("x");
    ASSERT_TRUE(eventually([&] { return at_work.load(); }));
    a->close();
    other.enqueue("y");
    EXPECT_TRUE(eventually([&] { return worker.done() == 1; }));
}

// It can't wait there for threads that need this one.
TEST_F(queue_worker_ends, on_the_thread_of_the_clients_executor_without_waiting_for_it) {
    executor_thread home;
    auto on = make_client(home.executor(), {.url = server.url()});
    texts mine{on, "name"};
    std::optional worker{mine.consume({.concurrency = 2}, [](std::string const&) {})};
    names.enqueue("x");
    EXPECT_TRUE(eventually([&] { return worker->done() == 1; }));
    auto const ended = home.run([&] { worker.reset(); });
    ASSERT_EQ(ended.wait_for(30s), std::future_status::ready);
    EXPECT_TRUE(eventually([&] { return waiting(server) == "0"; }));
}

}  // namespace
}  // namespace lockstep::test
