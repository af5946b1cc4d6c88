// Who is let in, and what is refused.
#include "dashboard/guard.hpp"

#include <gtest/gtest.h>
#include <boost/json.hpp>

namespace lockstep::dashboard {
namespace {

using namespace std::chrono_literals;
using clock = guard::clock;

constexpr char const* token = "a-token-of-some-length";
constexpr char const* metrics_token = "another-token-for-metrics";

std::string session_in(response const& answer) {
    EXPECT_EQ(answer.status, 200U) << answer.body;
    return std::string{boost::json::parse(answer.body).at("session").as_string()};
}

struct dashboard_guard : testing::Test {
    static guard_options with_token() {
        return {.token = token, .metrics_token = metrics_token, .hosts = {"localhost", "127.0.0.1"}, .allow_actions = true};
    }
    guard gate{with_token()};
    clock::time_point now = clock::now();

    std::string session() { return session_in(gate.log_in(token, "192.0.2.1", now)); }
    request from_page() {
        return {.method = "POST",
                .host = "localhost:7717",
                .origin = "http://localhost:7717",
                .session = session(),
                .content_type = "application/json",
                .fetch_site = "same-origin"};
    }
    std::chrono::milliseconds delay_of(std::string peer) {
        return gate.delay({.method = "POST", .path = "/api/login", .peer = std::move(peer)}, now);
    }
};

TEST_F(dashboard_guard, knows_whoever_has_logged_in) {
    EXPECT_FALSE(gate.known({}, now));
    EXPECT_TRUE(gate.known({.session = session()}, now));
    EXPECT_TRUE(gate.known({.authorization = std::string{"Bearer "} + token}, now));
    EXPECT_FALSE(gate.known({.authorization = "Bearer a-token-of-some-lengtH"}, now));
    EXPECT_FALSE(gate.known({.authorization = "Bearer "}, now));
    EXPECT_FALSE(gate.known({.session = token}, now)) << "the token is no session";
}

TEST_F(dashboard_guard, does_not_take_a_session_that_is_over_changed_or_of_another_process) {
    auto const mine = session();
    for (auto used = now; used < now + guard::session_length; used += guard::session_idle - 1s) EXPECT_TRUE(gate.known({.session = mine}, used));
    EXPECT_FALSE(gate.known({.session = mine}, now + guard::session_length));
    auto changed = mine;
    changed.back() = changed.back() == '0' ? '1' : '0';
    EXPECT_FALSE(gate.known({.session = changed}, now));
    EXPECT_FALSE(guard{with_token()}.known({.session = mine}, now)) << "the same token after a restart";
}

TEST_F(dashboard_guard, gives_no_cookies) {
    EXPECT_TRUE(gate.log_in(token, "192.0.2.1", now).headers.empty()) << "browsers send them to every port of the host";
    EXPECT_TRUE(gate.log_out({.session = session()}).headers.empty());
}

TEST_F(dashboard_guard, takes_a_code_once_and_in_time) {
    auto const code = gate.issue_code(now + 1min);
    auto const another = gate.issue_code(now + 1min);
    EXPECT_EQ(gate.redeem_code("wrong", now).status, 401U);
    EXPECT_TRUE(gate.known({.session = session_in(gate.redeem_code(code, now))}, now));
    EXPECT_EQ(gate.redeem_code(code, now).status, 401U) << "used";
    EXPECT_EQ(gate.redeem_code(another, now + 1min).status, 401U) << "too old";
    EXPECT_FALSE(gate.known({.authorization = "Bearer " + gate.issue_code(now + 1min)}, now)) << "it is no token";
    EXPECT_EQ(gate.redeem_code("", now).status, 401U);
}

TEST_F(dashboard_guard, ends_a_session_that_is_not_used) {
    auto const left_alone = session(), used = session();
    auto const later = now + guard::session_idle - 1s;
    EXPECT_TRUE(gate.known({.session = used}, later));
    EXPECT_FALSE(gate.known({.session = left_alone}, now + guard::session_idle));
    EXPECT_FALSE(gate.known({.session = left_alone}, now + guard::session_idle)) << "to ask for it does not bring it back";
    EXPECT_TRUE(gate.known({.session = used}, later + guard::session_idle - 1s));
    EXPECT_FALSE(gate.known({.session = used}, later + 2 * guard::session_idle));
}

TEST_F(dashboard_guard, forgets_a_session_that_was_logged_out_and_no_other) {
    auto const mine = session(), other = session();
    EXPECT_TRUE(gate.known({.session = mine}, now));
    EXPECT_EQ(gate.log_out({.session = mine}).status, 200U);
    EXPECT_FALSE(gate.known({.session = mine}, now));
    EXPECT_TRUE(gate.known({.session = other}, now));
}

// ---- wrong tokens ----

TEST_F(dashboard_guard, delays_an_address_longer_and_longer_after_some_wrong_tokens) {
    for (int i = 0; i < 5; ++i) {
        EXPECT_EQ(delay_of("192.0.2.1"), 0ms) << i;
        EXPECT_EQ(gate.log_in("wrong", "192.0.2.1", now).status, 401U);
    }
    EXPECT_EQ(delay_of("192.0.2.1"), 0ms) << "people mistype";
    auto before = 0ms;
    for (int i = 0; i < 30; ++i) {
        (void)gate.log_in("wrong", "192.0.2.1", now);
        EXPECT_GE(delay_of("192.0.2.1"), before);
        before = delay_of("192.0.2.1");
    }
    EXPECT_EQ(before, login_delays{}.longest) << "not for ever: the right token gets in after it";
    EXPECT_EQ(delay_of("192.0.2.2"), 0ms) << "one address does not slow down another";
    EXPECT_EQ(gate.log_in(token, "192.0.2.1", now).status, 200U);
    EXPECT_EQ(delay_of("192.0.2.1"), login_delays{}.longest) << "a right one does not reset it for those who guess";
    now += 10min;
    EXPECT_EQ(delay_of("192.0.2.1"), 0ms);
}

TEST_F(dashboard_guard, delays_bearer_tokens_as_well_and_before_it_looks_at_them) {
    request asked{.path = "/api/snapshot", .authorization = "Bearer wrong", .peer = "192.0.2.1"};
    for (int i = 0; i < 10; ++i) EXPECT_EQ(gate.check_reader(asked, now).value().status, 401U);
    EXPECT_GT(gate.delay(asked, now), 1s);
    asked.authorization = std::string{"Bearer "} + token;
    EXPECT_GT(gate.delay(asked, now), 1s) << "the delay does not tell which is right";
    EXPECT_FALSE(gate.check_reader(asked, now));
    EXPECT_EQ(gate.delay({.path = "/api/snapshot", .session = session(), .peer = "192.0.2.1"}, now), 0ms) << "who has logged in is not slowed down";
    EXPECT_EQ(gate.delay({.path = "/api/login/code", .peer = "192.0.2.1"}, now), 0ms) << "nor is who has the link";
}

TEST_F(dashboard_guard, delays_all_a_little_when_many_addresses_guess) {
    for (int i = 0; i < 100; ++i) (void)gate.log_in("wrong", "2001:db8::" + std::to_string(i + 1), now);
    EXPECT_EQ(delay_of("192.0.2.1"), 0ms) << "one subscriber has all of these addresses";
    for (int i = 0; i < 200; ++i) (void)gate.log_in("wrong", "198.51.100." + std::to_string(i), now);
    EXPECT_GE(delay_of("192.0.2.1"), 250ms);
    EXPECT_LE(delay_of("192.0.2.1"), login_delays{}.longest_shared);
    EXPECT_EQ(gate.log_in(token, "192.0.2.1", now).status, 200U);
}

TEST_F(dashboard_guard, remembers_a_bounded_number_of_addresses) {
    for (int i = 0; i < 20; ++i) (void)gate.log_in("wrong", "192.0.2.1", now);
    for (int i = 0; i < 5'000; ++i) (void)gate.log_in("wrong", std::to_string(i / 250) + ".0.0." + std::to_string(i % 250), now);
    EXPECT_EQ(delay_of("192.0.2.1"), login_delays{}.longest) << "the one that guessed most is not forgotten for others";
}

// ---- other pages ----

TEST_F(dashboard_guard, takes_any_address_as_its_own_when_it_listens_on_all) {
    auto options = with_token();
    EXPECT_TRUE(guard{options}.check_host({.host = "192.0.2.7:7717"}));
    options.any_address = true;
    guard const wide{options};
    for (auto const* host : {"192.0.2.7:7717", "[fd00::1]:7717", "[fd00::1]", "localhost"})
        EXPECT_FALSE(wide.check_host({.host = host})) << host;
    for (auto const* host : {"", "evil.example", "192.0.2.7.evil.example", "[]", "[evil.example]"})
        EXPECT_TRUE(wide.check_host({.host = host})) << host;
}

TEST_F(dashboard_guard, refuses_what_another_page_has_the_browser_read) {
    for (auto const* site : {"cross-site", "same-site"})
        EXPECT_EQ(gate.check_site({.host = "localhost", .fetch_site = site}).value().status, 403U) << site;
    for (auto const* site : {"", "none", "same-origin"})
        EXPECT_FALSE(gate.check_site({.host = "localhost", .fetch_site = site})) << site;
    EXPECT_TRUE(gate.check_site({.host = "localhost", .origin = "http://evil.example"}));
    EXPECT_FALSE(gate.check_site({.host = "localhost", .origin = "https://localhost"})) << "behind a proxy with TLS";
}

TEST_F(dashboard_guard, takes_only_its_own_scheme_when_it_has_tls) {
    auto options = with_token();
    options.tls = true;
    EXPECT_TRUE(guard{options}.check_site({.host = "localhost", .origin = "http://localhost"}));
    EXPECT_FALSE(guard{options}.check_site({.host = "localhost", .origin = "https://localhost"}));
}

TEST_F(dashboard_guard, knows_its_own_names_only) {
    for (auto const* host : {"localhost", "LOCALHOST:7717", "127.0.0.1:1"})
        EXPECT_FALSE(gate.check_host({.host = host})) << host;
    for (auto const* host : {"", "evil.example", "localhost.evil.example", "127.0.0.1.evil.example:7717", "[::1]"})
        EXPECT_TRUE(gate.check_host({.host = host})) << host;
}

TEST_F(dashboard_guard, lets_its_own_page_act) { EXPECT_FALSE(gate.check_action(from_page(), now)); }

TEST_F(dashboard_guard, refuses_what_another_page_posts) {
    auto asked = from_page();
    asked.origin = "http://evil.example";
    EXPECT_EQ(gate.check_action(asked, now).value().status, 403U);
    asked = from_page();
    asked.origin = "null";
    EXPECT_EQ(gate.check_action(asked, now).value().status, 403U);
    asked = from_page();
    asked.origin = "http://localhost:9999";
    EXPECT_EQ(gate.check_action(asked, now).value().status, 403U) << "another port is another site";
    asked = from_page();
    asked.fetch_site = "same-site";
    EXPECT_EQ(gate.check_action(asked, now).value().status, 403U);
    for (auto const* type : {"text/plain", "application/json-evil", ""}) {
        asked = from_page();
        asked.content_type = type;
        EXPECT_EQ(gate.check_action(asked, now).value().status, 415U) << "what a form can send without being asked: " << type;
    }
    asked = from_page();
    asked.session.clear();
    EXPECT_EQ(gate.check_action(asked, now).value().status, 401U);
}

// ---- rights ----

TEST_F(dashboard_guard, refuses_every_action_unless_they_are_allowed) {
    auto options = with_token();
    options.allow_actions = false;
    guard const showing{options};
    auto asked = from_page();
    asked.session = session_in(showing.log_in(token, "192.0.2.1", now));
    EXPECT_EQ(showing.check_action(asked, now).value().status, 403U);
}

TEST_F(dashboard_guard, takes_the_token_for_metrics_there_and_nowhere_else) {
    request const asked{.authorization = std::string{"Bearer "} + metrics_token};
    EXPECT_FALSE(gate.check_scraper(asked, now));
    EXPECT_EQ(gate.check_reader(asked, now).value().status, 401U);
    EXPECT_FALSE(gate.check_scraper({.authorization = std::string{"Bearer "} + token}, now));
    EXPECT_EQ(gate.check_scraper({}, now).value().status, 401U);
    auto options = with_token();
    options.metrics_token.clear();
    EXPECT_EQ(guard{options}.check_scraper({.authorization = "Bearer "}, now).value().status, 401U) << "none is not an empty one";
}

TEST(dashboard_guard_open, lets_everybody_look_and_nobody_act) {
    guard const gate{{.hosts = {"localhost"}, .allow_actions = true}};
    request const asked{.method = "POST", .host = "localhost", .content_type = "application/json"};
    EXPECT_TRUE(gate.known(asked, clock::now()));
    EXPECT_EQ(gate.check_action(asked, clock::now()).value().status, 403U);
}

}  // namespace
}  // namespace lockstep::dashboard
