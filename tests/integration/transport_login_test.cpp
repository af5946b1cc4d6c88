// Logging in: addresses, users and passwords, the check of the server, and that no secret is ever shown.
#include <lockstep/client.hpp>

#include "support/eventually.hpp"
#include "support/failures.hpp"
#include "support/forms.hpp"
#include "support/log_lines.hpp"
#include "support/redis_server.hpp"
#include "support/scratch_dir.hpp"
#include "support/stub_peer.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <arpa/inet.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

namespace lockstep::test {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;
using testing::Not;

constexpr auto const* secret = "s3cr3t-pa55word";

template <class Form>
class transport_login : public testing::Test {
protected:
    log_lines log;
    std::vector<std::string> shown;  // texts that a user might see

    // The text of the error of a first command.
    template <class Error>
    std::string refusal(client_options options) {
        if (options.command_timeout == client_options{}.command_timeout) options.command_timeout = 5s;
        client client{options};
        shown.push_back(client.description());
        shown.push_back(failure<Error>([&] { Form::command(client, "PING"); }));
        return shown.back();
    }

    void TearDown() override {
        EXPECT_THAT(log.text(), Not(HasSubstr(secret)));
        for (auto const& text : shown) EXPECT_THAT(text, Not(HasSubstr(secret)));
    }
};
TYPED_TEST_SUITE(transport_login, forms, form_names);

TYPED_TEST(transport_login, reaches_a_server_by_unix_socket_by_tcp_and_by_name) {
    redis_server server{{.tcp = true, .password = secret}};
    auto const port = std::to_string(server.port());
    auto const login = std::string{"default:"} + secret + "@";
    for (auto const& url : {"unix://" + login + server.socket_path(), "redis://" + login + "127.0.0.1:" + port,
                            "redis://:" + std::string{secret} + "@localhost:" + port}) {
        client client{url};
        EXPECT_EQ(TypeParam::command(client, "PING").text(), "PONG") << redact_url(url);
        this->shown.push_back(client.description());
    }
    client by_option{{.url = server.url(), .password = secret}};
    EXPECT_EQ(TypeParam::command(by_option, "PING").text(), "PONG");
}

bool has_ipv6_loopback() {
    auto const probe = ::socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (probe < 0) return false;
    sockaddr_in6 address{};
    address.sin6_family = AF_INET6;
    address.sin6_addr = in6addr_loopback;
    bool const bound = ::bind(probe, reinterpret_cast<sockaddr const*>(&address), sizeof address) == 0;
    ::close(probe);
    return bound;
}

TYPED_TEST(transport_login, reaches_a_server_by_ipv6) {
    if (!has_ipv6_loopback()) GTEST_SKIP() << "this machine has no ::1";
    redis_server server{{.tcp = true, .config = {"bind 127.0.0.1 ::1"}}};
    client client{"redis://[::1]:" + std::to_string(server.port())};
    EXPECT_EQ(TypeParam::command(client, "PING").text(), "PONG");
    EXPECT_THAT(client.description(), HasSubstr("[::1]:"));
}

TYPED_TEST(transport_login, fails_clearly_when_the_name_can_not_be_resolved) {
    EXPECT_THAT(this->template refusal<unavailable_error>({.url = "redis://nowhere.invalid", .command_timeout = 500ms}),
                HasSubstr("nowhere.invalid"));
}

TYPED_TEST(transport_login, refuses_a_wrong_password_at_once) {
    redis_server server{{.password = "right"}};
    auto const began = now_ms();
    EXPECT_THAT(this->template refusal<authentication_error>({.url = server.url(), .password = secret}),
                HasSubstr("WRONGPASS"));
    EXPECT_LT(now_ms() - began, 4'000) << "not after the time of the command: trying again would not help";
    EXPECT_THAT(this->template refusal<authentication_error>({.url = server.url("default", secret)}),
                HasSubstr("WRONGPASS"));
    EXPECT_THAT(this->template refusal<authentication_error>({.url = server.url()}), HasSubstr("asks for a password"));
    EXPECT_EQ(this->log.count(log_level::error, "password"), 3U);
}

TYPED_TEST(transport_login, refuses_users_that_may_not_log_in) {
    redis_server server{{.users = {std::string{"off off >"} + secret + " ~* &* +@all",
                                   std::string{"mute on >"} + secret + " ~* &* +@all -hello",
                                   std::string{"narrow on >"} + secret + " ~mine:* &* +@all -flushall"}}};
    EXPECT_THAT(this->template refusal<authentication_error>({.url = server.url("nobody", secret)}),
                HasSubstr("WRONGPASS"));
    EXPECT_THAT(this->template refusal<authentication_error>({.url = server.url("off", secret)}),
                HasSubstr("WRONGPASS"));
    client narrow{server.url("narrow", secret)};
    TypeParam::command(narrow, "SET", "mine:key", 1);
    EXPECT_THAT(failure<server_error>([&] { TypeParam::command(narrow, "SET", "yours:key", 1); }), HasSubstr("NOPERM"));
    EXPECT_THAT(failure<server_error>([&] { TypeParam::command(narrow, "FLUSHALL"); }), HasSubstr("NOPERM"));
    EXPECT_EQ(TypeParam::template command<std::string>(narrow, "ACL", "WHOAMI"), "narrow") << "and nobody else";
}

TYPED_TEST(transport_login, is_the_user_it_was_told_to_be_also_without_a_password) {
    redis_server server{{.users = {"guest on nopass ~* &* +@all", std::string{"locked on >"} + secret + " ~* &* +@all"}}};
    client guest{{.url = server.url(), .user = "guest"}};
    EXPECT_EQ(TypeParam::template command<std::string>(guest, "ACL", "WHOAMI"), "guest");
    EXPECT_THAT(this->template refusal<authentication_error>({.url = server.url(), .user = "locked"}), HasSubstr("WRONGPASS"));
}

TYPED_TEST(transport_login, works_with_a_password_that_the_server_says_too) {
    for (std::string const password : {"7", "no", "o", "master"}) {
        redis_server server{{.password = password}};
        client client{{.url = server.url(), .password = password, .command_timeout = 5s}};
        EXPECT_EQ(TypeParam::command(client, "PING").text(), "PONG") << password;
    }
}

TYPED_TEST(transport_login, goes_on_without_the_check_when_the_user_may_not_ask) {
    redis_server server{{.users = {std::string{"narrow on >"} + secret + " ~* &* +@all -info"}}};
    client client{server.url("narrow", secret)};
    EXPECT_EQ(TypeParam::command(client, "PING").text(), "PONG");
    EXPECT_EQ(this->log.count(log_level::warning, "could not be checked"), 1U);
}

TYPED_TEST(transport_login, recovers_when_the_server_takes_the_password_again) {
    redis_server server{{.password = "right"}};
    client client{{.url = server.url(), .password = secret, .command_timeout = 5s, .reconnect_max = 20ms}};
    EXPECT_THROW(TypeParam::command(client, "PING"), authentication_error);
    EXPECT_THROW(TypeParam::command(client, "PING"), authentication_error);
    server.must({"CONFIG", "SET", "requirepass", secret});
    EXPECT_TRUE(eventually([&] { return !outcome([&] { TypeParam::command(client, "PING"); }); }));
}

TYPED_TEST(transport_login, ends_what_waits_when_the_password_is_wrong_after_a_reconnect) {
    redis_server server{{.password = secret}};
    client client{{.url = server.url(), .password = secret}};
    TypeParam::command(client, "PING");
    server.must({"CONFIG", "SET", "requirepass", "other"});
    server.must({"CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"});
    EXPECT_TRUE(eventually([&] { return client.statistics().connections == 0; }));
    EXPECT_THAT(failure<authentication_error>([&] { TypeParam::command(client, "PING"); }), HasSubstr("WRONGPASS"));
}

TYPED_TEST(transport_login, reads_the_password_file_at_each_connect) {
    scratch_dir directory;
    auto const write = [&](std::string const& password) {
        std::ofstream{directory.file("password")} << password << "\n";
    };
    write(secret);
    redis_server server{{.password = secret}};
    client client{{.url = server.url(), .password_file = directory.file("password"), .reconnect_max = 20ms}};
    EXPECT_EQ(TypeParam::command(client, "PING").text(), "PONG");
    auto const changed = std::string{secret} + "-2";
    write(changed);
    server.must({"CONFIG", "SET", "requirepass", changed});
    server.must({"CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"});
    EXPECT_TRUE(eventually([&] { return client.statistics().connects == 2; }));
    EXPECT_EQ(TypeParam::command(client, "PING").text(), "PONG");

    std::filesystem::remove(directory.file("password"));
    server.must({"CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"});
    EXPECT_TRUE(eventually([&] { return client.statistics().connections == 0; }));
    EXPECT_THAT(failure<invalid_argument_error>([&] { TypeParam::command(client, "PING"); }),
                HasSubstr(directory.file("password")));
    write(changed);
    EXPECT_TRUE(eventually([&] { return !outcome([&] { TypeParam::command(client, "PING"); }); }));
}

// Also not when the other side throws it back at us.
TYPED_TEST(transport_login, shows_no_secret_whatever_the_peer_answers) {
    std::string const word = secret;
    auto const bulk = [](std::string const& text) {
        return "$" + std::to_string(text.size()) + "\r\n" + text + "\r\n";
    };
    std::vector<std::string> const answers{
        "-ERR unknown command `HELLO`, with args beginning with: `3` `AUTH` `default` `" + word + "`\r\n-ERR x\r\n",
        "-WRONGPASS no such thing as " + word + "\r\n-ERR x\r\n",
        "-NOAUTH " + word + "\r\n-ERR x\r\n",
        "-NOPERM " + word + " and " + word + "\r\n-ERR x\r\n",
        "-ERR AUTH " + word + " failed\r\n-ERR x\r\n",
        "-ERR what is " + word + "\r\n-ERR x\r\n",
        "*7\r\n" + bulk("HELLO") + bulk("3") + bulk("AUTH") + bulk("default") + bulk(word) + bulk("SETNAME") +
            bulk("x") + "*2\r\n" + bulk("INFO") + bulk("memory"),
        "%1\r\n$7\r\nversion\r\n" + bulk(word) + "-ERR x\r\n",
        "%1\r\n$7\r\nversion\r\n$1\r\n7\r\n-ERR " + word + "\r\n",
        "%1\r\n$7\r\nversion\r\n$1\r\n7\r\n" + bulk("x\nmaxmemory_policy:" + word + "\r\n"),
        word + "\r\n",
        "$" + word + "\r\n",
        ":" + word + "\r\n",
        "(" + word + "\r\n",
        "," + word + "\r\n",
        "#" + word + "\r\n",
    };
    for (auto const& answer : answers) {
        SCOPED_TRACE(answer);
        stub_peer peer{answer, true};
        client client{{.url = peer.url(), .password = secret, .connect_timeout = 100ms, .reconnect_max = 20ms}};
        try {
            TypeParam::execute(client, request{"PING"}.within(150ms));
            ADD_FAILURE() << "no error";
        } catch (error const& problem) {
            EXPECT_THAT(problem.what(), Not(HasSubstr(word)));
        }
        EXPECT_GE(peer.accepted(), 1);
    }
}

TYPED_TEST(transport_login, shows_no_secret_of_a_url_that_it_can_not_use) {
    auto const word = std::string{secret};
    for (auto const& url :
         {"redis://user:" + word, "redis://user:" + word + "@", "redis://user:" + word + "@host:port", word,
          "redis://host?password=" + word, "rediss://:" + word + "@host:1/x", "redis:/" + word + "@host"}) {
        this->shown.push_back(failure<invalid_argument_error>([&] { client const never{url}; }));
    }
}

TYPED_TEST(transport_login, refuses_a_server_that_evicts_unless_told_to_go_on) {
    redis_server server{{.config = {"maxmemory-policy volatile-ttl"}}};
    auto const why = this->template refusal<unsuitable_server_error>({.url = server.url()});
    EXPECT_THAT(why, HasSubstr("volatile-ttl"));
    EXPECT_THAT(why, HasSubstr("maxmemory-policy noeviction"));
    EXPECT_THAT(why, HasSubstr("allow_eviction"));
    EXPECT_EQ(this->log.count(log_level::warning, "evict"), 0U);
    client bold{{.url = server.url(), .allow_eviction = true}};
    EXPECT_EQ(TypeParam::command(bold, "PING").text(), "PONG");
    EXPECT_EQ(this->log.count(log_level::warning, "volatile-ttl"), 1U);
}

TYPED_TEST(transport_login, refuses_a_long_answer_to_a_greeting_before_its_bytes_have_come) {
    for (auto const& answer : {std::string{"$536870912\r\n"}, std::string{"*4000000\r\n"}, "+" + std::string(70'000, 'x')}) {
        stub_peer stranger{answer};
        auto const text = this->template refusal<unavailable_error>({.url = stranger.url(), .connect_timeout = 2s, .command_timeout = 2s});
        EXPECT_THAT(text, testing::AllOf(HasSubstr("more than is allowed"), HasSubstr("over the limit of"))) << answer.substr(0, 20);
        EXPECT_THAT(text, testing::AnyOf(HasSubstr("65536"), HasSubstr("4096"))) << answer.substr(0, 20);
    }
}

}  // namespace
}  // namespace lockstep::test
