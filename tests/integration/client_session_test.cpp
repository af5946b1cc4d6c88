// Transactions on the shared connection, and sessions: WATCH, commands that block, a connection that is never repaired.
#include <lockstep/client.hpp>

#include "support/eventually.hpp"
#include "support/failures.hpp"
#include "support/fault_proxy.hpp"
#include "support/forms.hpp"
#include "support/redis_server.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <future>
#include <optional>
#include <string>

namespace lockstep::test {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

template <class Form>
class session_contract : public testing::Test {
protected:
    redis_server server;
    client to_server{server.url()};
};
TYPED_TEST_SUITE(session_contract, forms, form_names);

TYPED_TEST(session_contract, runs_a_transaction_and_gives_its_replies) {
    auto const replies =
        TypeParam::execute(this->to_server, transaction{}.add("SET", "a", 1).add("LPUSH", "a", "x").add("INCR", "a"));
    ASSERT_TRUE(replies);
    ASSERT_EQ(replies->size(), 3U);
    EXPECT_EQ((*replies)[0].text(), "OK");
    EXPECT_EQ((*replies)[1].error_prefix(), "WRONGTYPE") << "an error while it runs is a reply";
    EXPECT_EQ((*replies)[2].integer(), 2);
}

TYPED_TEST(session_contract, runs_nothing_of_a_transaction_with_a_refused_command) {
    auto const refused = transaction{}.add("SET", "a", 1).add("NONSENSE", "x").add("SET", "b", 2);
    EXPECT_THAT(failure<server_error>([&] { TypeParam::execute(this->to_server, refused); }), HasSubstr("NONSENSE"));
    EXPECT_EQ(TypeParam::template command<int>(this->to_server, "EXISTS", "a", "b"), 0);
    EXPECT_THROW(TypeParam::execute(this->to_server, transaction{}), invalid_argument_error);
    EXPECT_THROW(TypeParam::execute(this->to_server, transaction{}.add("WATCH", "a")), invalid_argument_error);
    EXPECT_EQ(TypeParam::command(this->to_server, "ECHO", "x").text(), "x");
}

// MULTI refused means that what follows is not queued but runs: nobody may be told that nothing ran.
TYPED_TEST(session_contract, says_so_when_the_commands_ran_without_a_transaction) {
    redis_server strict{{.users = {"narrow on >secret ~* &* +@all -multi"}}};
    client client{strict.url("narrow", "secret")};
    EXPECT_THAT(failure<indeterminate_error>([&] { TypeParam::execute(client, transaction{}.add("SET", "a", 1)); }),
                HasSubstr("MULTI"));
    EXPECT_EQ(strict.must({"GET", "a"}).text, "1");
    redis_server stricter{{.users = {"narrow on >secret ~* &* +@all -multi -set"}}};
    lockstep::client nothing_ran{stricter.url("narrow", "secret")};
    EXPECT_THAT(failure<server_error>([&] { TypeParam::execute(nothing_ran, transaction{}.add("SET", "a", 1)); }),
                HasSubstr("NOPERM"));
}

TYPED_TEST(session_contract, gives_nothing_when_a_watched_key_changed) {
    auto session = TypeParam::open_session(this->to_server);
    TypeParam::command(this->to_server, "SET", "stock", 5);
    auto const sell = [&](bool disturb) {
        TypeParam::command(this->to_server, session, "WATCH", "stock");
        auto const stock = TypeParam::template command<int>(this->to_server, session, "GET", "stock");
        if (disturb) TypeParam::command(this->to_server, "INCR", "stock");
        return TypeParam::execute(this->to_server, session, transaction{}.add("SET", "stock", stock - 1));
    };
    EXPECT_TRUE(sell(false));
    EXPECT_FALSE(sell(true));
    EXPECT_EQ(TypeParam::template command<int>(this->to_server, "GET", "stock"), 5);
    EXPECT_TRUE(sell(false));
    EXPECT_EQ(TypeParam::template command<int>(this->to_server, "GET", "stock"), 4);
}

TYPED_TEST(session_contract, has_a_connection_of_its_own_that_ends_with_it) {
    TypeParam::command(this->to_server, "PING");
    {
        auto session = TypeParam::open_session(this->to_server);
        auto other = TypeParam::open_session(this->to_server);
        EXPECT_EQ(this->server.connections(), 3);
        EXPECT_NE(TypeParam::template command<int>(this->to_server, session, "CLIENT", "ID"),
                  TypeParam::template command<int>(this->to_server, other, "CLIENT", "ID"));
    }
    EXPECT_TRUE(eventually([&] { return this->server.connections() == 1; }));
}

TYPED_TEST(session_contract, blocks_without_holding_up_anybody_else) {
    auto session = TypeParam::open_session(this->to_server);
    auto popped = std::async(std::launch::async, [&] {
        return TypeParam::template command<std::pair<std::string, std::string>>(this->to_server, session, "BLPOP",
                                                                                "list", 0);
    });
    EXPECT_TRUE(eventually([&] { return this->server.info("blocked_clients") == "1"; }));
    TypeParam::command(this->to_server, "RPUSH", "list", "value");
    EXPECT_EQ(popped.get(), (std::pair<std::string, std::string>{"list", "value"}));
}

// A blocked connection does not answer a PING either: that is no sign of death.
TYPED_TEST(session_contract, blocks_for_longer_than_the_keep_alive_waits) {
    client client{{.url = this->server.url(), .keepalive_interval = 20ms, .keepalive_timeout = 40ms}};
    auto session = TypeParam::open_session(client);
    EXPECT_TRUE(TypeParam::command(client, session, "BLPOP", "list", 0.5).is_null());
    EXPECT_EQ(TypeParam::command(client, session, "PING").text(), "PONG");
}

TYPED_TEST(session_contract, refuses_what_has_no_reply_to_wait_for) {
    auto session = TypeParam::open_session(this->to_server);
    auto const refusal = [&](auto const&... words) {
        return failure<invalid_argument_error>([&] { TypeParam::command(this->to_server, session, words...); });
    };
    EXPECT_THAT(refusal("SUBSCRIBE", "x"), HasSubstr("client.subscribe"));
    EXPECT_THAT(refusal("psubscribe", "x"), HasSubstr("client.subscribe"));
    EXPECT_THAT(refusal("MONITOR"), HasSubstr("MONITOR"));
    EXPECT_THAT(refusal("CLIENT", "REPLY", "OFF"), HasSubstr("CLIENT REPLY"));
    EXPECT_THAT(refusal(""), HasSubstr("empty"));
    EXPECT_EQ(TypeParam::command(this->to_server, session, "ECHO", "x").text(), "x");
}

TYPED_TEST(session_contract, is_never_repaired) {
    fault_proxy proxy{this->server.address()};
    client client{proxy.url()};
    auto session = TypeParam::open_session(client);
    TypeParam::command(client, session, "WATCH", "key");
    proxy.drop_replies(1);
    EXPECT_THROW(TypeParam::command(client, session, "INCR", "key"), indeterminate_error);
    EXPECT_THAT(failure<unavailable_error>([&] { TypeParam::command(client, session, "GET", "key"); }),
                HasSubstr("open a new session"));
    EXPECT_THROW(TypeParam::execute(client, session, transaction{}.add("SET", "key", 1)), unavailable_error);
    auto fresh = TypeParam::open_session(client);
    EXPECT_EQ(TypeParam::template command<int>(client, fresh, "GET", "key"), 1);
}

TYPED_TEST(session_contract, is_of_no_more_use_once_its_client_is_closed) {
    std::optional<session> session;
    {
        client client{this->server.url()};
        session.emplace(TypeParam::open_session(client));
        TypeParam::command(client, *session, "PING");
    }
    EXPECT_TRUE(eventually([&] { return this->server.connections() == 0; }));
    EXPECT_THROW(session->command("PING"), cancelled_error);
}

}  // namespace
}  // namespace lockstep::test
