// What a durable bus and the idempotency helper promise, in both forms on every topology; then under faults.
#include <lockstep/durable_bus.hpp>
#include <lockstep/event.hpp>
#include <lockstep/idempotency.hpp>

#include "consumer_support.hpp"
#include "support/failures.hpp"
#include "support/fault_proxy.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>

namespace lockstep::test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class durable_bus_contract : public contract {
protected:
    auto noting() {
        return [this](std::string const& what, std::string_view channel) { heard.note(std::string{channel} + " " + what); };
    }
    std::string publish(client& by, durable_bus& on, std::string const& channel, std::string const& value) {
        return run(
            by, [&] { return on.publish(channel, value); }, [&] { return on.async_publish(channel, value); });
    }
    durable_subscription subscribe(client& by, durable_bus& on, std::string const& channel, durable_subscribe_options const& options) {
        return run(
            by, [&] { return on.subscribe<std::string>(channel, noting(), options); }, [&] { return on.async_subscribe<std::string>(channel, noting(), options); });
    }
    durable_subscription subscribe_pattern(client& by, durable_bus& on, std::string const& pattern, durable_subscribe_options const& options) {
        return run(
            by, [&] { return on.subscribe_pattern<std::string>(pattern, noting(), options); },
            [&] { return on.async_subscribe_pattern<std::string>(pattern, noting(), options); });
    }

    ledger_of_work heard;
    durable_bus of_a{a, "name"};
    durable_bus of_b{b, "name"};
};
LOCKSTEP_CONTRACT(durable_bus_contract);

TEST_P(durable_bus_contract, each_subscription_gets_all_that_fits_from_where_it_begins) {
    publish(a, of_a, "orders.created", "1");
    publish(a, of_a, "users.created", "2");
    auto const second = publish(a, of_a, "orders.deleted", "3");
    ledger_of_work later;
    auto all = subscribe_pattern(b, of_b, "orders.*", {.from = "0"});
    auto new_ones = of_a.subscribe_pattern<std::string>("orders.*", [&](std::string const& what, stream_entry const& entry) { later.note(entry.id + " " + what); });
    auto const third = publish(b, of_b, "orders.created", "4");
    ASSERT_TRUE(eventually([&] { return heard.order().size() == 3 && later.order().size() == 1; }));
    EXPECT_THAT(heard.order(), ElementsAre("orders.created 1", "orders.deleted 3", "orders.created 4"));
    EXPECT_THAT(later.order(), ElementsAre(third + " 4"));
    EXPECT_TRUE(eventually([&] { return all.counters().position == third; }));
    EXPECT_EQ(all.counters().delivered, 3U);
    EXPECT_EQ(all.counters().passed, 1U);
    ledger_of_work resumed;
    auto const from_there = of_a.subscribe_pattern<std::string>("*", [&](std::string const& what) { resumed.note(what); }, {.from = second});
    ASSERT_TRUE(eventually([&] { return resumed.order().size() == 1; }));
    EXPECT_THAT(resumed.order(), ElementsAre("4"));
}

TEST_P(durable_bus_contract, a_group_shares_the_messages) {
    auto const first = subscribe_pattern(a, of_a, "orders.*", {.group = "g"});
    auto const second = subscribe_pattern(b, of_b, "orders.*", {.group = "g", .concurrency = 2});
    for (int i = 0; i < 100; ++i) of_a.publish("orders.created", std::to_string(i));
    publish(a, of_a, "users.created", "other");
    ASSERT_TRUE(eventually([&] { return heard.different() == 100; }));
    EXPECT_TRUE(eventually([&] { return pending_at(server, "g{orders.*}") == 0; }));
    EXPECT_EQ(heard.order().size(), 100U) << "none twice";
    EXPECT_TRUE(eventually([&] { return first.counters().delivered + second.counters().delivered == 100; }));
    EXPECT_EQ(first.counters().passed + second.counters().passed, 1U);
}

TEST_P(durable_bus_contract, subscriptions_of_one_group_with_different_patterns_each_get_all_that_fits) {
    auto const orders = subscribe_pattern(a, of_a, "orders.*", {.group = "g"});
    auto const users = subscribe(b, of_b, "users.created", {.group = "g"});
    for (int i = 0; i < 50; ++i) {
        of_a.publish("orders.created", std::to_string(i));
        of_a.publish("users.created", std::to_string(i));
    }
    EXPECT_TRUE(eventually([&] { return heard.different() == 100; })) << heard.different();
    EXPECT_TRUE(eventually([&] { return orders.counters().delivered == 50 && users.counters().delivered == 50; }));
    EXPECT_EQ(heard.order().size(), 100U) << "none twice";
    EXPECT_EQ(consumers_at(server, "g{orders.*}"), 1U);
    EXPECT_EQ(consumers_at(server, "g{users.created}"), 1U);
}

TEST_P(durable_bus_contract, no_group_and_pattern_are_taken_for_another_group_and_pattern) {
    auto const one = subscribe(a, of_a, "x{y", {.group = "g"});
    auto const other = subscribe(a, of_a, "y", {.group = "g{x"});
    auto const third = subscribe(a, of_a, "y", {.group = "g%7Bx"});
    publish(b, of_b, "x{y", "1");
    publish(b, of_b, "y", "2");
    EXPECT_TRUE(eventually([&] { return heard.times("x{y 1") == 1 && heard.times("y 2") == 2; }));
}

TEST_P(durable_bus_contract, a_channel_is_meant_as_it_is_written_and_a_pattern_is_not) {
    auto const channel = subscribe(a, of_a, "price[EUR]*", {});
    auto const shared_channel = subscribe(a, of_a, "price[EUR]*", {.group = "g"});
    auto const pattern = subscribe_pattern(b, of_b, "price[EUR]*", {});
    auto const shared_pattern = subscribe_pattern(b, of_b, "price[EUR]*", {.group = "g"});
    for (auto const* const name : {"price[EUR]*", "priceE", "price[EUR]", "end"}) publish(a, of_a, name, "1");
    auto const is_through = [](durable_subscription const& one) { return one.counters().passed == 3 && one.counters().delivered == 1; };
    ASSERT_TRUE(eventually([&] { return is_through(channel) && is_through(shared_channel) && is_through(pattern) && is_through(shared_pattern); }));
    EXPECT_EQ(heard.times("price[EUR]* 1"), 2);
    EXPECT_EQ(heard.times("priceE 1"), 2);
    EXPECT_EQ(consumers_at(server, R"(g{price\[EUR\]\*})"), 1U);
    EXPECT_EQ(consumers_at(server, "g{price[EUR]*}"), 1U);
}

TEST_P(durable_bus_contract, a_channel_and_the_pattern_that_fits_only_that_are_one_group) {
    auto const channel = subscribe(a, of_a, "orders.created", {.group = "g"});
    auto const pattern = subscribe_pattern(b, of_b, "orders.created", {.group = "g"});
    for (int i = 0; i < 50; ++i) of_a.publish("orders.created", std::to_string(i));
    EXPECT_TRUE(eventually([&] { return channel.counters().delivered + pattern.counters().delivered == 50; }));
    EXPECT_EQ(heard.order().size(), 50U) << "none twice";
    EXPECT_EQ(pending_at(server, "g{orders.created}"), 0);
}

TEST_P(durable_bus_contract, ends_with_its_scope) {
    {
        auto const reading = subscribe_pattern(a, of_a, "*", {});
        auto const sharing = subscribe_pattern(a, of_a, "*", {.group = "g"});
        publish(b, of_b, "x", "1");
        ASSERT_TRUE(eventually([&] { return heard.order().size() == 2; }));
    }
    publish(b, of_b, "x", "2");
    EXPECT_EQ(heard.order().size(), 2U);
    EXPECT_EQ(pending_at(server, "g{*}"), 0);
    EXPECT_EQ(consumers_at(server, "g{*}"), 0U);
}

TEST_P(durable_bus_contract, refuses_what_makes_no_sense) {
    EXPECT_THAT(failure<invalid_argument_error>([&] { publish(a, of_a, "", "1"); }), HasSubstr("channel"));
    EXPECT_THAT(failure<invalid_argument_error>([&] { static_cast<void>(subscribe(a, of_a, "", {})); }), HasSubstr("pattern"));
    EXPECT_THAT(failure<invalid_argument_error>([&] { static_cast<void>(subscribe(a, of_a, "x", {.from = "here"})); }), HasSubstr("from"));
    EXPECT_THAT(failure<invalid_argument_error>([&] { static_cast<void>(subscribe(a, of_a, "x", {.concurrency = 2})); }), HasSubstr("concurrency"));
    EXPECT_THAT(failure<invalid_argument_error>([&] { static_cast<void>(subscribe(a, of_a, std::string(300, 'x'), {.group = std::string(211, 'g')})); }), HasSubstr("together"));
}

TEST(durable_bus_faults, cuts_lose_and_double_nothing) {
    redis_server server;
    fault_proxy proxy{server.address()};
    client near{server.url()};
    client far{{.url = proxy.url(), .reconnect_max = 200ms}};
    durable_bus here{near, "name"};
    durable_bus there{far, "name"};
    ledger_of_work heard;
    auto const ear = there.subscribe_pattern<int>("*", [&](int what) { heard.note(std::to_string(what)); });
    for (int i = 0; i < 300; ++i) {
        here.publish("x", i);
        if (i % 50 == 25) proxy.cut();
    }
    ASSERT_TRUE(eventually([&] { return heard.different() == 300; }, 30s)) << heard.different();
    std::vector<std::string> expected;
    for (int i = 0; i < 300; ++i) expected.push_back(std::to_string(i));
    EXPECT_EQ(heard.order(), expected);
    EXPECT_EQ(ear.counters().gaps, 0U);
}

TEST(durable_bus_faults, a_subscription_that_is_too_slow_for_a_trimmed_stream_is_told) {
    redis_server server;
    client by{server.url()};
    durable_bus bus{by, "name", {.max_length = 5, .exact = true}};
    ledger_of_work heard;
    std::atomic<bool> inside{false};
    std::atomic<bool> open{false};
    auto const ear = bus.subscribe_pattern<int>(
        "*",
        [&](int what) {
            heard.note(std::to_string(what));
            inside = true;
            EXPECT_TRUE(eventually([&] { return open.load(); }));
        },
        {.on_gap = [&] { heard.note("gap"); }});
    bus.publish("x", 0);
    ASSERT_TRUE(eventually([&] { return inside.load(); }));
    for (int i = 1; i <= 20; ++i) bus.publish("x", i);
    open = true;
    ASSERT_TRUE(eventually([&] { return heard.times("20") == 1; }));
    EXPECT_THAT(heard.order(), ElementsAre("0", "gap", "16", "17", "18", "19", "20"));
    EXPECT_EQ(ear.counters().gaps, 1U);
}

TEST(durable_bus_faults, a_subscription_that_goes_on_where_the_stream_was_trimmed_meanwhile_is_told) {
    redis_server server;
    client by{server.url()};
    durable_bus bus{by, "name"};
    std::vector<std::string> ids;
    for (int i = 0; i < 10; ++i) ids.push_back(bus.publish("x", i));
    bus.stream_of_it().remove({ids[6]});
    bus.stream_of_it().trim_to_id(ids[5]);
    auto const heard_from = [&](std::string const& from) {
        ledger_of_work heard;
        auto const ear = bus.subscribe_pattern<int>("*", [&](int what) { heard.note(std::to_string(what)); }, {.from = from, .on_gap = [&] { heard.note("gap"); }});
        EXPECT_TRUE(eventually([&] { return heard.times("9") == 1; }));
        return heard.order();
    };
    EXPECT_THAT(heard_from(ids[2]), ElementsAre("gap", "5", "7", "8", "9"));
    EXPECT_THAT(heard_from(ids[5]), ElementsAre("7", "8", "9"));
    EXPECT_THAT(heard_from(ids[6]), ElementsAre("7", "8", "9")) << "it was removed, but no other is missing";
    EXPECT_THAT(heard_from("0"), ElementsAre("5", "7", "8", "9"));
}

TEST(durable_bus_faults, a_handler_that_throws_is_counted_and_the_next_message_comes) {
    redis_server server;
    client by{server.url()};
    durable_bus bus{by, "name"};
    ledger_of_work heard;
    auto const ear = bus.subscribe_pattern<int>("*", [&](int what) {
        if (what == 1) throw std::runtime_error{"no"};
        heard.note(std::to_string(what));
    });
    for (int i = 0; i < 3; ++i) bus.publish("x", i);
    ASSERT_TRUE(eventually([&] { return heard.different() == 2; }));
    EXPECT_EQ(ear.counters().failed, 1U);
}

// ---- idempotency

class idempotency_contract : public contract {
protected:
    bool do_it(client& by, idempotency& of, std::string const& id, std::function<void()> const& work) {
        auto const as_task = [&work]() -> task<void> {
            work();
            co_return;
        };
        return run(
            by, [&] { return of.run(id, work); }, [&] { return of.async_run(id, as_task); });
    }
    bool was_done(client& by, idempotency& of, std::string const& id) {
        return run(
            by, [&] { return of.was_done(id); }, [&] { return of.async_was_done(id); });
    }

    std::atomic<int> times{0};
    idempotency of_a{a, "name"};
    idempotency of_b{b, "name"};
};
LOCKSTEP_CONTRACT(idempotency_contract);

TEST_P(idempotency_contract, what_was_done_is_not_done_again) {
    EXPECT_FALSE(was_done(a, of_a, "1"));
    EXPECT_TRUE(do_it(a, of_a, "1", [&] { ++times; }));
    EXPECT_FALSE(do_it(b, of_b, "1", [&] { ++times; }));
    EXPECT_EQ(times, 1);
    EXPECT_TRUE(was_done(b, of_b, "1"));
    EXPECT_TRUE(do_it(b, of_b, "2", [&] { ++times; }));
    EXPECT_GT(server.must({"PTTL", "lockstep:{name}:idempotency:1"}).integer, 0);
    EXPECT_TRUE(run(a, [&] { return of_a.forget("1"); }, [&] { return of_a.async_forget("1"); }));
    EXPECT_FALSE(of_a.forget("1"));
    EXPECT_TRUE(do_it(a, of_a, "1", [&] { ++times; }));
    EXPECT_EQ(times, 3);
}

TEST_P(idempotency_contract, what_threw_may_be_done_again_and_others_are_told_while_it_is_done) {
    EXPECT_THROW(do_it(a, of_a, "1", [] { throw std::runtime_error{"no"}; }), std::runtime_error);
    EXPECT_FALSE(was_done(a, of_a, "1"));
    server.must({"SET", "lockstep:{name}:idempotency:2", "by somebody", "PX", "60000"});
    EXPECT_THROW(do_it(a, of_a, "2", [&] { ++times; }), busy_error);
    EXPECT_FALSE(of_a.forget("2"));
    EXPECT_EQ(times, 0);
    EXPECT_TRUE(do_it(b, of_b, "1", [&] { ++times; }));
    EXPECT_THAT(failure<invalid_argument_error>([&] { do_it(a, of_a, "", [] {}); }), HasSubstr("id"));
    EXPECT_THAT(failure<invalid_argument_error>([&] { idempotency(a, "x", {.lease = 0ms}); }), HasSubstr("lease"));
}

TEST(idempotency_faults, cancelled_work_may_be_done_again_at_once_and_what_was_done_nevertheless_is_recorded) {
    redis_server server;
    client by{server.url()};
    idempotency of{by, "name"};
    event never{by, "never"};
    for (bool const obeys : {true, false}) {
        std::string const id = obeys ? "obeys" : "does not";
        std::stop_source stop;
        std::atomic<bool> inside{false};
        auto const work = [&]() -> task<void> {
            inside = true;
            try {
                auto waiting = never.async_wait();
                co_await std::move(waiting);
            } catch (cancelled_error const&) {
                if (obeys) throw;
            }
        };
        begun const running{with_stop_token(of.async_run(id, work), stop.get_token())};
        ASSERT_TRUE(eventually([&] { return inside.load(); }));
        stop.request_stop();
        if (obeys) {
            EXPECT_EQ(outcome([&] { running.get(); }), errc::cancelled);
        } else {
            EXPECT_TRUE(running.get());
        }
        EXPECT_EQ(of.run(id, [] {}), obeys) << "and not: somebody is doing it";
    }
}

TEST(idempotency_faults, cancelled_before_it_began_it_may_be_done_at_once) {
    redis_server server;
    fault_proxy proxy{server.address()};
    client near{server.url()};
    client far{proxy.url()};
    idempotency here{near, "name"};
    idempotency there{far, "name"};
    EXPECT_THROW(there.run("0", [] { throw std::runtime_error{"no"}; }), std::runtime_error);  // the server knows the scripts
    proxy.hold(direction::to_client);
    std::stop_source stop;
    begun const running{with_stop_token(there.async_run("1", []() -> task<void> { co_return; }), stop.get_token())};
    ASSERT_TRUE(eventually([&] { return server.must({"EXISTS", "lockstep:{name}:idempotency:1"}).integer == 1; }));
    stop.request_stop();
    EXPECT_EQ(outcome([&] { running.get(); }), errc::cancelled);
    EXPECT_TRUE(eventually([&] { return server.must({"EXISTS", "lockstep:{name}:idempotency:1"}).integer == 0; }));
    proxy.heal();
    EXPECT_TRUE(here.run("1", [] {}));
}

TEST(idempotency_faults, lost_replies_change_nothing) {
    redis_server server;
    fault_proxy proxy{server.address()};
    client far{proxy.url()};
    idempotency of{far, "name"};
    EXPECT_TRUE(of.run("0", [] {}));  // the server knows the scripts
    int times = 0;
    proxy.drop_replies(1);
    EXPECT_TRUE(of.run("1", [&] {
        ++times;
        proxy.drop_replies(1);
    }));
    EXPECT_EQ(proxy.counters().struck, 2U);
    EXPECT_FALSE(of.run("1", [&] { ++times; }));
    EXPECT_EQ(times, 1);
}

}  // namespace
}  // namespace lockstep::test
