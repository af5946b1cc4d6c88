// Logging in and out over plain sockets and TLS, what guessing costs, and idle sockets.
#include "server_fixture.hpp"
#include "support/byte_stream.hpp"
#include "support/certificates.hpp"
#include "support/eventually.hpp"

#include <lockstep/error.hpp>

#include <gmock/gmock.h>
#include <openssl/pem.h>

#include <algorithm>
#include <array>
#include <memory>
#include <vector>

namespace lockstep::test {
namespace {

using std::chrono::steady_clock;
using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::StartsWith;

// The same key, with a pass phrase.
std::string encrypted_copy(std::string const& key_file, scratch_dir const& folder) {
    auto const path = folder.file("encrypted.key");
    std::unique_ptr<BIO, decltype(&BIO_free)> const in{BIO_new_file(key_file.c_str(), "r"), BIO_free};
    std::unique_ptr<EVP_PKEY, decltype(&EVP_PKEY_free)> const key{PEM_read_bio_PrivateKey(in.get(), nullptr, nullptr, nullptr), EVP_PKEY_free};
    std::unique_ptr<BIO, decltype(&BIO_free)> const out{BIO_new_file(path.c_str(), "w"), BIO_free};
    char phrase[] = "a pass phrase";
    EXPECT_EQ(PEM_write_bio_PrivateKey(out.get(), key.get(), EVP_aes_128_cbc(), nullptr, 0, nullptr, phrase), 1);
    return path;
}

// A whole answer, until the connection ends.
std::string get_over(endpoint const& there, std::string const& path) {
    auto const peer = open_stream(there, std::chrono::seconds{10});
    peer->write_all("GET " + path + " HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
    std::string received;
    std::array<char, 4'096> room{};
    while (auto const n = peer->read_some(room.data(), room.size())) received.append(room.data(), n);
    return received;
}

struct dashboard_access : dashboard_server {
    // What it says when it refuses to start.
    std::string refusal_of(dashboard::server_options options) {
        try {
            start(std::move(options));
        } catch (invalid_argument_error const& refused) {
            return refused.what();
        }
        ADD_FAILURE() << "it started";
        return {};
    }
    static std::string code_in(std::string const& link) { return link.substr(link.find("#code=") + 6); }
    http_answer redeem(std::string const& code) { return post(port(), "/api/login/code", json::serialize(json::object{{"code", code}})); }
    http_answer try_token(std::string const& guess) { return post(port(), "/api/login", json::serialize(json::object{{"token", guess}})); }
};

TEST_F(dashboard_access, does_not_start_where_others_could_do_what_only_its_user_should) {
    EXPECT_THAT(refusal_of({.address = "0.0.0.0"}), HasSubstr("needs a token"));
    EXPECT_THAT(refusal_of({.allow_actions = true}), HasSubstr("--allow-actions"));
    EXPECT_THAT(refusal_of({.metrics_token = token}), HasSubstr("--metrics-token-file"));
    EXPECT_THAT(refusal_of({.token = "short"}), HasSubstr("at least 16"));
    EXPECT_THAT(refusal_of({.token = "aaaaaaaaaaaaaaaa"}), AllOf(HasSubstr("guessed"), HasSubstr("openssl rand"), Not(HasSubstr("aaaa"))));
    EXPECT_THAT(refusal_of({.token = token, .metrics_token = token}), HasSubstr("one of its own"));
    EXPECT_THAT(refusal_of({.token = token, .metrics_token = "aaaaaaaaaaaaaaaa"}), HasSubstr("/metrics"));
    EXPECT_THAT(refusal_of({.address = "not an address"}), HasSubstr("IP address"));
    EXPECT_NO_THROW(start({.address = "0.0.0.0", .token = token}));
}

TEST_F(dashboard_access, warns_when_what_it_shows_can_be_read_on_the_way) {
    EXPECT_THAT(start({.token = token}).warnings(), IsEmpty());
    page.reset();
    EXPECT_THAT(start({.address = "0.0.0.0", .token = token}).warnings(), testing::ElementsAre(AllOf(HasSubstr("without TLS"), HasSubstr("0.0.0.0"))));
    certificates const made;
    page.reset();
    auto const files = made.server();
    EXPECT_THAT(start({.address = "0.0.0.0", .token = token, .certificate_file = files.certificate, .key_file = files.key}).warnings(), IsEmpty());
}

TEST_F(dashboard_access, shows_nothing_to_whoever_has_no_token) {
    start({.token = token});
    for (auto const* path : {"/api/snapshot", "/api/stream", "/api/why?name=x", "/api/history", "/api/statistics",
                             "/api/audit", "/api/health", "/api/samples", "/metrics"})
        EXPECT_EQ(get(port(), path).status, 401) << path;
    EXPECT_EQ(get(port(), "/").status, page_status) << "the page itself, which has nothing in it";
    auto const unknown = session();
    EXPECT_FALSE(unknown.at("known").as_bool());
    EXPECT_FALSE(unknown.as_object().contains("server"));
    EXPECT_EQ(get(port(), "/api/snapshot", bearer_line).status, 200);
    EXPECT_EQ(get(port(), "/api/snapshot?token=" + std::string{token}).status, 401) << "addresses end up in logs";
}

TEST_F(dashboard_access, lets_in_whoever_logs_in_and_sets_no_cookie) {
    start({.token = token});
    EXPECT_EQ(try_token("wrong").status, 401);
    EXPECT_EQ(post(port(), "/api/login", "nonsense").status, 400);
    EXPECT_EQ(post(port(), "/api/login", json::serialize(json::object{{"token", token}}), "Origin: http://evil.example\r\n").status, 403);
    auto const in = try_token(token);
    ASSERT_EQ(in.status, 200);
    EXPECT_EQ(in.header("Set-Cookie"), "") << "a browser would send it to every port of this host";
    EXPECT_THAT(in.body, Not(HasSubstr(token)));
    auto const mine = session_line(in);
    EXPECT_EQ(get(port(), "/api/snapshot", mine).status, 200);
    EXPECT_TRUE(session(mine).at("known").as_bool());
    auto const id = mine.substr(mine.find(": ") + 2);
    EXPECT_EQ(get(port(), "/api/snapshot", "Cookie: lockstep_" + std::to_string(port()) + "=" + id).status, 401);
}

TEST_F(dashboard_access, lets_in_by_a_link_once) {
    auto const link = start({.token = token}).login_link(1min);
    EXPECT_THAT(link, AllOf(StartsWith("http://127.0.0.1:" + std::to_string(port()) + "/#code="), Not(HasSubstr(token))));
    auto const in = redeem(code_in(link));
    ASSERT_EQ(in.status, 200);
    EXPECT_EQ(get(port(), "/api/snapshot", session_line(in)).status, 200);
    auto const again = redeem(code_in(link));
    EXPECT_EQ(again.status, 401);
    EXPECT_THAT(again.body, HasSubstr("used before"));
    EXPECT_EQ(redeem(code_in(page->login_link(0ms))).status, 401) << "too old";
    EXPECT_EQ(redeem("").status, 401);
    EXPECT_EQ(post(port(), "/api/login/code", "nonsense").status, 400);
    page.reset();
    EXPECT_THAT(start().login_link(1min), Not(HasSubstr("#"))) << "everybody may look";
}

TEST_F(dashboard_access, gives_a_link_that_a_browser_can_open_when_it_listens_on_all_addresses) {
    EXPECT_THAT(start({.address = "0.0.0.0", .token = token}).login_link(1min), StartsWith("http://127.0.0.1:"));
}

TEST_F(dashboard_access, ends_the_stream_of_whoever_logs_out_and_forgets_it_after_a_restart) {
    start({.token = token});
    auto const mine = log_in();
    http_client page_of{port()};
    page_of.send("GET /api/stream HTTP/1.1\r\nHost: localhost\r\n" + mine + "\r\n");
    ASSERT_TRUE(page_of.read_until("event: state"));
    auto const other = log_in();
    EXPECT_EQ(post(port(), "/api/logout", "{}", mine).status, 200);
    EXPECT_EQ(get(port(), "/api/snapshot", mine).status, 401);
    EXPECT_TRUE(page_of.closed(20s));
    EXPECT_EQ(get(port(), "/api/snapshot", other).status, 200);
    page.reset();
    start({.token = token});
    EXPECT_EQ(get(port(), "/api/snapshot", mine).status, 401);
    EXPECT_EQ(get(port(), "/api/snapshot", other).status, 401);
}

TEST_F(dashboard_access, gives_metrics_to_whoever_has_the_token_for_them_and_nothing_else) {
    start({.token = token, .metrics_token = "another-token-for-metrics"});
    std::string const scraper = "Authorization: Bearer another-token-for-metrics\r\n";
    EXPECT_EQ(get(port(), "/metrics").status, 401);
    EXPECT_EQ(get(port(), "/metrics", scraper).status, 200);
    EXPECT_EQ(get(port(), "/metrics", bearer_line).status, 200);
    EXPECT_EQ(get(port(), "/api/snapshot", scraper).status, 401);
    EXPECT_EQ(try_token("another-token-for-metrics").status, 401);
}

TEST_F(dashboard_access, answers_probes_without_a_token) {
    start({.token = token});
    EXPECT_EQ(get(port(), "/healthz").status, 200);
}

// ---- guessing ----

TEST_F(dashboard_access, delays_answers_to_those_who_guess_the_right_one_too) {
    start({.token = token, .delays = {.first = 100ms, .longest = 100ms}});
    for (int i = 0; i < 7; ++i) EXPECT_EQ(try_token("wrong").status, 401);
    auto const took = [&](std::string const& guess, int status) {
        auto const begin = steady_clock::now();
        EXPECT_EQ(try_token(guess).status, status);
        return steady_clock::now() - begin;
    };
    EXPECT_GE(took("wrong", 401), 100ms);
    EXPECT_GE(took(token, 200), 100ms) << "so nobody hears sooner that it was right";
    auto const begin = steady_clock::now();
    EXPECT_EQ(get(port(), "/api/snapshot", bearer_line).status, 200);
    EXPECT_GE(steady_clock::now() - begin, 100ms) << "by the other way neither";
    EXPECT_EQ(redeem(code_in(page->login_link(1min))).status, 200) << "the link is not guessed";
}

TEST_F(dashboard_access, does_not_shut_out_others_while_somebody_guesses) {
    start({.token = token});
    auto const mine = log_in();
    std::vector<std::unique_ptr<http_client>> guessing;
    for (int i = 0; i < 400; ++i) {
        guessing.push_back(std::make_unique<http_client>(port()));
        guessing.back()->send("GET /api/snapshot HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer wrong\r\n\r\n");
    }
    for (int i = 0; i < 5; ++i) {
        EXPECT_EQ(get(port(), "/api/snapshot", mine).status, 200);
        EXPECT_EQ(get(port(), "/").status, page_status);
    }
}

TEST_F(dashboard_access, answers_the_right_token_while_its_delay_lasts_and_others_connect) {
    start({.token = token, .delays = {.first = 1s, .longest = 1s}});
    for (int i = 0; i < 7; ++i) EXPECT_EQ(try_token("wrong").status, 401);
    for (int round = 0; round < 4; ++round) {
        http_client right{port()};
        right.send("GET /api/snapshot HTTP/1.1\r\nHost: localhost\r\n" + bearer_line + "\r\n");
        std::vector<std::unique_ptr<http_client>> others;
        for (int i = 0; i < 40; ++i) {
            others.push_back(std::make_unique<http_client>(port()));
            others.back()->send("G");
        }
        EXPECT_EQ(right.read().status, 200) << round;
    }
}

TEST_F(dashboard_access, tells_whoever_is_one_too_many_of_those_that_wait_to_try_again) {
    start({.token = token, .delays = {.first = 1min, .longest = 1min}});
    for (int i = 0; i < 6; ++i) EXPECT_EQ(try_token("wrong").status, 401);
    std::vector<std::unique_ptr<http_client>> guessing;
    for (int i = 0; i < 12; ++i) {
        guessing.push_back(std::make_unique<http_client>(port()));
        guessing.back()->send("GET /api/snapshot HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer wrong\r\n\r\n");
    }
    auto const told = [&] {
        return std::count_if(guessing.begin(), guessing.end(), [](auto const& one) { return one->read_until("429 Too Many Requests", 10ms); });
    };
    EXPECT_TRUE(eventually([&] { return told() == 8; })) << "four wait for their answer";
    EXPECT_EQ(redeem(code_in(page->login_link(1min))).status, 200);
}

// ---- sockets that say nothing ----

TEST_F(dashboard_access, answers_although_one_client_holds_more_idle_sockets_than_there_are_places) {
    for (auto const* wanted : {"", token}) {
        start({.token = wanted, .max_connections = 64, .first_byte_timeout = 1min});
        std::vector<std::unique_ptr<http_client>> idle;
        for (int i = 0; i < 320; ++i) idle.push_back(std::make_unique<http_client>(port()));
        for (int i = 0; i < 20; ++i) EXPECT_EQ(get(port(), "/api/session").status, 200) << i;
        EXPECT_TRUE(idle.front()->closed(5s)) << "the oldest made room";
        page.reset();
    }
}

TEST_F(dashboard_access, drops_no_page_that_follows_for_idle_sockets) {
    for (auto const* wanted : {"", token}) {
        start({.token = wanted, .max_connections = 64, .first_byte_timeout = 1min});
        http_client page_of{port()};
        page_of.send("GET /api/stream HTTP/1.1\r\nHost: localhost\r\n" + bearer_line + "\r\n");
        ASSERT_TRUE(page_of.read_until("event: state"));
        std::vector<std::unique_ptr<http_client>> idle;
        for (int i = 0; i < 320; ++i) idle.push_back(std::make_unique<http_client>(port()));
        EXPECT_TRUE(page_of.read_until("event: beat", 20s));
        page.reset();
    }
}

TEST_F(dashboard_access, drops_whoever_connects_and_says_nothing) {
    start({.first_byte_timeout = 300ms, .request_timeout = 1min});
    http_client slow{port()};
    slow.send("GET /api/session HTTP/1.1\r\n");
    http_client silent{port()};
    EXPECT_TRUE(silent.closed(5s));
    slow.send("Host: localhost\r\n\r\n");
    EXPECT_EQ(slow.read().status, 200) << "this one had begun, before the silent one came";
}

// ---- TLS ----

TEST_F(dashboard_access, says_what_is_wrong_with_certificates_and_keys) {
    certificates const made;
    auto const files = made.server();
    auto const other = made.expired_server();
    scratch_dir const folder;
    auto const encrypted = encrypted_copy(files.key, folder);
    EXPECT_THAT(refusal_of({.certificate_file = files.certificate}), HasSubstr("--tls-key"));
    EXPECT_THAT(refusal_of({.key_file = files.key}), HasSubstr("--tls-cert"));
    EXPECT_THAT(refusal_of({.certificate_file = "/nowhere.pem", .key_file = files.key}), HasSubstr("/nowhere.pem"));
    EXPECT_THAT(refusal_of({.certificate_file = files.certificate, .key_file = "/nowhere.key"}), HasSubstr("/nowhere.key"));
    EXPECT_THAT(refusal_of({.certificate_file = files.certificate, .key_file = other.key}), HasSubstr(other.key)) << "not a pair";
    EXPECT_THAT(refusal_of({.certificate_file = files.certificate, .key_file = encrypted}), HasSubstr("encrypted"));
}

TEST_F(dashboard_access, speaks_https_with_its_own_certificate) {
    certificates const made;
    auto const files = made.server();
    auto const link = start({.token = token, .certificate_file = files.certificate, .key_file = files.key, .request_timeout = 1s}).login_link(1min);
    EXPECT_THAT(link, StartsWith("https://127.0.0.1:"));
    endpoint const there{.port = port(), .tls = made.client_without_certificate()};
    auto const peer = open_stream(there, 10s);
    std::string received;
    auto const read_until = [&](std::string const& text) {
        std::array<char, 4'096> room{};
        while (received.find(text) == std::string::npos) {
            auto const n = peer->read_some(room.data(), room.size());
            if (n == 0) return false;
            received.append(room.data(), n);
        }
        return true;
    };
    auto const body = json::serialize(json::object{{"code", code_in(link)}});
    peer->write_all("POST /api/login/code HTTP/1.1\r\nHost: localhost\r\nOrigin: https://localhost\r\nContent-Type: application/json\r\nContent-Length: " +
                    std::to_string(body.size()) + "\r\n\r\n" + body);
    ASSERT_TRUE(read_until("\"}"));
    EXPECT_THAT(received, StartsWith("HTTP/1.1 200 OK"));
    auto const mine = session_line({.body = received.substr(received.find('{'))});
    received.clear();
    peer->write_all("GET /api/stream HTTP/1.1\r\nHost: localhost\r\n" + mine + "\r\n");
    EXPECT_TRUE(read_until("event: state"));
    EXPECT_TRUE(read_until("event: beat")) << "an idle stream lasts longer than a request may take";

    http_client plain{port()};
    plain.send("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n");
    EXPECT_EQ(plain.read().status, 0) << "nothing in the clear";
    http_client silent{port()};
    EXPECT_TRUE(silent.closed(10s));
    auto other = there;
    other.tls->ca = made.other_ca();
    EXPECT_THROW((void)open_stream(other, 10s), std::exception) << "the certificate is verified by this test";
    EXPECT_THAT(get_over(there, "/healthz"), StartsWith("HTTP/1.1 200")) << "and goes on";
}

}  // namespace
}  // namespace lockstep::test
