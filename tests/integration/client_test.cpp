// Raw access to a healthy server: commands, conversion, pipelines, counters, the end of a client, and what it refuses.
#include <lockstep/client.hpp>

#include "support/eventually.hpp"
#include "support/failures.hpp"
#include "support/forms.hpp"
#include "support/redis_server.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <future>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

namespace lockstep::test {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::HasSubstr;

template <class Form>
class client_contract : public testing::Test {
protected:
    redis_server server;
    client to_server{server.url()};
};
TYPED_TEST_SUITE(client_contract, forms, form_names);

TYPED_TEST(client_contract, turns_replies_into_values) {
    auto& client = this->to_server;
    EXPECT_EQ(TypeParam::template command<std::string>(client, "SET", "number", 41), "OK");
    EXPECT_EQ(TypeParam::template command<int>(client, "INCR", "number"), 42);
    EXPECT_EQ(TypeParam::template command<double>(client, "INCRBYFLOAT", "number", 0.5), 42.5);
    EXPECT_EQ(TypeParam::template command<std::optional<std::string>>(client, "GET", "nothing"), std::nullopt);
    TypeParam::template command<void>(client, "HSET", "hash", "a", 1, "b", 2);
    using counts = std::map<std::string, int>;
    EXPECT_EQ(TypeParam::template command<counts>(client, "HGETALL", "hash"), (counts{{"a", 1}, {"b", 2}}));
    EXPECT_EQ(TypeParam::template command<std::int64_t>(client, "SADD", "set", "x", "y"), 2);
    EXPECT_EQ(TypeParam::template command<std::set<std::string>>(client, "SMEMBERS", "set"),
              (std::set<std::string>{"x", "y"}));
    EXPECT_TRUE(TypeParam::template command<bool>(client, "SISMEMBER", "set", "x"));
    auto const shape = TypeParam::template command<std::tuple<std::string, int>>(client, "EVAL", "return {'a', 7}", 0);
    EXPECT_EQ(shape, (std::tuple<std::string, int>{"a", 7}));
}

TYPED_TEST(client_contract, throws_what_the_server_answers_and_goes_on) {
    auto& client = this->to_server;
    TypeParam::command(client, "SET", "text", "x");
    try {
        TypeParam::command(client, "LPUSH", "text", "y");
        ADD_FAILURE() << "no error";
    } catch (server_error const& problem) {
        EXPECT_EQ(problem.prefix(), "WRONGTYPE");
    }
    EXPECT_THAT(failure<conversion_error>([&] { TypeParam::template command<int>(client, "GET", "text"); }),
                HasSubstr("integer"));
    EXPECT_EQ(TypeParam::template command<std::string>(client, "GET", "text"), "x");
    EXPECT_EQ(client.statistics().connects, 1U);
}

// It has run, whatever the first word of its error means when the server itself says it.
TYPED_TEST(client_contract, runs_a_script_once_that_returns_an_error_of_its_own) {
    auto& client = this->to_server;
    for (std::string const error : {"BUSY held", "LOADING x", "TRYAGAIN x", "READONLY mode", "NOAUTH x", "CLUSTERDOWN x", "MASTERDOWN x"}) {
        TypeParam::command(client, "DEL", "runs");
        auto const script = "redis.call('INCR', KEYS[1]) return redis.error_reply('" + error + "')";
        EXPECT_EQ(failure<server_error>([&] { TypeParam::command(client, "EVAL", script, 1, "runs"); }), error);
        EXPECT_EQ(TypeParam::template command<int>(client, "GET", "runs"), 1);
    }
    EXPECT_EQ(client.statistics().connects, 1U);
}

TYPED_TEST(client_contract, answers_a_pipeline_in_order_with_errors_as_replies) {
    auto const replies = TypeParam::execute(
        this->to_server, pipeline{}.add("SET", "a", 1).add("LPUSH", "a", "x").add("INCR", "a").add("GET", "none"));
    ASSERT_EQ(replies.size(), 4U);
    EXPECT_EQ(replies[0].text(), "OK");
    EXPECT_EQ(replies[1].error_prefix(), "WRONGTYPE");
    EXPECT_EQ(replies[2].integer(), 2);
    EXPECT_TRUE(replies[3].is_null());
    EXPECT_THAT(failure<invalid_argument_error>([&] { TypeParam::execute(this->to_server, pipeline{}); }),
                HasSubstr("empty"));
}

TYPED_TEST(client_contract, runs_a_command_from_a_list_that_is_known_at_run_time) {
    std::vector<std::string_view> const words{"MSET", "a", "1", "b", "2"};
    EXPECT_EQ(TypeParam::execute(this->to_server, request::from(words)).text(), "OK");
    EXPECT_THAT(TypeParam::template command<std::vector<int>>(this->to_server, "MGET", "a", "b"), ElementsAre(1, 2));
    EXPECT_THROW(request::from(std::vector<std::string_view>{}), invalid_argument_error);
}

TYPED_TEST(client_contract, ends_a_command_that_a_stop_token_cancels) {
    std::stop_source before;
    before.request_stop();
    EXPECT_THROW(TypeParam::execute(this->to_server, request{"GET", "key"}, before.get_token()), cancelled_error);

    TypeParam::command(this->to_server, "PING");
    this->server.stop();
    std::stop_source during;
    auto waiting = std::async(std::launch::async, [&] {
        return outcome([&] { TypeParam::execute(this->to_server, request{"GET", "key"}, during.get_token()); });
    });
    EXPECT_TRUE(eventually([&] { return this->to_server.statistics().requests >= 2; })) << "it is under way";
    during.request_stop();
    EXPECT_EQ(waiting.get(), errc::cancelled) << "while the server says nothing at all";
    this->server.cont();
    EXPECT_EQ(TypeParam::command(this->to_server, "ECHO", "mine").text(), "mine") << "and not the reply to the GET";
}

TYPED_TEST(client_contract, refuses_what_would_break_the_connection_for_others) {
    auto const refusal = [this](auto const&... words) {
        return failure<invalid_argument_error>([&] { TypeParam::command(this->to_server, words...); });
    };
    EXPECT_THAT(refusal("SUBSCRIBE", "x"), HasSubstr("client.subscribe"));
    EXPECT_THAT(refusal("punsubscribe"), HasSubstr("client.subscribe"));
    EXPECT_THAT(refusal("MULTI"), HasSubstr("transaction"));
    EXPECT_THAT(refusal("Exec"), HasSubstr("transaction"));
    EXPECT_THAT(refusal("WATCH", "x"), HasSubstr("session"));
    EXPECT_THAT(refusal("BLPOP", "x", 0), HasSubstr("session"));
    EXPECT_THAT(refusal("XREAD", "block", 0, "STREAMS", "x", "$"), HasSubstr("session"));
    EXPECT_THAT(refusal("WAIT", 1, 0), HasSubstr("session"));
    EXPECT_THAT(refusal("HELLO", 2), HasSubstr("options"));
    EXPECT_THAT(refusal("SELECT", 1), HasSubstr("options"));
    EXPECT_THAT(refusal("CLIENT", "reply", "OFF"), HasSubstr("CLIENT REPLY"));
    EXPECT_THAT(refusal("MONITOR"), HasSubstr("MONITOR"));
    EXPECT_THAT(refusal("QUIT"), HasSubstr("close"));
    EXPECT_THAT(refusal(""), HasSubstr("empty"));
    EXPECT_THAT(failure<invalid_argument_error>(
                    [&] { TypeParam::execute(this->to_server, pipeline{}.add("GET", "x").add("RESET")); }),
                HasSubstr("RESET"));
    EXPECT_EQ(this->to_server.statistics().connects, 0U) << "refused before anything was sent";
    EXPECT_EQ(TypeParam::command(this->to_server, "XREAD", "COUNT", 1, "STREAMS", "x", 0).type(), reply_type::null);
}

TYPED_TEST(client_contract, cancels_what_is_under_way_when_it_is_closed) {
    TypeParam::command(this->to_server, "PING");
    this->server.stop();
    auto waiting = std::async(std::launch::async,
                              [&] { return outcome([&] { TypeParam::command(this->to_server, "INCR", "key"); }); });
    EXPECT_TRUE(eventually([&] { return this->to_server.statistics().pending == 1; }));
    this->to_server.close();
    EXPECT_EQ(waiting.get(), errc::cancelled);
    EXPECT_EQ(this->to_server.statistics().pending, 0U);
    this->to_server.close();
}

TYPED_TEST(client_contract, refuses_everything_after_it_was_closed) {
    auto& client = this->to_server;
    TypeParam::command(client, "PING");
    client.close();
    EXPECT_THROW(TypeParam::command(client, "PING"), cancelled_error);
    EXPECT_THROW(TypeParam::execute(client, pipeline{}.add("PING")), cancelled_error);
    EXPECT_THROW(TypeParam::execute(client, transaction{}.add("PING")), cancelled_error);
    EXPECT_THROW(TypeParam::open_session(client), cancelled_error);
    EXPECT_THROW(static_cast<void>(TypeParam::subscribe(client, {.channel = "news", .handler = [](message const&) {}})),
                 cancelled_error);
    EXPECT_EQ(client.statistics().connections, 0U);
    EXPECT_TRUE(eventually([&] { return this->server.connections() == 0; }));
}

TEST(client_test, opens_one_connection_at_the_first_request) {
    redis_server server;
    client client{{.url = server.url(), .name = "billing"}};
    EXPECT_EQ(server.connections(), 0);
    client.command("PING");
    client.command("PING");
    EXPECT_EQ(server.connections(), 1);
    EXPECT_THAT(server.must({"CLIENT", "LIST"}).text, HasSubstr(" name=billing "));
    EXPECT_THAT(client.description(), HasSubstr(server.socket_path()));
}

TEST(client_test, counts_what_it_does) {
    redis_server server;
    client client{server.url()};
    EXPECT_EQ(client.statistics().connects, 0U);
    auto commands = pipeline{};
    for (int i = 0; i < 100; ++i) commands.add("SET", "key", i);
    client.execute(std::move(commands));
    auto const seen = client.statistics();
    EXPECT_EQ(seen.requests, 100U);
    EXPECT_EQ(seen.replies, 100U);
    EXPECT_EQ(seen.connects, 1U);
    EXPECT_EQ(seen.reconnects, 0U);
    EXPECT_EQ(seen.connections, 1U);
    EXPECT_EQ(seen.pending, 0U);
    EXPECT_GT(seen.bytes_sent, 100U * 20);
    EXPECT_GE(seen.bytes_received, 100U * 5);
    EXPECT_LE(seen.batches, 10U) << "the requests of one turn share a write";
}

TEST(client_test, keeps_working_after_it_was_moved) {
    redis_server server;
    client first{server.url()};
    first.command("SET", "key", "value");
    client second{std::move(first)};
    EXPECT_EQ(second.command<std::string>("GET", "key"), "value");
    client third{server.url()};
    third = std::move(second);
    EXPECT_EQ(third.command<std::string>("GET", "key"), "value");
}

// A coroutine that awaits has its requests cancelled, also those it makes on its way out.
TEST(client_test, is_destroyed_with_requests_in_flight_and_coroutines_that_ask_for_more) {
    redis_server server;
    std::atomic<int> ended{0};
    {
        client client{server.url()};
        client.command("PING");
        server.stop();
        auto const stubborn = [](lockstep::client& on, std::atomic<int>& count) -> task<void> {
            for (int i = 0; i < 3; ++i) {
                bool cancelled = false;
                try {
                    co_await on.async_command("GET", "key");
                } catch (cancelled_error const&) {
                    cancelled = true;
                }
                if (cancelled) ++count;
            }
            bool cancelled = false;
            try {
                auto const session = co_await on.async_open_session();
            } catch (cancelled_error const&) {
                cancelled = true;
            }
            if (cancelled) ++count;
            subscription_options options{.channel = "news", .handler = [](message const&) {}};
            cancelled = false;
            try {
                auto const news = co_await on.async_subscribe(std::move(options));
            } catch (cancelled_error const&) {
                cancelled = true;
            }
            if (cancelled) ++count;
        };
        for (int i = 0; i < 100; ++i) start(stubborn(client, ended), [](std::exception_ptr) {});
        EXPECT_TRUE(eventually([&] { return client.statistics().pending == 100; }));
    }
    EXPECT_EQ(ended, 500);
    server.cont();
}

TEST(client_test, ends_on_its_own_thread_when_its_last_owner_is_a_coroutine) {
    redis_server server;
    std::promise<void> gone;
    auto const last_owner = [](std::unique_ptr<client> owned) -> task<void> {
        co_await owned->async_command("PING");
        owned.reset();
    };
    start(last_owner(std::make_unique<client>(server.url())), [&](std::exception_ptr problem) {
        EXPECT_FALSE(problem);
        gone.set_value();
    });
    EXPECT_EQ(gone.get_future().wait_for(10s), std::future_status::ready);
    EXPECT_TRUE(eventually([&] { return server.connections() == 0; }));
}

TEST(client_test, throws_would_deadlock_where_a_blocking_form_would_wait_for_itself) {
    redis_server server;
    client client{server.url()};
    auto session = client.open_session();
    std::vector<std::optional<errc>> seen;
    auto const blocks = [&]() -> task<void> {
        next_turn const turn{client};
        co_await turn;
        seen.push_back(outcome([&] { client.command("PING"); }));
        seen.push_back(outcome([&] { client.execute(pipeline{}.add("PING")); }));
        seen.push_back(outcome([&] { client.execute(transaction{}.add("PING")); }));
        seen.push_back(outcome([&] { auto const other = client.open_session(); }));
        seen.push_back(outcome([&] { auto const news = client.subscribe("news", [](message const&) {}); }));
        seen.push_back(outcome([&] { session.command("PING"); }));
        seen.push_back(outcome([&] { session.execute(transaction{}.add("PING")); }));
        seen.push_back(outcome([&] { sync_wait(client.async_command("PING")); }));
    };
    sync_wait(blocks());
    EXPECT_THAT(seen, testing::AllOf(testing::SizeIs(8), testing::Each(std::optional{errc::would_deadlock})));
    EXPECT_EQ(client.command("PING").text(), "PONG") << "nothing was harmed";
}

TEST(client_test, throws_in_a_child_made_by_fork_and_lets_the_parent_go_on) {
    redis_server server;
    client client{server.url()};
    auto session = client.open_session();
    auto news = client.subscribe("news", [](message const&) {});
    client.command("SET", "key", "value");

    // The child must not use the test framework's output: it tells by its exit code.
    auto const child = ::fork();
    if (child == 0) {
        ::alarm(30);  // where a call blocks, the test fails instead of hanging
        auto const refused = [](auto&& work) { return outcome(work) == errc::invalid_argument; };
        int failed = 0;
        if (!refused([&] { client.command("GET", "key"); })) failed |= 1;
        if (!refused([&] { client.execute(pipeline{}.add("PING")); })) failed |= 2;
        if (!refused([&] { client.execute(transaction{}.add("PING")); })) failed |= 4;
        if (!refused([&] { auto const other = client.open_session(); })) failed |= 8;
        if (!refused([&] { auto const more = client.subscribe("more", [](message const&) {}); })) failed |= 16;
        if (!refused([&] { session.command("GET", "key"); })) failed |= 32;
        if (!refused([&] { static_cast<void>(client.statistics()); })) failed |= 64;
        news.unsubscribe();
        client.close();
        { auto const gone = std::move(session); }
        { auto const gone = std::move(client); }
        ::_exit(failed);
    }
    int status = -1;
    EXPECT_TRUE(eventually([&] { return ::waitpid(child, &status, WNOHANG) == child; }, 40s));
    EXPECT_TRUE(WIFEXITED(status));
    EXPECT_EQ(WEXITSTATUS(status), 0);
    EXPECT_EQ(client.command<std::string>("GET", "key"), "value");
    EXPECT_EQ(session.command<std::string>("GET", "key"), "value");
    EXPECT_EQ(server.must({"PUBLISH", "news", "x"}).integer, 1);
}

TEST(client_test, refuses_options_that_make_no_sense_and_says_what_does) {
    auto const refusal = [](client_options options) {
        if (options.url.empty()) options.url = "redis://localhost";
        return failure<invalid_argument_error>([&] { client const never{options}; });
    };
    EXPECT_THAT(refusal({.connect_timeout = 0ms}), HasSubstr("connect_timeout"));
    EXPECT_THAT(refusal({.command_timeout = -1ms}), HasSubstr("command_timeout"));
    EXPECT_THAT(refusal({.reconnect_min = 0ms}), HasSubstr("reconnect_min"));
    EXPECT_THAT(refusal({.reconnect_min = 30ms, .reconnect_max = 20ms}), HasSubstr("reconnect_max"));
    EXPECT_THAT(refusal({.keepalive_interval = -1ms}), HasSubstr("keepalive_interval"));
    EXPECT_THAT(refusal({.keepalive_timeout = 0ms}), HasSubstr("keepalive_timeout"));
    EXPECT_THAT(refusal({.max_pending = 0}), HasSubstr("max_pending"));
    EXPECT_THAT(refusal({.max_batch_bytes = 0}), HasSubstr("max_batch_bytes"));
    EXPECT_THAT(refusal({.batch_delay = -1us}), HasSubstr("batch_delay"));
    EXPECT_THAT(refusal({.max_reply_bytes = 1}), HasSubstr("max_reply_bytes"));
    EXPECT_THAT(refusal({.name = "two words"}), HasSubstr("name"));
    EXPECT_THAT(refusal({.tls = {.ca_file = "ca.crt"}}), HasSubstr("rediss://"));
    EXPECT_THAT(refusal({.url = "rediss://localhost", .tls = {.ca_file = "/nowhere/ca.crt"}}),
                HasSubstr("/nowhere/ca.crt"));
    EXPECT_THAT(refusal({.url = "http://localhost"}), HasSubstr("redis://"));
    EXPECT_THROW(client{""}, invalid_argument_error);
}

TEST(client_test, takes_the_longest_times_for_ever) {
    redis_server server;
    constexpr auto longest = std::chrono::milliseconds::max();
    client client{{.url = server.url(),
                   .connect_timeout = longest,
                   .command_timeout = longest,
                   .reconnect_min = longest,
                   .reconnect_max = longest,
                   .keepalive_interval = longest,
                   .keepalive_timeout = longest}};
    EXPECT_EQ(client.command("PING").text(), "PONG");
    EXPECT_EQ(client.execute(request{"PING"}.within(longest)).text(), "PONG");
    EXPECT_EQ(client.execute(pipeline{}.add("PING").within(longest)).size(), 1U);
    server.must({"CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"});
    EXPECT_TRUE(eventually([&] { return client.statistics().connects == 2; })) << "the first attempt needs no pause";
    EXPECT_THROW(request{"PING"}.within(-1ms), invalid_argument_error);
    EXPECT_THROW(transaction{}.add("PING").within(-1ms), invalid_argument_error);
}

TEST(client_test, selects_the_database_of_the_url) {
    redis_server server{{.tcp = true}};
    client in_three{server.url() + "/3"};
    in_three.command("SET", "key", "three");
    client in_zero{server.url()};
    EXPECT_TRUE(in_zero.command("GET", "key").is_null());
    in_zero.command("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes");
    EXPECT_EQ(in_three.execute<std::string>(request{"GET", "key"}.repeatable()), "three") << "also after a reconnect";
    client in_none{server.url() + "/99"};
    EXPECT_THAT(failure<unsuitable_server_error>([&] { in_none.command("PING"); }), HasSubstr("99"));
}

}  // namespace
}  // namespace lockstep::test
