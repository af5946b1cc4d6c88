// TLS: who is trusted, who is not and why, and that faults are treated as without it.
#include <lockstep/client.hpp>

#include "support/certificates.hpp"
#include "support/eventually.hpp"
#include "support/failures.hpp"
#include "support/fault_proxy.hpp"
#include "support/file_content.hpp"
#include "support/forms.hpp"
#include "support/log_lines.hpp"
#include "support/port_reservation.hpp"
#include "support/redis_server.hpp"
#include "support/stub_peer.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <thread>

namespace lockstep::test {
namespace {

using namespace std::chrono_literals;
using testing::AllOf;
using testing::AnyOf;
using testing::HasSubstr;

template <class Form>
class transport_tls : public testing::Test {
protected:
    log_lines log;
    certificates files;

    client_options trusting(std::string url, std::string ca) {
        return {.url = std::move(url), .tls = {.ca_file = std::move(ca)}, .connect_timeout = 5s, .reconnect_max = 50ms};
    }
    std::string refusal(client_options const& options) {
        client client{options};
        return failure<unavailable_error>(
            [&] { until_heard([&] { Form::execute(client, request{"PING"}.within(1s)); }); });
    }
};
TYPED_TEST_SUITE(transport_tls, forms, form_names);

TYPED_TEST(transport_tls, carries_requests_and_messages_of_any_size) {
    redis_server server{{.tls = this->files.server(), .password = "secret"}};
    auto options = this->trusting(server.url("default", "secret"), this->files.ca());
    options.command_timeout = 60s;
    client client{options};
    std::string const large(10'000'000, 'x');
    TypeParam::command(client, "SET", "large", large);
    EXPECT_TRUE(TypeParam::template command<std::string>(client, "GET", "large") == large);
    auto commands = pipeline{};
    for (int i = 0; i < 5'000; ++i) commands.add("ECHO", i);
    auto const replies = TypeParam::execute(client, commands);
    for (int i = 0; i < 5'000; ++i) ASSERT_EQ(replies[static_cast<std::size_t>(i)].template as<int>(), i);
    std::atomic<int> heard{0};
    auto const news = TypeParam::subscribe(client, {.channel = "news", .handler = [&](message const&) { ++heard; }});
    server.must({"PUBLISH", "news", large});
    EXPECT_TRUE(eventually([&] { return heard == 1; }));
    EXPECT_EQ(client.statistics().reconnects, 0U);
}

TYPED_TEST(transport_tls, verifies_the_name_as_well_as_the_address) {
    redis_server server{{.tls = this->files.server()}};
    client by_name{this->trusting("rediss://localhost:" + std::to_string(server.port()), this->files.ca())};
    EXPECT_EQ(TypeParam::command(by_name, "PING").text(), "PONG");
    auto other_name = this->trusting(server.url(), this->files.ca());
    other_name.tls.server_name = "localhost";
    client by_option{other_name};
    EXPECT_EQ(TypeParam::command(by_option, "PING").text(), "PONG");
    other_name.tls.server_name = "elsewhere.example";
    EXPECT_THAT(this->refusal(other_name), AllOf(HasSubstr("elsewhere.example"), HasSubstr("not trusted")));
}

TYPED_TEST(transport_tls, refuses_an_expired_certificate) {
    redis_server server{{.tls = this->files.expired_server()}};
    EXPECT_THAT(this->refusal(this->trusting(server.url(), this->files.ca())),
                AllOf(HasSubstr("not trusted"), HasSubstr("expired")));
}

TYPED_TEST(transport_tls, refuses_a_certificate_of_another_host) {
    redis_server server{{.tls = this->files.wrong_host_server()}};
    EXPECT_THAT(this->refusal(this->trusting(server.url(), this->files.ca())),
                AllOf(HasSubstr("not trusted"), HasSubstr("mismatch")));
    EXPECT_THAT(this->refusal(this->trusting("rediss://localhost:" + std::to_string(server.port()), this->files.ca())),
                AllOf(HasSubstr("not trusted"), HasSubstr("mismatch")));
}

TYPED_TEST(transport_tls, refuses_a_certificate_that_names_the_host_in_its_common_name_only) {
    redis_server server{{.tls = this->files.nameless_server()}};
    auto const options = this->trusting("rediss://localhost:" + std::to_string(server.port()), this->files.ca());
    EXPECT_THAT(this->refusal(options), AllOf(HasSubstr("localhost"), HasSubstr("not trusted"), HasSubstr("mismatch")));
}

TYPED_TEST(transport_tls, refuses_an_authority_that_it_does_not_know) {
    redis_server server{{.tls = this->files.server()}};
    EXPECT_THAT(this->refusal(this->trusting(server.url(), this->files.other_ca())), HasSubstr("not trusted"));
    EXPECT_THAT(this->refusal(this->trusting(server.url(), "")), HasSubstr("not trusted")) << "nor does the system";
}

TYPED_TEST(transport_tls, shows_its_own_certificate_where_one_is_asked_for) {
    redis_server server{{.tls = this->files.server(), .require_client_certificate = true}};
    auto options = this->trusting(server.url(), this->files.ca());
    EXPECT_THAT(this->refusal(options),
                AnyOf(HasSubstr("certificate required"), HasSubstr("alert"), HasSubstr("closed"), HasSubstr("reset")));
    options.tls.certificate_file = this->files.client().certificate;
    options.tls.key_file = this->files.client().key;
    client client{options};
    EXPECT_EQ(TypeParam::command(client, "PING").text(), "PONG");
}

TYPED_TEST(transport_tls, refuses_files_that_do_not_fit_together) {
    auto const refused = [&](tls_options tls) {
        return failure<invalid_argument_error>([&] { client const never{{.url = "rediss://localhost", .tls = tls}}; });
    };
    auto const mine = this->files.client();
    EXPECT_THAT(refused({.certificate_file = mine.certificate}), HasSubstr("key"));
    EXPECT_THAT(refused({.certificate_file = mine.certificate, .key_file = this->files.server().key}),
                HasSubstr("key_file"));
    EXPECT_THAT(refused({.ca_file = mine.key}), HasSubstr(mine.key));
    EXPECT_THAT(refused({.ca_file = "/dev/null"}), AllOf(HasSubstr("ca_file"), HasSubstr("not a regular file")));
    EXPECT_THAT(refused({.certificate_file = mine.certificate, .key_file = mine.key + "-"}), AllOf(HasSubstr("key_file"), HasSubstr("No such file")));
}

TYPED_TEST(transport_tls, refuses_an_encrypted_key_without_asking_for_its_pass_phrase) {
    auto const encrypted = this->files.client_with_encrypted_key();
    auto const text = failure<invalid_argument_error>(
        [&] { client const never{{.url = "rediss://localhost", .tls = {.certificate_file = encrypted.certificate, .key_file = encrypted.key}}}; });
    EXPECT_THAT(text, AllOf(HasSubstr("key_file"), HasSubstr(encrypted.key), HasSubstr("encrypted"), HasSubstr("openssl pkey")));
}

TYPED_TEST(transport_tls, reads_certificates_again_when_it_reconnects) {
    redis_server server{{.tls = this->files.server(), .require_client_certificate = true}};
    auto options = this->trusting(server.url(), this->files.ca());
    options.tls.certificate_file = this->files.client().certificate;
    options.tls.key_file = this->files.client().key;
    client client{options};
    EXPECT_EQ(TypeParam::command(client, "PING").text(), "PONG");
    this->files.rotate();
    server.restart();
    EXPECT_EQ(TypeParam::execute(client, request{"PING"}.repeatable().within(20s)).text(), "PONG");
    EXPECT_EQ(client.statistics().connects, 2U);
}

TYPED_TEST(transport_tls, says_which_replaced_file_is_of_no_use_and_goes_on_when_it_was_repaired) {
    redis_server server{{.tls = this->files.server()}};
    auto options = this->trusting(server.url(), this->files.ca());
    client client{options};
    EXPECT_EQ(TypeParam::command(client, "PING").text(), "PONG");
    auto const sound = file_content(this->files.ca());
    std::ofstream{this->files.ca()} << "not a certificate\n";
    server.must({"CLIENT", "KILL", "TYPE", "normal"});
    ASSERT_TRUE(eventually([&] { return client.statistics().connections == 0; }));
    auto const refusal = [&] {
        return failure<unavailable_error>([&] { until_heard([&] { TypeParam::execute(client, request{"PING"}.within(500ms)); }); });
    };
    EXPECT_THAT(refusal(), AllOf(HasSubstr("ca_file"), HasSubstr(this->files.ca()), HasSubstr("can't be used")));
    EXPECT_EQ(this->log.count(log_level::warning, "can't be used"), 1U) << "once, not with each attempt";
    std::filesystem::remove(this->files.ca());
    EXPECT_TRUE(eventually([&] { return refusal().find("can't be opened: No such file") != std::string::npos; }));
    std::ofstream{this->files.ca()} << sound;
    EXPECT_EQ(TypeParam::execute(client, request{"PING"}.within(20s)).text(), "PONG");
}

TYPED_TEST(transport_tls, finds_its_files_again_from_another_working_directory) {
    redis_server server{{.tls = this->files.server()}};
    auto const before = std::filesystem::current_path();
    std::filesystem::current_path(std::filesystem::path{this->files.ca()}.parent_path());
    client client{this->trusting(server.url(), "ca.crt")};
    std::filesystem::current_path(before);
    EXPECT_EQ(TypeParam::command(client, "PING").text(), "PONG");
    this->files.rotate();
    server.restart();
    EXPECT_EQ(TypeParam::execute(client, request{"PING"}.repeatable().within(20s)).text(), "PONG");
}

TYPED_TEST(transport_tls, warns_once_of_a_key_that_other_users_can_read) {
    redis_server server{{.tls = this->files.server()}};
    auto options = this->trusting(server.url(), this->files.ca());
    options.tls.certificate_file = this->files.client().certificate;
    options.tls.key_file = this->files.client().key;
    client const silent{options};
    EXPECT_EQ(this->log.count("security:"), 0U);
    std::filesystem::permissions(options.tls.key_file, std::filesystem::perms{0640});
    client const first{options};
    client const second{options};
    EXPECT_EQ(this->log.count(log_level::warning, options.tls.key_file + " can be read by other users (mode 0640)"), 1U);
}

TYPED_TEST(transport_tls, warns_when_verification_is_turned_off) {
    redis_server server{{.tls = this->files.expired_server()}};
    client_options const careless{.url = server.url(), .tls = {.dangerously_accept_any_certificate = true}};
    client client{careless};
    EXPECT_EQ(TypeParam::command(client, "PING").text(), "PONG");
    EXPECT_EQ(this->log.count(log_level::warning, "dangerously_accept_any_certificate"), 1U);
}

TYPED_TEST(transport_tls, does_not_speak_tls_to_a_plain_server_nor_the_other_way_round) {
    redis_server plain{{.tcp = true}};
    auto wrong = this->trusting("rediss://127.0.0.1:" + std::to_string(plain.port()), this->files.ca());
    wrong.connect_timeout = 200ms;
    EXPECT_THAT(this->refusal(wrong), HasSubstr("tls"));
    redis_server secure{{.tls = this->files.server()}};
    EXPECT_THAT(this->refusal({.url = "redis://127.0.0.1:" + std::to_string(secure.port()), .connect_timeout = 200ms}),
                HasSubstr("127.0.0.1"));
    stub_peer silent{""};
    auto hanging = this->trusting("rediss" + silent.url().substr(5), this->files.ca());
    hanging.connect_timeout = 300ms;
    EXPECT_THAT(this->refusal(hanging), AnyOf(HasSubstr("in time"), HasSubstr("within 300 ms")));  // the handshake, or on a busy machine all of it
}

TYPED_TEST(transport_tls, survives_cuts_lost_replies_and_corrupt_records) {
    redis_server server{{.tls = this->files.server()}};
    fault_proxy proxy{server.address()};
    auto options = this->trusting(proxy.url(), this->files.ca());
    options.command_timeout = 30s;
    client client{options};
    TypeParam::command(client, "PING");
    proxy.drop_replies(1);
    EXPECT_THROW(TypeParam::command(client, "INCR", "key"), indeterminate_error);
    EXPECT_TRUE(eventually([&] { return client.statistics().connects == 2; }));
    proxy.drop_replies(1);
    EXPECT_EQ(TypeParam::template execute<int>(client, request{"INCR", "key"}.repeatable()), 3);
    EXPECT_EQ(proxy.counters().struck, 2U);
    proxy.corrupt();
    EXPECT_EQ(TypeParam::template execute<int>(client, request{"INCR", "key"}.repeatable()), 5);
    proxy.cut();
    EXPECT_TRUE(
        eventually([&] { return client.statistics().reconnects == 4 && client.statistics().connections == 1; }));
    EXPECT_EQ(TypeParam::template command<int>(client, "GET", "key"), 5);
}

// The peer resets each connection as soon as it has it: sometimes before the handshake's first byte is sent.
TYPED_TEST(transport_tls, gives_up_a_handshake_at_once_when_the_connection_is_reset) {
    port_reservation const port;
    auto const listener = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    address.sin_port = htons(static_cast<std::uint16_t>(port.port()));
    int const on = 1;
    ::setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    ASSERT_TRUE(eventually([&] { return ::bind(listener, reinterpret_cast<sockaddr const*>(&address), sizeof address) == 0; }));
    ASSERT_EQ(::listen(listener, 64), 0);
    std::atomic<int> reset{0};
    std::thread peer{[&] {
        for (int accepted = -1; (accepted = ::accept4(listener, nullptr, nullptr, SOCK_CLOEXEC)) >= 0; ++reset) {
            linger const none{.l_onoff = 1, .l_linger = 0};
            ::setsockopt(accepted, SOL_SOCKET, SO_LINGER, &none, sizeof none);
            ::close(accepted);
        }
    }};
    {
        client client{{.url = "rediss://127.0.0.1:" + std::to_string(port.port()),
                       .tls = {.ca_file = this->files.ca()},
                       .connect_timeout = 120s,
                       .reconnect_min = 1ms,
                       .reconnect_max = 1ms}};
        start(client.async_command("PING"), [](std::exception_ptr, auto&&) {});
        EXPECT_TRUE(eventually([&] { return reset >= 500; }, 60s)) << reset << ": an attempt waits for its time to be up";
    }
    ::shutdown(listener, SHUT_RDWR);
    peer.join();
    ::close(listener);
}

}  // namespace
}  // namespace lockstep::test
