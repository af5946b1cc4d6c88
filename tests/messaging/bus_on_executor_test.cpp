// Handlers of a durable bus on the user's executor; and buses of a client that lives on one: their subscriptions end on its only thread, where nobody can be
// waited for.
#include <lockstep/asio.hpp>
#include <lockstep/durable_bus.hpp>
#include <lockstep/event_bus.hpp>

#include "consumer_support.hpp"

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <stdexcept>
#include <thread>

namespace lockstep::test {
namespace {

namespace asio = boost::asio;
using testing::ElementsAre;

// ---- clients on the user's executor

class bus_on_one_thread : public testing::Test {
protected:
    ~bus_on_one_thread() override {
        by.close();
        work.reset();
        thread.join();
    }
    /// On the executor's thread, as a handler of the user's. False: it hangs, and is helped.
    bool comes_to_its_end_there(std::function<void()> const& what) {
        std::atomic<bool> is_over{false};
        asio::post(context, [&] {
            what();
            is_over = true;
        });
        if (eventually([&] { return is_over.load(); })) return true;
        while (!is_over) context.run_one_for(10ms);
        return false;
    }
    /// A handler that needs the executor's thread.
    template <class Bus>
    auto needing_it(Bus& bus) {
        return [this, &bus](int) {
            inside = true;
            EXPECT_TRUE(eventually([&] { return open.load(); }));
            bus.publish("other", 1);
            ++count;
        };
    }

    redis_server server;
    client near{server.url()};
    asio::io_context context;
    asio::executor_work_guard<asio::io_context::executor_type> work{context.get_executor()};
    client by{make_client(context.get_executor(), {.url = server.url()})};
    std::thread thread{[this] { context.run(); }};
    std::atomic<bool> inside{false};
    std::atomic<bool> open{false};
    std::atomic<int> count{0};
};

TEST_F(bus_on_one_thread, a_durable_subscription_that_waits_for_messages_ends_there) {
    durable_bus bus{by, "name"};
    auto ear = bus.subscribe<int>("x", [&](int) { ++count; });
    ASSERT_TRUE(eventually([&] { return blocked_at(server) == 1; }));
    EXPECT_TRUE(comes_to_its_end_there([&] { ear.end(); }));
    EXPECT_TRUE(eventually([&] { return blocked_at(server) == 0; })) << "nobody reads any more";
}

TEST_F(bus_on_one_thread, durable_subscriptions_end_there_while_their_handlers_need_it) {
    for (auto const* const group : {"", "g"}) {
        inside = open = false;
        count = 0;
        durable_bus bus{by, "name"};
        auto ear = bus.subscribe<int>("x", needing_it(bus), {.group = group});
        durable_bus{near, "name"}.publish("x", 1);
        ASSERT_TRUE(eventually([&] { return inside.load(); }));
        EXPECT_TRUE(comes_to_its_end_there([&] {
            open = true;
            ear.end();
        }));
        EXPECT_TRUE(eventually([&] { return count == 1; })) << "it comes to its end";
    }
}

TEST_F(bus_on_one_thread, a_subscription_of_an_event_bus_ends_there_while_its_handler_needs_it) {
    event_bus bus{by, "name"};
    auto ear = bus.subscribe<int>("x", needing_it(bus));
    event_bus of_others{near, "name"};
    of_others.publish("x", 1);
    of_others.publish("x", 2);
    ASSERT_TRUE(eventually([&] { return inside.load(); }));
    EXPECT_TRUE(comes_to_its_end_there([&] {
        open = true;
        ear.end();
    }));
    EXPECT_TRUE(eventually([&] { return count == 1 && of_others.publish("x", 3) == 0; }));
    EXPECT_EQ(count, 1) << "none begins after it";
}

// ---- handlers on the user's executor

/// Runs what it is given on one thread, in order, while it is let.
class one_by_one {
public:
    ~one_by_one() { let(); }
    std::function<void(std::function<void()>)> executor() {
        return [this](std::function<void()> next) {
            std::lock_guard const guard{mutex_};
            work_.push_back(std::move(next));
            changed_.notify_all();
        };
    }
    void halt() {
        std::lock_guard const guard{mutex_};
        halted_ = true;
    }
    void let() {
        std::lock_guard const guard{mutex_};
        halted_ = false;
        changed_.notify_all();
    }
    [[nodiscard]] std::size_t waiting() const {
        std::lock_guard const guard{mutex_};
        return work_.size();
    }
    [[nodiscard]] bool is_here() const { return std::this_thread::get_id() == thread_.get_id(); }

private:
    mutable std::mutex mutex_;
    std::condition_variable_any changed_;
    std::deque<std::function<void()>> work_;
    bool halted_ = false;
    std::jthread thread_{[this](std::stop_token stop) {
        while (true) {
            std::unique_lock guard{mutex_};
            if (!changed_.wait(guard, stop, [&] { return !halted_ && !work_.empty(); })) return;
            auto const next = std::move(work_.front());
            work_.pop_front();
            guard.unlock();
            next();
        }
    }};
};

class durable_bus_on_an_executor : public testing::TestWithParam<std::string> {
protected:
    durable_subscribe_options options(std::string from = "$") {
        durable_subscribe_options made;
        made.group = GetParam();
        made.from = std::move(from);
        made.executor = pool.executor();
        return made;
    }

    redis_server server;
    client by{server.url()};
    durable_bus bus{by, "name"};
    ledger_of_work heard;
    std::atomic<int> elsewhere{0};
    one_by_one pool;
};
INSTANTIATE_TEST_SUITE_P(group, durable_bus_on_an_executor, testing::Values("", "g"), [](auto const& of) { return of.param.empty() ? "none" : of.param; });

TEST_P(durable_bus_on_an_executor, handlers_run_there_in_order_and_what_they_throw_counts) {
    auto how = options();
    how.max_deliveries = 1;
    auto const ear = bus.subscribe<int>(
        "x",
        [&](int what) {
            if (!pool.is_here()) ++elsewhere;
            heard.note(std::to_string(what));
            if (what == 1) throw std::runtime_error{"no"};
        },
        how);
    for (int i = 0; i < 4; ++i) bus.publish("x", i);
    EXPECT_TRUE(eventually([&] { return ear.counters().delivered == 3 && ear.counters().failed == 1; }));
    EXPECT_THAT(heard.order(), ElementsAre("0", "1", "2", "3"));
    EXPECT_EQ(elsewhere, 0);
}

TEST_P(durable_bus_on_an_executor, an_end_there_does_not_wait_for_what_has_not_begun) {
    auto ear = bus.subscribe<int>("x", [&](int what) { heard.note(std::to_string(what)); }, options());
    pool.halt();
    std::atomic<bool> is_over{false};
    pool.executor()([&] {
        EXPECT_TRUE(eventually([&] { return pool.waiting() == 1; })) << "the message";
        ear.end();
        is_over = true;
    });
    bus.publish("x", 7);
    pool.let();
    EXPECT_TRUE(eventually([&] { return is_over.load(); }, 5s));
    EXPECT_TRUE(eventually([&] { return pool.waiting() == 0; }));
    EXPECT_EQ(heard.different(), 0U) << "it does not begin after the end";
    if (GetParam().empty()) return;
    auto again = options();
    again.idle_limit = 200ms;
    auto const next = bus.subscribe<int>("x", [&](int what) { heard.note(std::to_string(what)); }, again);
    EXPECT_TRUE(eventually([&] { return heard.times("7") == 1; })) << "it stays for others";
}

TEST_P(durable_bus_on_an_executor, an_end_elsewhere_waits_for_the_handler_that_runs) {
    std::atomic<bool> inside{false};
    std::atomic<bool> ended{false};
    std::atomic<bool> over{false};
    auto ear = bus.subscribe<int>(
        "x",
        [&](int) {
            inside = true;
            EXPECT_FALSE(eventually([&] { return ended.load(); }, 100ms)) << "its end does not wait for it";
            over = true;
        },
        options());
    bus.publish("x", 1);
    ASSERT_TRUE(eventually([&] { return inside.load(); }));
    ear.end();
    ended = true;
    EXPECT_TRUE(over);
}

// As one that is stopped and destroyed does.
TEST_P(durable_bus_on_an_executor, what_it_drops_counts_as_thrown) {
    std::atomic<int> dropped{0};
    auto how = options();
    how.executor = [&, on = pool.executor()](std::function<void()> work) {
        if (dropped++ != 0) on(std::move(work));
    };
    auto const subscription = bus.subscribe<int>("x", [&](int what) { heard.note(std::to_string(what)); }, how);
    bus.publish("x", 1);
    bus.publish("x", 2);
    EXPECT_TRUE(eventually([&] { return heard.times("2") == 1; }));
    EXPECT_TRUE(eventually([&] { return subscription.counters().failed == 1; }));
}

TEST(durable_bus_gaps, are_told_on_the_executor_too) {
    redis_server server;
    client by{server.url()};
    durable_bus bus{by, "name"};
    auto const first = bus.publish("x", 0);
    bus.publish("x", 1);
    bus.stream_of_it().trim_to_id(bus.publish("x", 2));
    ledger_of_work heard;
    one_by_one pool;
    auto const ear = bus.subscribe<int>(
        "x", [&](int what) { heard.note(std::to_string(what)); }, {.from = first, .executor = pool.executor(), .on_gap = [&] { heard.note(pool.is_here() ? "gap" : "elsewhere"); }});
    ASSERT_TRUE(eventually([&] { return heard.times("2") == 1; }));
    EXPECT_THAT(heard.order(), ElementsAre("gap", "2"));
}

}  // namespace
}  // namespace lockstep::test
