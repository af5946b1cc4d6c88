// The dashboard's server when Redis does not answer, and when it ends: what pages are told, and what is left behind.
#include "server_fixture.hpp"
#include "support/eventually.hpp"
#include "support/fault_proxy.hpp"

#include <gmock/gmock.h>

#include <algorithm>
#include <memory>
#include <vector>

namespace lockstep::test {
namespace {

using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

TEST_F(dashboard_server, ends_with_requests_that_nobody_has_begun) {
    start();
    redis.stop();  // every worker waits for it
    std::vector<std::unique_ptr<http_client>> many;
    auto const ask = [&](std::string const& path) {
        many.push_back(std::make_unique<http_client>(port()));
        many.back()->send("GET " + path + " HTTP/1.1\r\nHost: localhost\r\n\r\n");
    };
    for (int i = 0; i < 20; ++i) {
        ask("/api/snapshot");
        ask("/healthz");
    }
    ask("/api/stream");
    EXPECT_EQ(get(port(), "/api/session").status, 200) << "all before it have been read";
    page.reset();
    for (auto const& one : many) EXPECT_TRUE(one->closed());
}

TEST_F(dashboard_server, shows_nothing_rather_than_an_empty_state_when_redis_is_away_from_the_start) {
    auto const held = mutex{worker, "report", {.ttl = 60s}}.acquire();
    start();
    redis.stop();
    follower page_of{port()};
    ASSERT_TRUE(page_of.peer.read_until(R"({"trouble":")", 30s));
    EXPECT_THAT(page_of.peer.received(), Not(HasSubstr("event: state")));
    redis.cont();
    auto const first = page_of.next(30s);
    ASSERT_FALSE(first.is_null());
    EXPECT_TRUE(has_hold(first, "report"));
    EXPECT_GT(first.at("at_ms").as_int64(), 1'600'000'000'000);
}

TEST_F(dashboard_server, tells_every_page_that_comes_whether_there_is_trouble) {
    start();
    follower page_of{port()};
    EXPECT_TRUE(page_of.peer.read_until(R"({"trouble":null})")) << "it may have heard of one before";
    redis.kill9();
    ASSERT_TRUE(page_of.peer.read_until(R"({"trouble":")", 30s));
    follower second{port()};
    EXPECT_TRUE(second.peer.read_until(R"({"trouble":")"));
    EXPECT_THAT(second.peer.received(), Not(HasSubstr(R"({"trouble":null})")));
}

TEST_F(dashboard_server, says_the_time_of_sending_not_of_the_last_news) {
    start();
    follower page_of{port()};
    auto const first = page_of.next();
    ASSERT_FALSE(first.is_null());
    ASSERT_TRUE(page_of.peer.read_until("event: beat\ndata: {\"at_ms\":")) << "five seconds later";
    follower second{port()};
    auto const later = second.next();
    ASSERT_FALSE(later.is_null());
    EXPECT_GE(later.at("at_ms").as_int64(), first.at("at_ms").as_int64() + 4'000);
}

TEST_F(dashboard_server, looks_once_for_all_probes_of_a_moment) {
    start();
    auto const commands = [&] { return std::stol(redis.info("total_commands_processed")); };
    auto const before = commands();
    ASSERT_EQ(get(port(), "/healthz").status, 200);
    auto const one = commands() - before;
    for (int i = 0; i < 100; ++i) EXPECT_EQ(get(port(), "/healthz").status, 200);
    EXPECT_LT(commands() - before, 30 * one) << "some more when that took seconds";
}

TEST_F(dashboard_server, costs_redis_no_more_than_some_times_as_much_when_names_are_as_long_as_they_may_be) {
    auto const cost = [&](std::size_t length) {
        std::vector<lease> held;
        for (int i = 100; i < 400; ++i) held.push_back(mutex{worker, std::string(length, 'x') + std::to_string(i)}.acquire());
        auto const used = [&] { return std::stod(redis.info("used_cpu_user")); };  // which other programs do not make longer
        auto const before = used();
        for (int i = 0; i < 20; ++i) EXPECT_EQ(eye.snapshot({.scan = true}).holds.size(), held.size());
        return used() - before;
    };
    auto const little = std::max(cost(1), 0.01);  // how exact it is counted
    EXPECT_LT(cost(500), 5 * little);
}

// Each question has the time of a command, from when it is sent: not all of a look together.
TEST_F(dashboard_server, sees_all_there_is_over_a_slow_network) {
    auto const held = mutex{worker, "report", {.ttl = 60s}}.acquire();
    std::vector<std::string> words{"ZADD", "lockstep:{clients}:index"};
    for (int i = 0; i < 1'000; ++i) words.insert(words.end(), {"9999999999999", "nobody" + std::to_string(i)});
    redis.must(words);
    fault_proxy network{redis.address()};
    client far{{.url = network.url(), .command_timeout = 2s}};
    monitor there{far};
    ASSERT_TRUE(eventually([&] { return there.snapshot().holds.size() == 1; }, 12s)) << "the server was told of it";
    network.delay(300ms, direction::to_client);
    EXPECT_EQ(there.snapshot().holds.size(), 1U) << "a hundred clients at a time are asked for: three seconds";
}

TEST_F(dashboard_server, writes_down_whose_process_it_was_when_nobody_said) {
    auto const first = mutex{worker, "first"}.acquire();
    auto const second = mutex{worker, "second"}.acquire();
    eye.release(eye.active("first").at(0), {.force = true, .reason = "to compare"});
    auto const usual = eye.audit().at(0).by;
    start_acting();
    ASSERT_EQ(post(port(), "/api/release", order("second", true), bearer_line).status, 200);
    EXPECT_THAT(usual, HasSubstr("@"));
    EXPECT_THAT(eye.audit().at(0).by, StartsWith(usual + " (dashboard, "));
}

}  // namespace
}  // namespace lockstep::test
