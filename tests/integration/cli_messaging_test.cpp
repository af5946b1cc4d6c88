// The sub-commands of `lockstep` for messages and state: queue, publish, subscribe, value, limit, breaker; and how ls shows them.

#include "cli_support.hpp"

#include <lockstep/atomic_counter.hpp>
#include <lockstep/circuit_breaker.hpp>
#include <lockstep/event_bus.hpp>
#include <lockstep/job_client.hpp>
#include <lockstep/leaderboard.hpp>
#include <lockstep/monitor.hpp>
#include <lockstep/queue.hpp>
#include <lockstep/rate_limiter.hpp>
#include <lockstep/session_store.hpp>
#include <lockstep/shared_value.hpp>
#include <lockstep/stream.hpp>

#include <boost/json.hpp>

#include <algorithm>
#include <csignal>
#include <cstdint>
#include <limits>
#include <map>

namespace lockstep::test {
namespace {

using testing::AllOf;
using testing::ContainsRegex;
using testing::HasSubstr;

class cli_messaging : public cli {
protected:
    client by{server.url()};
};

TEST_F(cli_messaging, pushes_and_pops_in_order) {
    EXPECT_EQ(run({"queue", "pop", "-n", "q"}).code, 1);
    EXPECT_EQ(run({"queue", "push", "q", "one", "two", "three"}).code, 0);
    EXPECT_EQ(run({"queue", "push", "--priority", "5", "q", "first"}).code, 0);
    EXPECT_EQ(run({"queue", "push", "--delay", "1h", "q", "much later"}).code, 0);
    EXPECT_THAT(run({"queue", "count", "q"}).text, HasSubstr("4        1     0     0"));
    EXPECT_EQ(run({"queue", "pop", "q"}).text, "first\n");
    EXPECT_EQ(run({"queue", "pop", "--most", "2", "q"}).text, "one\ntwo\n");
    auto const item = boost::json::parse(run({"--json", "queue", "pop", "q"}).text);
    EXPECT_EQ(item.at("value"), "three");
    EXPECT_EQ(item.at("deliveries"), 1);
    EXPECT_EQ(run({"queue", "pop", "-w", "20ms", "q"}).code, 1);
    EXPECT_EQ(run({"queue", "push", "q"}).code, 64) << "nothing to push";
    EXPECT_EQ(run({"queue", "push", "--key", "k", "q", "a", "b"}).code, 64);
}

TEST_F(cli_messaging, pushes_lines_and_leaves_out_what_is_there_already) {
    auto pushing = begin({"queue", "push", "--lines", "q"});
    pushing.write_line("a b");
    pushing.write_line("c");
    pushing.close_input();
    EXPECT_EQ(pushing.wait()->code, 0);
    EXPECT_EQ(run({"queue", "pop", "--most", "2", "q"}).text, "a b\nc\n");
    EXPECT_EQ(run({"queue", "push", "--key", "k", "q", "x"}).text, "");
    EXPECT_THAT(run({"queue", "push", "--key", "k", "q", "y"}).text, HasSubstr("same key"));
    EXPECT_EQ(run({"queue", "pop", "-n", "--most", "0", "q"}).text, "x\n");
}

TEST_F(cli_messaging, waits_for_an_item_and_leaves_nothing_when_it_is_interrupted) {
    auto waiting = begin({"queue", "pop", "q"});
    queue<std::string> mine{by, "q"};
    ASSERT_TRUE(eventually([&] { return server.must({"EXISTS", "lockstep:{q}:queue:waiting"}).integer == 1; }));
    mine.enqueue("news");
    EXPECT_EQ(waiting.read_line(), "news");
    EXPECT_EQ(waiting.wait()->code, 0);
    auto interrupted = begin({"queue", "pop", "q"});
    ASSERT_TRUE(eventually([&] { return server.must({"EXISTS", "lockstep:{q}:queue:waiting"}).integer == 1; }));
    interrupted.kill(SIGINT);
    EXPECT_EQ(interrupted.wait()->code, 128 + SIGINT);
    EXPECT_TRUE(eventually([&] { return server.must({"EXISTS", "lockstep:{q}:queue:waiting"}).integer == 0; }));
}

TEST_F(cli_messaging, shows_and_revives_dead_letters) {
    queue<std::string> mine{by, "q", {.max_deliveries = 1}};
    mine.enqueue("bad");
    mine.dequeue().nack({}, "it does not work");
    EXPECT_THAT(run({"queue", "dead", "q"}).text, AllOf(HasSubstr("bad"), HasSubstr("it does not work")));
    EXPECT_EQ(run({"queue", "dead", "--requeue", "all", "--older-than", "1h", "q"}).code, 1) << "it died just now";
    EXPECT_EQ(run({"queue", "dead", "--requeue", "1-1", "--older-than", "1h", "q"}).code, 64) << "for all only";
    EXPECT_EQ(run({"queue", "dead", "--requeue", "all", "q"}).text, "1 requeued\n");
    EXPECT_EQ(run({"queue", "dead", "--drop", "all", "q"}).code, 1) << "none is left";
    EXPECT_EQ(run({"queue", "pop", "q"}).text, "bad\n");
}

TEST_F(cli_messaging, deliver_nothing_while_they_are_paused) {
    queue<std::string> mine{by, "q"};
    mine.enqueue("x");
    EXPECT_THAT(run({"queue", "pause", "q"}).text, HasSubstr("q is paused: 1 ready"));
    EXPECT_THAT(run({"queue", "pause", "q"}).text, HasSubstr("paused already"));
    EXPECT_EQ(run({"queue", "pop", "-n", "q"}).code, 1);
    EXPECT_THAT(run({"queue", "count", "q"}).text, HasSubstr("yes"));
    EXPECT_EQ(boost::json::parse(run({"--json", "queue", "count", "q"}).text).at("paused"), true);
    EXPECT_THAT(run({"ls", "q"}).text, HasSubstr("1 waiting, 0 held, paused"));
    EXPECT_EQ(run({"queue", "resume", "q"}).code, 0);
    EXPECT_EQ(run({"queue", "resume", "q"}).code, 1) << "it is not paused";
    EXPECT_EQ(run({"queue", "pop", "-n", "q"}).text, "x\n");
}

TEST_F(cli_messaging, publishes_to_those_who_listen) {
    EXPECT_EQ(run({"publish", "shop", "orders", "nobody"}).code, 1);
    auto listening = begin({"subscribe", "--most", "1", "shop", "orders"});
    auto all = begin({"subscribe", "--pattern", "--most", "1", "shop", "ord*"});
    ASSERT_TRUE(eventually([&] { return boost::json::parse(run({"--json", "publish", "shop", "other", "x"}).text).at("listeners") == 0 && server.must({"PUBSUB", "NUMPAT"}).integer == 1 &&
                                        !server.must({"PUBSUB", "CHANNELS", "lockstep:{orders}*"}).elements.empty(); }));
    EXPECT_EQ(run({"publish", "shop", "orders", "7"}).code, 0);
    EXPECT_EQ(listening.read_line(), "7");
    EXPECT_EQ(all.read_line(), "orders 7");
    EXPECT_EQ(listening.wait()->code, 0);
    EXPECT_EQ(all.wait()->code, 0);
}

TEST_F(cli_messaging, shares_values) {
    EXPECT_EQ(run({"value", "get", "v"}).code, 1);
    EXPECT_EQ(run({"value", "set", "v", "blue"}).code, 0);
    EXPECT_EQ(run({"value", "get", "v"}).text, "blue\n");
    EXPECT_EQ(run({"value", "set", "--version", "0", "v", "red"}).code, 1) << "there is one";
    auto const version = boost::json::parse(run({"--json", "value", "get", "v"}).text).at("version").as_string();
    EXPECT_EQ(run({"value", "set", "--version", std::string{version}, "v", "red"}).code, 0);
    EXPECT_EQ(run({"value", "set", "--fence", "10", "v", "by ten"}).code, 0);
    EXPECT_EQ(run({"value", "set", "--fence", "9", "v", "by nine"}).code, 75);
    auto watching = begin({"value", "watch", "v"});
    EXPECT_EQ(watching.read_line(), "by ten");
    shared_value<std::string>{by, "v"}.set("by ten, again", {.fence = 10});
    EXPECT_EQ(watching.read_line(), "by ten, again");
    watching.kill(SIGTERM);
    EXPECT_EQ(watching.wait()->code, 128 + SIGTERM);
    EXPECT_EQ(run({"value", "erase", "v"}).code, 0);
    EXPECT_EQ(run({"value", "erase", "v"}).code, 1);
}

TEST_F(cli_messaging, limits) {
    for (auto const* const algorithm : {"log", "window", "bucket"}) {
        std::vector<std::string> const words{"limit", "--limit", "2", "--per", "1h", "--algorithm", algorithm, std::string{"l-"} + algorithm, "me"};
        EXPECT_EQ(run(words).code, 0);
        EXPECT_EQ(run(words).code, 0);
        auto const refused = run(words);
        EXPECT_EQ(refused.code, 1);
        EXPECT_THAT(refused.text, HasSubstr("over the limit"));
    }
    EXPECT_EQ(run({"limit", "--limit", "1", "--per", "50ms", "--algorithm", "bucket", "l", "me"}).code, 0);
    EXPECT_EQ(run({"limit", "--limit", "1", "--per", "50ms", "--algorithm", "bucket", "-w", "20s", "l", "me"}).code, 0) << "its turn comes";
    EXPECT_EQ(run({"limit", "--limit", "1", "--cost", "2", "l", "me"}).code, 64);
}

TEST_F(cli_messaging, breakers) {
    circuit_breaker mail{by, "mail", {.failure_threshold = 5}};
    EXPECT_EQ(run({"breaker", "show", "mail"}).text, "closed\n");
    EXPECT_EQ(run({"breaker", "open", "mail"}).code, 0);
    EXPECT_TRUE(mail.look().held);
    auto const open = run({"breaker", "show", "mail"});
    EXPECT_EQ(open.code, 1);
    EXPECT_EQ(open.text, "open, until it is closed by hand\n");
    EXPECT_EQ(run({"breaker", "close", "mail"}).code, 0);
    EXPECT_EQ(run({"breaker", "show", "mail"}).code, 0);
    EXPECT_EQ(run({"breaker", "open", "--ttl", "1h", "mail"}).code, 0);
    EXPECT_FALSE(mail.look().held);
    auto const told = boost::json::parse(run({"--json", "breaker", "show", "mail"}).text);
    EXPECT_EQ(told.at("state"), "open");
    EXPECT_GT(told.at("retry_after_ms").as_int64(), 3'000'000);
    EXPECT_EQ(run({"breaker", "open", "--ttl", "0", "mail"}).code, 64);
    server.kill9();
    EXPECT_EQ(run({"breaker", "show", "mail"}).code, 69) << "and not that it is closed";
}

TEST_F(cli_messaging, shows_in_ls_what_is_there) {
    queue<std::string> mine{by, "jobs"};
    mine.enqueue("one");
    mine.enqueue("two");
    auto const item = mine.dequeue();
    shared_value<int>{by, "colour"}.set(7);
    stream log{by, "log"};
    log.add({{"a", "b"}});
    circuit_breaker mail{by, "mail", {.failure_threshold = 5}};
    mail.open();
    auto const seen = run({"ls", "--all", "--scan"}).text;
    EXPECT_THAT(seen, AllOf(HasSubstr("1 waiting, 1 held"), HasSubstr("set"), HasSubstr("1 in it"), HasSubstr("open")));
    std::map<std::string, object_info> by_name;
    for (auto const& one : monitor{by}.snapshot({.scan = true}).objects) by_name[one.name] = one;
    EXPECT_EQ(by_name["jobs"].count, 1);
    EXPECT_EQ(by_name["jobs"].taken, 1);
    EXPECT_EQ(by_name["mail"].taken, 2);
    EXPECT_EQ(by_name["log"].count, 1);
    EXPECT_TRUE(by_name["log"].groups.empty());

    log.create_group("billing");
    log.add({{"a", "b"}});
    log.read_group("billing", "me", 1);
    EXPECT_THAT(run({"ls", "--scan"}).text, HasSubstr("2 in it, billing: 1 behind, 1 pending"));
    log.create_group("other");
    EXPECT_THAT(run({"ls", "--scan"}).text, HasSubstr("2 in it, 2 groups: 2 behind, 1 pending"));
    auto const found = monitor{by}.snapshot({.name = "log"}).objects.at(0);
    ASSERT_EQ(found.groups.size(), 2U);
    EXPECT_EQ(found.taken, 1);
    EXPECT_EQ(found.groups[0], (group_info{.name = "billing", .consumers = 1, .pending = 1, .lag = 1}));
    EXPECT_EQ(found.groups[1], (group_info{.name = "other", .consumers = 0, .pending = 0, .lag = 2}));
    auto const first = log.range().at(1).id;
    log.remove({first});  // a hole, of which the server does not know whether it was read
    EXPECT_THAT(run({"ls", "--all", "--scan"}).text, HasSubstr("pending"));
}

TEST_F(cli_messaging, shows_in_ls_counters_exactly_and_boards_of_periods) {
    atomic_counter{by, "orders"}.set(std::numeric_limits<std::int64_t>::max());
    leaderboard{by, "race", {.period = leaderboard_period::weekly}}.add("ada", 1);
    EXPECT_THAT(run({"ls", "--all", "--scan"}).text, AllOf(HasSubstr("9223372036854775807"), ContainsRegex("race +board +1 in it")));
    auto const told = boost::json::parse(run({"--json", "ls", "--all", "--scan"}).text).at("objects");
    EXPECT_EQ(told.at(0).at("count"), "9223372036854775807") << "as text: a page has no such numbers";
    EXPECT_EQ(told.at(1).at("count"), 1);
}

TEST_F(cli_messaging, shows_in_ls_what_has_many_keys_or_none) {
    session_store(by, "web", {.command_timeout = std::chrono::seconds{10}}).create("me");
    rate_limiter api{by, "api", {.limit = 2, .per = 1h, .command_timeout = std::chrono::seconds{10}}};
    api.try_acquire("one");
    api.try_acquire("two");
    event_bus bus{by, "news"};
    auto const listening = bus.subscribe<std::string>("orders", [](std::string const&) {});
    job_client jobs{by, "shop"};
    jobs.schedule("mail", std::string{"a"});
    jobs.schedule("mail", std::string{"b"}, {.delay = 1h});
    jobs.schedule("map", std::string{"c"});
    auto const seen = run({"ls", "--scan"}).text;
    EXPECT_THAT(seen, AllOf(HasSubstr("1 session"), HasSubstr("2 keys"), HasSubstr("orders: 1 subscriber")));
    EXPECT_THAT(seen, AllOf(HasSubstr("mail: 1 waiting, 0 running, 1 delayed"), HasSubstr("map: 1 waiting, 0 running")));
    EXPECT_EQ(std::count(seen.begin(), seen.end(), '\n'), 6) << seen;
    auto const rows = boost::json::parse(run({"--json", "ls", "--scan", "shop"}).text).at("objects");
    EXPECT_EQ(rows.at(0).at("type"), "mail");
    EXPECT_EQ(rows.at(0).at("count"), 2);
    EXPECT_THAT(run({"who", "shop"}).text, HasSubstr("jobs shop: map: 1 waiting"));
    auto const second = bus.subscribe<std::string>("prices", [](std::string const&) {});
    EXPECT_THAT(run({"ls", "--scan"}).text, HasSubstr("2 channels: 2 subscribers"));
}

}  // namespace
}  // namespace lockstep::test
