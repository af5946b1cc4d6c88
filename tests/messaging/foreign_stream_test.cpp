// Streams at keys that other programs made, or use, too.
#include "consumer_support.hpp"
#include "support/failures.hpp"

#include <lockstep/durable_bus.hpp>
#include <lockstep/key.hpp>
#include <lockstep/monitor.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>

namespace lockstep::test {
namespace {

using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::StartsWith;

class foreign_stream : public contract {
protected:
    /// As any other program would.
    void add(std::string const& at, std::string const& value) { a.command("XADD", at, "*", "data", value); }

    ledger_of_work done;
};
LOCKSTEP_CONTRACT(foreign_stream);

TEST_P(foreign_stream, is_read_and_written_under_its_own_key) {
    for (auto const* const name : {"events", "eve{nt}s", "with space", "{"}) {
        add(name, "theirs");
        stream events{a, key{name}};
        EXPECT_EQ(events.key(), name);
        EXPECT_EQ(events.length(), 1);
        EXPECT_EQ(events.range().at(0).as<std::string>(), "theirs");
        auto const id = run(a, [&] { return events.add_value(std::string{"ours"}); }, [&] { return events.async_add_value(std::string{"ours"}); });
        auto const last = a.command("XREVRANGE", name, "+", "-", "COUNT", 1);
        EXPECT_EQ(last[0][0].text(), id);
        EXPECT_EQ(last[0][1][1].text(), "ours");
    }
}

TEST_P(foreign_stream, is_consumed_with_all_that_a_consumer_does) {
    std::atomic<int> tries{0};
    auto const work = [&](delivery const& entry) {
        auto const value = entry.as<std::string>();
        if (value == "bad") throw reject{"never"};
        if (value == "slow" && ++tries < 4) throw std::runtime_error{"not yet"};
        done.note(value);
    };
    for (auto const* const value : {"first", "bad", "slow"}) add("tenant{7}/events", value);
    consumer one{b, key{"tenant{7}/events"}, handler_of(GetParam().how, work), {.group = "g", .idle_limit = 1h, .retry_min = 5ms}};
    EXPECT_TRUE(eventually([&] { return done.times("first") == 1 && done.times("slow") == 1; }));
    add("tenant{7}/events", "last");
    EXPECT_TRUE(eventually([&] { return done.times("last") == 1; }));
    stream const events{a, key{"tenant{7}/events"}};
    EXPECT_TRUE(eventually([&] { return events.pending("g").count == 0; }));
    auto const dead = events.dead_letters();
    EXPECT_EQ(dead.key(), "lockstep:{7}:key:tenant%7B7%7D/events:stream:dead");
    ASSERT_EQ(dead.length(), 1);
    EXPECT_EQ(dead.range().at(0).as<std::string>(), "bad");
}

TEST_P(foreign_stream, carries_messages_of_a_durable_bus) {
    durable_bus bus{a, key{"events"}};
    auto const subscription = bus.subscribe<std::string>("orders", [this](std::string const& text) { done.note(text); }, {.group = "g", .from = "0"});
    auto const all = bus.subscribe<std::string>("orders", [this](std::string const& text) { done.note("all " + text); }, {.from = "0"});
    bus.publish("orders", std::string{"ours"});
    a.command("XADD", "events", "*", "type", "login");
    a.command("XADD", "events", "*", "channel", "orders", "data", "theirs");
    EXPECT_TRUE(eventually([&] { return done.different() == 4; })) << done.different();
}

TEST(foreign_stream_of_a_server, leaves_no_other_key_than_those_that_its_page_names) {
    redis_server server;
    client by{server.url()};
    ledger_of_work done;
    server.must({"XADD", "events", "*", "data", "first"});
    {
        stream events{by, key{"events"}};
        EXPECT_EQ(server.must({"KEYS", "*"}).elements.size(), 1U);
        events.range();
        consumer const one{by, key{"events"}, [&](delivery const& entry) { done.note(entry.as<std::string>()); throw reject{"no"}; }, {.group = "g"}};
        events.add_value(std::string{"second"});
        EXPECT_TRUE(eventually([&] { return events.dead_letters().length() == 2; }));
    }
    std::vector<std::string> others;
    for (auto const& each : server.must({"KEYS", "*"}).elements) {
        // What says that this client is there.
        if (each.text != "events" && !each.text.starts_with("lockstep:{events}:key:events:stream:")) others.push_back(each.text);
    }
    EXPECT_THAT(others, Each(Not(HasSubstr("events")))) << "and none of them is about this stream";
    EXPECT_THAT(failure<invalid_argument_error>([&] { stream(by, key{"a}b"}); }), HasSubstr("hash tag"));
    EXPECT_THAT(failure<invalid_argument_error>([&] { stream(by, key{"{}b"}); }), HasSubstr("hash tag"));
    EXPECT_THROW(stream(by, key{""}), invalid_argument_error);
}

TEST(foreign_stream_of_a_server, is_not_mistaken_for_an_object_by_a_monitor) {
    redis_server server;
    client by{server.url()};
    stream mine{by, "mine"};
    mine.add({{"k", "v"}});
    stream theirs{by, key{"events"}};
    theirs.add({{"k", "v"}});
    monitor look{by};
    auto const seen = [&] {
        std::vector<std::string> names;
        for (auto const& each : look.snapshot({.scan = true}).objects) names.push_back(each.name);
        return names;
    };
    EXPECT_TRUE(eventually([&] { return seen().size() == 1; }));
    EXPECT_THAT(seen(), ElementsAre("mine"));
}

}  // namespace
}  // namespace lockstep::test
