// A bad network between client and server: which requests are sent again, which end as indeterminate, and that none is
// answered with another's reply. The faults are real ones, made by a proxy.
#include <lockstep/client.hpp>

#include "support/eventually.hpp"
#include "support/failures.hpp"
#include "support/fault_proxy.hpp"
#include "support/forms.hpp"
#include "support/log_lines.hpp"
#include "support/redis_server.hpp"
#include "support/stub_peer.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <future>
#include <optional>
#include <string>
#include <vector>

namespace lockstep::test {
namespace {

using namespace std::chrono_literals;
using testing::AnyOf;
using testing::HasSubstr;

template <class Form>
class transport_fault : public testing::Test {
protected:
    log_lines log;
    redis_server server{{.tcp = true}};
    fault_proxy proxy{server.address()};
    client to_server{{.url = proxy.url(), .connect_timeout = 500ms, .command_timeout = 30s, .reconnect_max = 50ms}};

    // On a connection that is made: the log-in has replies, too.
    fault_proxy& connected() {
        EXPECT_TRUE(eventually([&] { return to_server.statistics().connections == 1; }));
        return proxy;
    }
    std::string count(std::string const& key) { return server.must({"GET", key}).text; }
};
TYPED_TEST_SUITE(transport_fault, forms, form_names);

TYPED_TEST(transport_fault, connects_again_by_itself_after_a_cut) {
    TypeParam::command(this->to_server, "PING");
    this->proxy.cut();
    EXPECT_TRUE(eventually([&] { return this->to_server.statistics().connects == 2; })) << "without being asked";
    EXPECT_EQ(TypeParam::command(this->to_server, "PING").text(), "PONG");
    EXPECT_EQ(this->to_server.statistics().reconnects, 1U);
    EXPECT_EQ(this->log.count(log_level::info, "lost"), 1U);
}

TYPED_TEST(transport_fault, says_indeterminate_when_the_reply_is_lost) {
    TypeParam::command(this->to_server, "PING");
    this->proxy.drop_replies(1);
    EXPECT_THAT(failure<indeterminate_error>([&] { TypeParam::command(this->to_server, "INCR", "key"); }),
                HasSubstr("may have run"));
    EXPECT_EQ(this->proxy.counters().struck, 1U);
    EXPECT_EQ(this->count("key"), "1") << "it did run, once";
    EXPECT_EQ(TypeParam::template command<int>(this->to_server, "INCR", "key"), 2);
}

TYPED_TEST(transport_fault, sends_a_repeatable_request_again_when_the_reply_is_lost) {
    TypeParam::command(this->to_server, "PING");
    this->proxy.drop_replies(1);
    EXPECT_EQ(TypeParam::template execute<int>(this->to_server, request{"INCR", "key"}.repeatable()), 2)
        << "it ran twice, as `repeatable` allows";
    EXPECT_EQ(this->proxy.counters().struck, 1U);
    EXPECT_EQ(this->to_server.statistics().reconnects, 1U);
}

TYPED_TEST(transport_fault, treats_pipelines_and_transactions_as_their_requests) {
    TypeParam::command(this->to_server, "PING");
    this->proxy.drop_replies(1);
    EXPECT_THROW(TypeParam::execute(this->to_server, pipeline{}.add("INCR", "a").add("INCR", "a")),
                 indeterminate_error);
    this->connected().drop_replies(1);
    EXPECT_THROW(TypeParam::execute(this->to_server, transaction{}.add("INCR", "b").add("INCR", "b")),
                 indeterminate_error);
    EXPECT_EQ(this->count("b"), "2");
    this->connected().drop_replies(1);
    auto const again =
        TypeParam::execute(this->to_server, transaction{}.add("INCR", "b").add("ECHO", "x").repeatable());
    ASSERT_TRUE(again && again->size() == 2);
    EXPECT_EQ((*again)[0].integer(), 4);
    EXPECT_EQ((*again)[1].text(), "x");
    this->connected().drop_replies(1);
    auto const replies = TypeParam::execute(this->to_server, pipeline{}.add("ECHO", "x").add("ECHO", "y").repeatable());
    EXPECT_EQ(replies[0].text(), "x");
    EXPECT_EQ(replies[1].text(), "y");
    EXPECT_EQ(this->proxy.counters().struck, 4U);
}

// The stream ends in the middle of a reply of many elements.
TYPED_TEST(transport_fault, drops_half_a_reply) {
    for (int i = 0; i < 1000; ++i) this->server.must({"RPUSH", "list", std::to_string(i)});
    TypeParam::command(this->to_server, "PING");
    this->proxy.cut_after(2'000, direction::to_client);
    auto const all =
        TypeParam::template execute<std::vector<int>>(this->to_server, request{"LRANGE", "list", 0, -1}.repeatable());
    EXPECT_EQ(all.size(), 1000U);
    EXPECT_EQ(this->proxy.counters().struck, 1U);
    this->connected().cut_after(2'000, direction::to_client);
    EXPECT_THROW(TypeParam::command(this->to_server, "LRANGE", "list", 0, -1), indeterminate_error);
}

TYPED_TEST(transport_fault, sends_again_what_reached_the_server_by_half) {
    std::string const large(1'000'000, 'x');
    TypeParam::command(this->to_server, "PING");
    this->proxy.cut_after(100'000, direction::to_server);
    EXPECT_EQ(TypeParam::template execute<int>(this->to_server, request{"APPEND", "key", large}.repeatable()),
              1'000'000);
    EXPECT_EQ(this->proxy.counters().struck, 1U);
}

// What waits behind a full socket when the connection breaks certainly did not run: it is sent again, repeatable or not.
// What may have left ends as indeterminate. In no case does anything run twice.
TYPED_TEST(transport_fault, tells_what_was_not_sent_from_what_may_have_run) {
    constexpr int requests = 300;
    std::string const large(100'000, 'x');
    TypeParam::command(this->to_server, "PING");
    this->proxy.hold(direction::to_server);
    std::vector<std::optional<errc>> outcomes(requests);
    std::atomic<int> ended{0};
    for (int i = 0; i < requests; ++i) {
        start(this->to_server.async_command("APPEND", "key" + std::to_string(i), large),
              [&, i](std::exception_ptr problem, std::optional<lockstep::reply>) {
                  if (problem)
                      outcomes[static_cast<std::size_t>(i)] = outcome([&] { std::rethrow_exception(problem); });
                  ++ended;
              });
    }
    EXPECT_TRUE(eventually([&] { return this->to_server.statistics().pending == requests; }));
    EXPECT_LT(this->to_server.statistics().requests, 300U) << "the socket is full";
    this->proxy.cut();
    this->proxy.heal();
    EXPECT_TRUE(eventually([&] { return ended == requests; }, 30s));
    int succeeded = 0;
    int unknown = 0;
    for (int i = 0; i < requests; ++i) {
        auto const& end = outcomes[static_cast<std::size_t>(i)];
        auto const length = this->server.must({"STRLEN", "key" + std::to_string(i)}).integer;
        if (!end) {
            ++succeeded;
            EXPECT_EQ(length, 100'000) << "once";
        } else {
            ++unknown;
            EXPECT_EQ(end, errc::indeterminate);
            EXPECT_TRUE(length == 0 || length == 100'000) << length;
        }
    }
    EXPECT_GT(succeeded, 0);
    EXPECT_GT(unknown, 0);
}

TYPED_TEST(transport_fault, gives_up_in_the_time_of_the_request_when_nobody_answers) {
    TypeParam::command(this->to_server, "PING");
    this->proxy.half_open();
    auto const began = now_ms();
    EXPECT_THAT(failure<indeterminate_error>([&] {
                    TypeParam::execute(this->to_server, request{"INCR", "key"}.within(50ms));
                }),
                HasSubstr("may have run"));
    EXPECT_THROW(TypeParam::execute(this->to_server, request{"GET", "key"}.within(50ms).repeatable()), timeout_error);
    EXPECT_GE(now_ms() - began, 99);
    EXPECT_EQ(this->to_server.statistics().pending, 0U);
}

// The second attempt finds no server. The first may have run, so "unavailable" (it did not run) would be a lie.
TYPED_TEST(transport_fault, does_not_deny_an_attempt_whose_reply_was_lost) {
    TypeParam::command(this->to_server, "PING");
    this->proxy.refuse();
    this->proxy.drop_replies(1);
    EXPECT_THAT(failure<timeout_error>([&] {
                    TypeParam::execute(this->to_server, request{"INCR", "key"}.within(150ms).repeatable());
                }),
                HasSubstr("may have run"));
    EXPECT_EQ(this->count("key"), "1");
    EXPECT_THROW(TypeParam::execute(this->to_server, request{"INCR", "key"}.within(50ms).repeatable()),
                 unavailable_error);
    EXPECT_EQ(this->count("key"), "1");
}

TYPED_TEST(transport_fault, notices_a_vanished_server_by_its_silence) {
    client watchful{{.url = this->proxy.url(),
                     .connect_timeout = 200ms,
                     .command_timeout = 30s,
                     .reconnect_max = 50ms,
                     .keepalive_interval = 30ms,
                     .keepalive_timeout = 60ms}};
    TypeParam::command(watchful, "PING");
    this->proxy.half_open();
    auto waiting = std::async(std::launch::async, [&] {
        return TypeParam::template execute<int>(watchful, request{"INCR", "key"}.repeatable());
    });
    EXPECT_TRUE(eventually([&] { return watchful.statistics().reconnects == 1; }));
    EXPECT_EQ(this->log.count("did not answer for"), 1U);
    this->proxy.heal();
    EXPECT_EQ(waiting.get(), 1) << "the first one was swallowed on its way";
    EXPECT_TRUE(eventually([&] { return watchful.statistics().replies > 10; })) << "then it goes on to PING";
    EXPECT_EQ(watchful.statistics().reconnects, 1U);
}

TYPED_TEST(transport_fault, drops_the_replies_that_come_too_late) {
    TypeParam::command(this->to_server, "PING");
    this->proxy.hold(direction::to_client);
    EXPECT_THROW(TypeParam::execute(this->to_server, request{"ECHO", "late"}.within(30ms).repeatable()), timeout_error);
    EXPECT_THROW(TypeParam::execute(this->to_server, request{"ECHO", "later"}.within(30ms)), indeterminate_error);
    auto mine = std::async(std::launch::async,
                           [&] { return TypeParam::template command<std::string>(this->to_server, "ECHO", "mine"); });
    EXPECT_TRUE(eventually([&] { return this->to_server.statistics().pending == 1; }));
    this->proxy.heal();
    EXPECT_EQ(mine.get(), "mine");
    EXPECT_EQ(this->to_server.statistics().reconnects, 0U) << "a late reply is no reason to give the connection up";
}

TYPED_TEST(transport_fault, works_over_a_slow_line) {
    this->proxy.delay(60ms);
    EXPECT_EQ(TypeParam::template command<int>(this->to_server, "INCR", "key"), 1);
    EXPECT_EQ(TypeParam::template command<int>(this->to_server, "INCR", "key"), 2);
    EXPECT_EQ(this->to_server.statistics().connects, 1U);
}

TYPED_TEST(transport_fault, does_not_trust_a_stream_with_corrupt_bytes) {
    TypeParam::command(this->to_server, "PING");
    this->proxy.corrupt();
    EXPECT_THROW(TypeParam::command(this->to_server, "INCR", "key"), indeterminate_error);
    EXPECT_EQ(this->log.count(log_level::error, "not RESP"), 1U);
    this->connected().corrupt();
    EXPECT_EQ(TypeParam::template execute<int>(this->to_server, request{"INCR", "key"}.repeatable()), 3);
    EXPECT_EQ(this->proxy.counters().struck, 2U);
    EXPECT_EQ(this->to_server.statistics().reconnects, 2U);
}

// Asked again it would come again: the request ends, whatever it allows, and the others go on.
TYPED_TEST(transport_fault, ends_the_request_whose_reply_is_too_large) {
    client modest{
        {.url = this->proxy.url(), .command_timeout = 30s, .reconnect_max = 20ms, .max_reply_bytes = 64 * 1024}};
    this->server.must({"SET", "large", std::string(100'000, 'x')});
    EXPECT_THROW(TypeParam::command(modest, "GET", "large"), protocol_error);
    EXPECT_THROW(TypeParam::execute(modest, request{"GET", "large"}.repeatable()), protocol_error);
    std::atomic<int> right{0};
    for (int i = 0; i < 10; ++i) {
        auto other = request{"ECHO", i}.repeatable();
        start(modest.async_execute<int>(other),
              [&, i](std::exception_ptr, std::optional<int> got) { right += got == i ? 1 : 0; });
        auto large = request{"GET", "large"}.repeatable();
        start(modest.async_execute(large), [](std::exception_ptr, std::optional<lockstep::reply>) {});
    }
    EXPECT_TRUE(eventually([&] { return right == 10; }));
    EXPECT_EQ(TypeParam::command(modest, "PING").text(), "PONG");
    EXPECT_EQ(modest.statistics().connects, 1U) << "the replies were passed over, and the connection goes on";
}

// A request that makes the server hang up each time must not turn into a busy loop.
TYPED_TEST(transport_fault, pauses_between_connections_that_break_at_once) {
    client client{{.url = this->proxy.url(), .command_timeout = 30s, .reconnect_min = 20ms, .reconnect_max = 100ms}};
    TypeParam::command(client, "PING");
    this->server.must({"CONFIG", "SET", "client-query-buffer-limit", "1mb"});
    auto const poison = request{"SET", "key", std::string(2'000'000, 'x')}.repeatable().within(1s);
    EXPECT_THROW(TypeParam::execute(client, poison), timeout_error);
    EXPECT_LE(client.statistics().connects, 60U) << "1 s with pauses of at least 10 ms, but for the first";
}

TYPED_TEST(transport_fault, waits_for_a_server_that_is_not_there_yet) {
    this->proxy.refuse();
    client early{{.url = this->proxy.url(), .command_timeout = 30s, .reconnect_max = 50ms}};
    auto const began = now_ms();
    EXPECT_THAT(failure<unavailable_error>([&] {
                    TypeParam::execute(early, request{"INCR", "key"}.within(100ms));
                }),
                HasSubstr("refused"));
    EXPECT_GE(now_ms() - began, 99) << "it had until then";
    EXPECT_LT(now_ms() - began, 5'000);
    auto waiting =
        std::async(std::launch::async, [&] { return TypeParam::template command<int>(early, "INCR", "key"); });
    EXPECT_TRUE(eventually([&] { return early.statistics().pending == 1; }));
    this->proxy.heal();
    EXPECT_EQ(waiting.get(), 1);
}

TYPED_TEST(transport_fault, gives_up_an_attempt_that_hangs) {
    this->proxy.half_open();
    client hanging{{.url = this->proxy.url(), .connect_timeout = 50ms, .command_timeout = 30s, .reconnect_max = 50ms}};
    EXPECT_THAT(failure<unavailable_error>(
                    [&] { until_heard([&] { TypeParam::execute(hanging, request{"PING"}.within(300ms)); }); }),
                HasSubstr("not connected"));
    EXPECT_GE(this->proxy.counters().accepted, 2U) << "and tries again";
    this->proxy.heal();
    EXPECT_EQ(TypeParam::command(hanging, "PING").text(), "PONG");
}

TYPED_TEST(transport_fault, says_what_is_wrong_with_a_peer_that_is_no_redis) {
    std::vector<std::string> const answers{"HTTP/1.1 400 Bad Request\r\n\r\n",
                                           "SSH-2.0-OpenSSH_9.2\r\n",
                                           std::string(64, '\0'),
                                           "*1\r\n$5\r\nHELLO\r\n",
                                           "$999999999999\r\n",
                                           "+OK\r\n+OK\r\n",
                                           ":1\r\n*0\r\n"};
    for (auto const& answer : answers) {
        SCOPED_TRACE(answer);
        for (bool const hang_up : {false, true}) {
            stub_peer peer{answer, hang_up};
            client client{{.url = peer.url(), .connect_timeout = 100ms, .reconnect_max = 20ms}};
            auto const why =
                failure<unavailable_error>(
                    [&] { until_heard([&] { TypeParam::execute(client, request{"PING"}.within(200ms)); }); });
            EXPECT_THAT(why, HasSubstr("127.0.0.1"));
            EXPECT_THAT(why, AnyOf(HasSubstr("not RESP"), HasSubstr("more than is allowed"), HasSubstr("HELLO"),
                                   HasSubstr("closed"), HasSubstr("not connected"), HasSubstr("reset")));
        }
    }
}

TYPED_TEST(transport_fault, does_not_go_on_after_a_reply_that_nobody_asked_for) {
    std::string const greeting = "%1\r\n$7\r\nversion\r\n$5\r\n7.0.0\r\n$0\r\n\r\n";
    stub_peer peer{greeting + "+surprise\r\n"};
    client client{{.url = peer.url(), .connect_timeout = 100ms, .reconnect_max = 20ms}};
    auto const end = outcome([&] { TypeParam::execute(client, request{"PING"}.within(200ms).repeatable()); });
    EXPECT_THAT(end, AnyOf(errc::unavailable, errc::timeout));
    EXPECT_GE(this->log.count("nobody asked for"), 1U);
}

}  // namespace
}  // namespace lockstep::test
