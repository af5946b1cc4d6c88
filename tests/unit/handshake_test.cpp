// What a connection says first, and which answers are good enough.
#include "redis/handshake.hpp"

#include "resp/parser.hpp"
#include "support/failures.hpp"

#include <lockstep/error.hpp>
#include <lockstep/log.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace {

using namespace lockstep;
using redis::handshake;
using test::failure;
using testing::AllOf;
using testing::AnyOf;
using testing::HasSubstr;
using testing::Not;

std::string said(handshake const& greeting, std::size_t replies) {
    resp::output out;
    EXPECT_EQ(greeting.say(out, greeting.secret()), replies);
    return std::string{out.view()};
}

std::vector<reply> answers(std::vector<std::string> const& texts) {
    std::vector<reply> parsed;
    for (auto const& text : texts) {
        resp::parser parser;
        EXPECT_EQ(parser.parse(text), resp::status::ready) << text;
        parsed.emplace_back(parser.message());
    }
    return parsed;
}

void judge(handshake const& greeting, std::vector<std::string> const& texts) {
    greeting.judge(answers(texts), greeting.secret());
}

std::string bulk(std::string const& text) { return "$" + std::to_string(text.size()) + "\r\n" + text + "\r\n"; }
std::string hello(std::string const& version) {
    return "%2\r\n" + bulk("server") + bulk("redis") + bulk("version") + bulk(version);
}
std::string info(std::string const& policy) {
    return bulk("# Memory\r\nmaxmemory:0\r\nmaxmemory_policy:" + policy + "\r\nother:1\r\n");
}

handshake with_password() {
    handshake greeting;
    greeting.user = "worker";
    greeting.password = [] { return std::string{"s3cr3t"}; };
    return greeting;
}

TEST(handshake, asks_for_all_in_one_go) {
    EXPECT_EQ(said({.client_name = "me", .check_server = false}, 1),
              "*4\r\n$5\r\nHELLO\r\n$1\r\n3\r\n$7\r\nSETNAME\r\n$2\r\nme\r\n");
    auto greeting = with_password();
    greeting.database = 3;
    greeting.require_master = true;
    auto const text = said(greeting, 4);
    EXPECT_THAT(text, HasSubstr("$4\r\nAUTH\r\n$6\r\nworker\r\n$6\r\ns3cr3t\r\n"));
    EXPECT_THAT(text, HasSubstr("$6\r\nSELECT\r\n$1\r\n3\r\n"));
    EXPECT_THAT(text, HasSubstr("$4\r\nINFO\r\n$6\r\nmemory\r\n"));
    EXPECT_TRUE(text.ends_with("*1\r\n$4\r\nROLE\r\n"));
    greeting.user.clear();
    EXPECT_THAT(said(greeting, 4), HasSubstr("$4\r\nAUTH\r\n$7\r\ndefault\r\n"));
}

// As `default` it would have other rights than the user it was told.
TEST(handshake, logs_in_as_a_user_without_a_password) {
    EXPECT_THAT(said({.user = "worker", .check_server = false}, 1), HasSubstr("$4\r\nAUTH\r\n$6\r\nworker\r\n$0\r\n\r\n"));
}

// A password may be a part of whatever the server says.
TEST(handshake, understands_answers_in_which_the_password_occurs) {
    for (auto const* const password : {"7", "7.0", ".", "no", "noeviction", "eviction", "master", "a", "e"}) {
        handshake const greeting{.user = {}, .password = [=] { return std::string{password}; }, .require_master = true};
        judge(greeting, {hello("7.0.0"), info("noeviction"), "*1\r\n" + bulk("master")});
        EXPECT_THROW(judge(greeting, {hello("7.0.0"), info("allkeys-lru"), "*1\r\n" + bulk("master")}), unsuitable_server_error);
        EXPECT_THROW(judge(greeting, {hello("6.0.7"), info("noeviction"), "*1\r\n" + bulk("master")}), unsuitable_server_error);
    }
}

TEST(handshake, takes_servers_that_are_new_enough) {
    handshake const greeting;
    for (auto const* const version : {"7.0.0", "7.2.5", "8.0.1", "10.0.0", "255.255.255"})
        judge(greeting, {hello(version), info("noeviction")});
    for (auto const* const version : {"6.2.14", "5.0", "", "x"}) {
        EXPECT_THAT(failure<unsuitable_server_error>([&] {
                        judge(greeting, {hello(version), info("noeviction")});
                    }),
                    HasSubstr("Redis 7.0 or newer"));
    }
    EXPECT_THAT(failure<unsuitable_server_error>([&] {
                    judge(greeting, {"-ERR unknown command `HELLO`\r\n", "-ERR x\r\n"});
                }),
                HasSubstr("Redis 7.0 or newer"));
    EXPECT_THROW(judge(greeting, {"+PONG\r\n", info("noeviction")}), unavailable_error);
    EXPECT_THROW(judge(greeting, {"%1\r\n" + bulk("version") + ":7\r\n", info("noeviction")}),
                 unavailable_error);
}

TEST(handshake, tells_apart_why_a_log_in_failed_and_never_shows_the_password) {
    auto const greeting = with_password();
    auto const refusal = [&](std::string const& text) {
        auto const why = failure<authentication_error>([&] {
            judge(greeting, {"-" + text + "\r\n", "-ERR x\r\n"});
        });
        EXPECT_THAT(why, Not(HasSubstr("s3cr3t")));
        return why;
    };
    EXPECT_THAT(refusal("WRONGPASS invalid s3cr3t"), HasSubstr("WRONGPASS (its text is not shown: the password occurs in it)"));
    EXPECT_THAT(refusal("WRONGPASS invalid pair"), HasSubstr("WRONGPASS invalid pair"));
    EXPECT_THAT(refusal("NOAUTH s3cr3ts3cr3t"), HasSubstr("NOAUTH (its text"));
    EXPECT_THAT(refusal("NOPERM user worker can't run s3cr3t"), HasSubstr("NOPERM"));
    EXPECT_THAT(refusal("ERR AUTH s3cr3t failed"), HasSubstr("refused the log-in: ERR (its text"));
    EXPECT_THAT(failure<authentication_error>([] {
                    judge(handshake{}, {"-NOAUTH x\r\n", "-NOAUTH x\r\n"});
                }),
                HasSubstr("none is configured"));
    EXPECT_THAT(failure<unavailable_error>([&] {
                    judge(greeting, {"-ERR max number of clients for s3cr3t\r\n", "-ERR x\r\n"});
                }),
                AllOf(HasSubstr("refused the log-in"), Not(HasSubstr("s3cr3t"))));
}

// A mask in a sentence that everybody knows shows what is behind it: `***assword` is a p.
TEST(handshake, shows_no_password_by_what_is_missing_from_a_sentence) {
    for (std::string const password : {"p", "s", " ", "pair", "user", "pass", "password", "invalid", "WRONGPASS", "username-password", ".", "a", "A"}) {
        SCOPED_TRACE(password);
        handshake const greeting{.user = "worker", .password = [=] { return password; }, .require_master = true};
        auto const refusal = [&](std::string const& text) {
            return failure<authentication_error>([&] { judge(greeting, {"-" + text + "\r\n", "-ERR x\r\n", "-ERR x\r\n"}); });
        };
        std::string const usual = "WRONGPASS invalid username-password pair or user is disabled.";
        EXPECT_THAT(refusal(usual), HasSubstr(usual)) << "what every client is told shows nothing";
        std::string const rare = "WRONGPASS no pair of a username and a password is invalid, ask A. User";
        auto const told = refusal(rare);
        EXPECT_THAT(told, Not(HasSubstr("***")));
        EXPECT_THAT(told, AnyOf(HasSubstr(rare), HasSubstr("the password occurs in it"))) << "all of it or nothing";
        EXPECT_EQ(rare.find(password) == std::string::npos, told.find(rare) != std::string::npos);
        EXPECT_THAT(failure<unavailable_error>([&] { judge(greeting, {hello("7.0.0"), info("noeviction"), "*1\r\n" + bulk("slave")}); }), HasSubstr("(its role is slave)"));
    }
}

TEST(handshake, refuses_servers_that_evict) {
    auto const before = set_log_hook({});
    for (auto const* const policy : {"allkeys-lru", "allkeys-lfu", "allkeys-random", "volatile-lru", "volatile-lfu",
                                     "volatile-random", "volatile-ttl"}) {
        EXPECT_THAT(failure<unsuitable_server_error>([&] {
                        judge(handshake{}, {hello("7.0.0"), info(policy)});
                    }),
                    AllOf(HasSubstr(policy), HasSubstr("maxmemory-policy noeviction"), HasSubstr("allow_eviction")));
        judge(handshake{.allow_eviction = true}, {hello("7.0.0"), info(policy)});
    }
    judge(handshake{}, {hello("7.0.0"), bulk("# Memory\r\n")});
    judge(handshake{}, {hello("7.0.0"), "-NOPERM no\r\n"});
    EXPECT_THROW(judge(handshake{}, {hello("7.0.0"), "-BUSY a script\r\n"}), unavailable_error);
    set_log_hook(before);
}

TEST(handshake, wants_its_database_and_a_master) {
    handshake const in_three{.database = 3};
    judge(in_three, {hello("7.0.0"), "+OK\r\n", info("noeviction")});
    EXPECT_THAT(failure<unsuitable_server_error>([&] {
                    judge(in_three, {hello("7.0.0"), "-ERR DB index is out of range\r\n", info("noeviction")});
                }),
                HasSubstr("database 3"));
    EXPECT_THROW(judge(in_three, {hello("7.0.0"), "-BUSY x\r\n", "-BUSY x\r\n"}), unavailable_error);
    handshake const of_master{.check_server = false, .require_master = true};
    judge(of_master, {hello("7.0.0"), "*1\r\n" + bulk("master")});
    EXPECT_THAT(failure<unavailable_error>([&] {
                    judge(of_master, {hello("7.0.0"), "*1\r\n" + bulk("slave")});
                }),
                HasSubstr("not a master"));
    EXPECT_THROW(judge(of_master, {hello("7.0.0"), "*0\r\n"}), unavailable_error);
    EXPECT_THROW(judge(of_master, {hello("7.0.0"), "-ERR no\r\n"}), unavailable_error);
}

TEST(handshake, cleans_a_name_for_client_setname) {
    EXPECT_EQ(redis::clean_client_name("my app\n\x7f\xc3\xa9"), "my_app____");
    EXPECT_EQ(redis::clean_client_name("worker-1"), "worker-1");
}

}  // namespace
