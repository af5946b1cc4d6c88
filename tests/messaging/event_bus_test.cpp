// What an event bus promises, in both forms on every topology; then slow handlers, ends and broken connections.
#include <lockstep/event_bus.hpp>
#include <lockstep/json.hpp>

#include "integration/topology_support.hpp"
#include "support/contract.hpp"
#include "support/eventually.hpp"
#include "support/failures.hpp"
#include "support/fault_proxy.hpp"
#include "support/log_lines.hpp"
#include "support/redis_server.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <deque>
#include <memory>
#include <mutex>
#include <thread>

namespace event_bus_test {
struct order {
    int id = 0;
    std::string item;
};
BOOST_DESCRIBE_STRUCT(order, (), (id, item))
}  // namespace event_bus_test

namespace lockstep::test {
namespace {

using event_bus_test::order;
using testing::ElementsAre;
using testing::HasSubstr;

class heard_list {
public:
    void add(std::string text) {
        std::lock_guard const guard{mutex_};
        all_.push_back(std::move(text));
    }
    [[nodiscard]] std::vector<std::string> all() const {
        std::lock_guard const guard{mutex_};
        return all_;
    }

private:
    mutable std::mutex mutex_;
    std::vector<std::string> all_;
};

class event_bus_contract : public contract {
protected:
    template <class T>
    std::int64_t publish(client& by, event_bus& on, std::string const& channel, T const& value) {
        return run(
            by, [&] { return on.publish(channel, value); }, [&] { return on.async_publish(channel, value); });
    }
    template <class T, class F>
    bus_subscription subscribe(client& by, event_bus& on, std::string const& channel, F handler, bus_subscribe_options const& options = {}) {
        return run(
            by, [&] { return on.subscribe<T>(channel, handler, options); }, [&] { return on.async_subscribe<T>(channel, handler, options); });
    }

    heard_list heard;
    event_bus of_a{a, "shop"};
    event_bus of_b{b, "shop"};
};
LOCKSTEP_CONTRACT(event_bus_contract);

TEST_P(event_bus_contract, delivers_typed_messages_in_order_to_all_who_listen) {
    heard_list others;
    auto const first = subscribe<order>(a, of_a, "created", [&](order const& what) { heard.add(std::to_string(what.id) + what.item); });
    auto const second = subscribe<order>(b, of_b, "created", [&](order const& what, std::string_view channel) { others.add(std::string{channel} + what.item); });
    EXPECT_EQ(publish(b, of_b, "created", order{1, "book"}), 2);
    EXPECT_EQ(publish(b, of_b, "created", order{2, "pen"}), 2);
    EXPECT_EQ(publish(b, of_b, "deleted", order{2, "pen"}), 0);
    ASSERT_TRUE(eventually([&] { return heard.all().size() == 2 && others.all().size() == 2; }));
    EXPECT_THAT(heard.all(), ElementsAre("1book", "2pen"));
    EXPECT_THAT(others.all(), ElementsAre("createdbook", "createdpen"));
    EXPECT_TRUE(eventually([&] { return first.counters().delivered == 2; }));
}

TEST_P(event_bus_contract, buses_of_other_names_do_not_hear_it) {
    event_bus other{a, "other"};
    auto const mine = subscribe<std::string>(a, of_a, "x", [&](std::string const& what) { heard.add("mine " + what); });
    auto const theirs = subscribe<std::string>(a, other, "x", [&](std::string const& what) { heard.add("theirs " + what); });
    publish(b, of_b, "x", std::string{"1"});
    publish(a, other, "x", std::string{"2"});
    ASSERT_TRUE(eventually([&] { return heard.all().size() == 2; }));
    EXPECT_THAT(heard.all(), testing::UnorderedElementsAre("mine 1", "theirs 2"));
}

TEST_P(event_bus_contract, hears_by_pattern) {
    bool const clustered = GetParam().where == topology::cluster;
    if (clustered) {
        auto const refusal = failure<invalid_argument_error>([&] { static_cast<void>(of_a.subscribe_pattern<std::string>("*", [](std::string const&) {})); });
        EXPECT_THAT(refusal, HasSubstr("patterns = true"));
    }
    event_bus all_a{a, "s*p", {.patterns = true}};
    event_bus all_b{b, "s*p", {.patterns = true}};
    event_bus look_alike{b, "shop", {.patterns = true}};
    auto const handler = [&](std::string const& what, std::string_view channel) { heard.add(std::string{channel} + " " + what); };
    auto const ear = run(
        a, [&] { return all_a.subscribe_pattern<std::string>("orders.*", handler); }, [&] { return all_a.async_subscribe_pattern<std::string>("orders.*", handler); });
    publish(b, look_alike, "orders.created", std::string{"0"});
    publish(b, all_b, "orders.created", std::string{"1"});
    publish(b, all_b, "users.created", std::string{"2"});
    publish(b, all_b, "orders.{x}%", std::string{"3"});
    ASSERT_TRUE(eventually([&] { return heard.all().size() == 2; }));
    // In a Cluster they come by different nodes: only those of one channel have an order.
    EXPECT_THAT(heard.all(), testing::UnorderedElementsAre("orders.created 1", "orders.{x}% 3"));
}

TEST_P(event_bus_contract, ends_with_its_scope) {
    {
        auto const ear = subscribe<int>(a, of_a, "x", [&](int) { heard.add("x"); });
        publish(b, of_b, "x", 1);
        ASSERT_TRUE(eventually([&] { return heard.all().size() == 1; }));
    }
    EXPECT_TRUE(eventually([&] { return publish(b, of_b, "x", 2) == 0; }));
    EXPECT_EQ(heard.all().size(), 1U);
}

TEST_P(event_bus_contract, a_message_of_another_type_is_counted_and_the_next_one_comes) {
    log_lines log;
    auto const ear = subscribe<int>(a, of_a, "x", [&](int what) { heard.add(std::to_string(what)); });
    publish(b, of_b, "x", std::string{"no number"});
    publish(b, of_b, "x", 7);
    ASSERT_TRUE(eventually([&] { return ear.counters().delivered == 1; }));
    EXPECT_EQ(ear.counters().failed, 1U);
    EXPECT_THAT(heard.all(), ElementsAre("7"));
    EXPECT_EQ(log.count("could not be read"), 1U) << log.text();
    EXPECT_EQ(log.count("threw"), 0U) << "the handler was not even called";
}

TEST_P(event_bus_contract, refuses_bad_names_and_options) {
    EXPECT_THAT(failure<invalid_argument_error>([&] { event_bus(a, ""); }), HasSubstr("name"));
    EXPECT_THAT(failure<invalid_argument_error>([&] { publish(a, of_a, "", 1); }), HasSubstr("name"));
    EXPECT_THAT(failure<invalid_argument_error>([&] { static_cast<void>(subscribe<int>(a, of_a, "x", [](int) {}, {.capacity = 0})); }), HasSubstr("capacity"));
}

class event_bus_queues : public testing::Test {
protected:
    /// A handler that holds everything up at its first message.
    auto held_up() {
        return [this](std::string const& what) {
            heard.add(what);
            inside = true;
            EXPECT_TRUE(eventually([this] { return open.load(); }));
        };
    }
    void publish_all(int from, int to) {
        for (int i = from; i < to; ++i) bus_b.publish("x", std::to_string(i));
    }

    heard_list heard;
    std::atomic<bool> inside{false};
    std::atomic<bool> open{false};
    redis_server server;
    client a{server.url()};
    client b{server.url()};
    event_bus bus_a{a, "bus"};
    event_bus bus_b{b, "bus"};
};

TEST_F(event_bus_queues, a_full_queue_drops_the_oldest) {
    auto const ear = bus_a.subscribe<std::string>("x", held_up(), {.capacity = 3});
    publish_all(0, 1);
    ASSERT_TRUE(eventually([&] { return inside.load(); }));
    publish_all(1, 11);
    ASSERT_TRUE(eventually([&] { return ear.counters().dropped == 7; }));
    EXPECT_EQ(ear.counters().waiting, 3U);
    open = true;
    ASSERT_TRUE(eventually([&] { return ear.counters().delivered == 4; }));
    EXPECT_THAT(heard.all(), ElementsAre("0", "8", "9", "10"));
}

TEST_F(event_bus_queues, or_the_newest) {
    auto const ear = bus_a.subscribe<std::string>("x", held_up(), {.capacity = 3, .when_full = overflow::drop_newest});
    publish_all(0, 1);
    ASSERT_TRUE(eventually([&] { return inside.load(); }));
    publish_all(1, 11);
    ASSERT_TRUE(eventually([&] { return ear.counters().dropped == 7; }));
    open = true;
    ASSERT_TRUE(eventually([&] { return ear.counters().delivered == 4; }));
    EXPECT_THAT(heard.all(), ElementsAre("0", "1", "2", "3"));
}

TEST_F(event_bus_queues, or_stops_reading_and_nobody_else_waits_for_it) {
    auto const ear = bus_a.subscribe<std::string>("x", held_up(), {.capacity = 2, .when_full = overflow::block});
    heard_list others;
    auto const other = bus_a.subscribe<std::string>("x", [&](std::string const& what) { others.add(what); });
    publish_all(0, 2000);
    ASSERT_TRUE(eventually([&] { return others.all().size() == 2000; })) << "the other subscription, and commands, go on";
    EXPECT_EQ(a.command<std::string>("ECHO", "here"), "here");
    EXPECT_LE(heard.all().size(), 1U);
    open = true;
    ASSERT_TRUE(eventually([&] { return ear.counters().delivered == 2000; }));
    EXPECT_EQ(heard.all(), others.all());
    EXPECT_EQ(ear.counters().dropped, 0U);
}

TEST_F(event_bus_queues, one_that_waits_for_room_can_be_ended) {
    auto ear = bus_a.subscribe<std::string>("x", held_up(), {.capacity = 1, .when_full = overflow::block});
    publish_all(0, 100);
    ASSERT_TRUE(eventually([&] { return inside.load(); }));
    std::jthread const opener{[this] {
        open = true;
    }};
    ear.end();
}

TEST_F(event_bus_queues, after_its_end_no_handler_runs) {
    for (int round = 0; round < 50; ++round) {
        std::atomic<bool> over{false};
        std::atomic<int> count{0};
        auto ear = bus_a.subscribe<std::string>("x", [&](std::string const&) {
            ++count;
            for (auto const until = std::chrono::steady_clock::now() + 200us; std::chrono::steady_clock::now() < until;) {
            }
            EXPECT_FALSE(over);
        });
        publish_all(0, 20);
        EXPECT_TRUE(eventually([&] { return count > 0; }));
        ear.end();
        over = true;
    }
}

TEST_F(event_bus_queues, its_end_waits_for_the_handler_that_runs_and_no_other_begins) {
    for (bool const on_executor : {false, true}) {
        std::atomic<int> begun_here{0};
        std::atomic<bool> ending{false};
        std::atomic<int> over{0};
        std::atomic<bool> ended{false};
        bus_subscribe_options options;
        if (on_executor) options.executor = [](std::function<void()> next) { std::thread{std::move(next)}.detach(); };
        auto ear = bus_a.subscribe<std::string>(
            "x",
            [&](std::string const&) {
                ++begun_here;
                EXPECT_TRUE(eventually([&] { return ending.load(); }));
                EXPECT_FALSE(eventually([&] { return ended.load(); }, 50ms)) << "its end does not wait for it";
                ++over;
            },
            options);
        publish_all(0, 10);
        ASSERT_TRUE(eventually([&] { return ear.counters().waiting == 9; }));
        ending = true;
        ear.end();
        ended = true;
        int const before = begun_here;  // 1, unless this thread was slow to say the end
        EXPECT_EQ(over, before);
        EXPECT_LT(before, 10);
        EXPECT_FALSE(eventually([&] { return begun_here > before; }, 50ms));
    }
}

TEST_F(event_bus_queues, may_be_ended_by_its_handler) {
    // Nobody waits for a handler that ended its own subscription: what it still touches then must outlive the test.
    struct shared_things {
        std::mutex set;
        std::atomic<int> count{0};
    };
    auto const all = std::make_shared<shared_things>();
    bus_subscription ear;
    {
        std::lock_guard const until_it_is_there{all->set};
        ear = bus_a.subscribe<std::string>("x", [&ear, all](std::string const&) {
            std::lock_guard const guard{all->set};
            ear.end();
            ++all->count;
        });
    }
    publish_all(0, 10);
    EXPECT_TRUE(eventually([&] { return bus_b.publish("x", std::string{"more"}) == 0; }));
    EXPECT_TRUE(eventually([&] { return all->count == 1; }));
}

TEST_F(event_bus_queues, may_be_ended_on_the_io_thread_that_its_handler_waits_for) {
    std::atomic<bool> ended{false};
    std::atomic<int> count{0};
    bus_subscription ear = bus_a.subscribe<std::string>("x", [&](std::string const&) {
        inside = true;
        EXPECT_TRUE(eventually([&] { return open.load(); }));
        bus_a.publish("other", std::string{"needs the I/O thread"});
        ++count;
    });
    publish_all(0, 3);
    ASSERT_TRUE(eventually([&] { return inside.load(); }));
    auto const end_it = [&]() -> task<bool> {
        auto echoing = a.async_command("ECHO", "on the I/O thread from here on");
        co_await std::move(echoing);
        open = true;
        ear.end();
        ended = true;
        co_return true;
    };
    begun const ending{end_it()};
    EXPECT_TRUE(eventually([&] { return ended && count == 1; }));
    EXPECT_TRUE(ending.get());
    EXPECT_TRUE(eventually([&] { return bus_b.publish("x", std::string{"more"}) == 0; }));
    EXPECT_EQ(count, 1) << "none begins after it";
}

TEST_F(event_bus_queues, handlers_run_on_the_users_executor_in_order) {
    std::mutex mutex;
    std::condition_variable_any changed;
    std::deque<std::function<void()>> work;
    heard_list threads;
    std::jthread const pool{[&](std::stop_token stop) {
        while (true) {
            std::unique_lock guard{mutex};
            if (!changed.wait(guard, stop, [&] { return !work.empty(); })) return;
            auto next = std::move(work.front());
            work.pop_front();
            guard.unlock();
            next();
        }
    }};
    std::atomic<int> wrong{0};
    bus_subscribe_options options;
    options.capacity = 10'000;
    options.executor = [&](std::function<void()> next) {
        std::lock_guard const guard{mutex};
        work.push_back(std::move(next));
        changed.notify_all();
    };
    auto const id = pool.get_id();
    auto ear = bus_a.subscribe<std::string>(
        "x",
        [&](std::string const& what) {
            if (std::this_thread::get_id() != id) ++wrong;
            heard.add(what);
        },
        options);
    publish_all(0, 500);
    ASSERT_TRUE(eventually([&] { return heard.all().size() == 500; }));
    EXPECT_EQ(wrong, 0);
    EXPECT_EQ(heard.all().at(499), "499");
    ear.end();
}

TEST(event_bus_faults, after_a_cut_it_hears_again_and_is_told_of_the_gap_in_its_place) {
    redis_server server;
    fault_proxy proxy{server.address()};
    client near{server.url()};
    client far{proxy.url()};
    event_bus here{near, "bus"};
    event_bus there{far, "bus"};
    heard_list heard;
    auto const ear = there.subscribe<std::string>("x", [&](std::string const& what) { heard.add(what); }, {.on_gap = [&] { heard.add("gap"); }});
    here.publish("x", std::string{"before"});
    ASSERT_TRUE(eventually([&] { return heard.all().size() == 1; }));
    proxy.refuse();
    proxy.cut();
    ASSERT_TRUE(eventually([&] { return here.publish("x", std::string{"missed"}) == 0; }));
    proxy.heal();
    ASSERT_TRUE(eventually([&] { return here.publish("x", std::string{"after"}) == 1; }));
    ASSERT_TRUE(eventually([&] { return heard.all().size() >= 3; }));
    EXPECT_EQ(heard.all().at(1), "gap");
    EXPECT_EQ(heard.all().at(2), "after");
    EXPECT_EQ(ear.counters().gaps, 1U);
}

TEST(event_bus_faults, a_publish_whose_reply_is_lost_says_so_and_is_not_repeated) {
    redis_server server;
    fault_proxy proxy{server.address()};
    client near{server.url()};
    client far{proxy.url()};
    event_bus here{near, "bus"};
    event_bus there{far, "bus"};
    heard_list heard;
    auto const ear = here.subscribe<std::string>("x", [&](std::string const& what) { heard.add(what); });
    there.publish("x", std::string{"1"});
    proxy.drop_replies(1);
    EXPECT_EQ(outcome([&] { there.publish("x", std::string{"2"}); }), errc::indeterminate);
    there.publish("x", std::string{"3"});
    ASSERT_TRUE(eventually([&] { return heard.all().size() == 3; }));
    EXPECT_THAT(heard.all(), ElementsAre("1", "2", "3"));
}

}  // namespace
}  // namespace lockstep::test
