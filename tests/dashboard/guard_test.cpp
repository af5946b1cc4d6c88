// Who is let in, and what is refused.
#include "dashboard/guard.hpp"

#include <gtest/gtest.h>

namespace lockstep::dashboard {
namespace {

using namespace std::chrono_literals;
using clock = guard::clock;

constexpr char const* token = "a-token-of-some-length";

struct dashboard_guard : testing::Test {
    static guard_options with_token() {
        return {.token = token, .hosts = {"localhost", "127.0.0.1"}, .port = 7717, .allow_actions = true};
    }
    guard gate{with_token()};
    clock::time_point now = clock::now();

    std::string cookie() {
        auto const made = gate.log_in(token, "192.0.2.1", now);
        auto const& all = made.headers.at(0).second;
        return all.substr(0, all.find(';'));
    }
    request from_page() {
        request asked{.method = "POST",
                      .host = "localhost:7717",
                      .origin = "http://localhost:7717",
                      .cookie = cookie(),
                      .content_type = "application/json",
                      .fetch_site = "same-origin"};
        asked.csrf = gate.csrf(asked);
        return asked;
    }
};

TEST_F(dashboard_guard, knows_whoever_has_logged_in) {
    EXPECT_FALSE(gate.known({}, now));
    EXPECT_TRUE(gate.known({.cookie = "other=1; " + cookie()}, now));
    EXPECT_TRUE(gate.known({.authorization = std::string{"Bearer "} + token}, now));
    EXPECT_FALSE(gate.known({.authorization = "Bearer a-token-of-some-lengtH"}, now));
    EXPECT_FALSE(gate.known({.authorization = "Bearer "}, now));
}

TEST_F(dashboard_guard, does_not_take_a_session_that_is_over_changed_or_of_another_token) {
    auto const mine = cookie();
    EXPECT_FALSE(gate.known({.cookie = mine}, now + guard::session_length + 1s));
    auto later = mine;
    later[later.find('=') + 1] = '9';
    EXPECT_FALSE(gate.known({.cookie = later}, now)) << "an end that nobody signed";
    auto options = with_token();
    options.token = "another-token-of-some-length";
    EXPECT_FALSE(guard{options}.known({.cookie = mine}, now));
    EXPECT_TRUE(guard{with_token()}.known({.cookie = mine}, now)) << "the same token after a restart";
}

TEST_F(dashboard_guard, gives_cookies_that_scripts_and_other_sites_do_not_get) {
    auto const made = gate.log_in(token, "192.0.2.1", now);
    ASSERT_EQ(made.status, 200U);
    auto const& set = made.headers.at(0).second;
    EXPECT_NE(set.find("HttpOnly"), std::string::npos);
    EXPECT_NE(set.find("SameSite=Strict"), std::string::npos);
    EXPECT_EQ(set.find(token), std::string::npos);
}

TEST_F(dashboard_guard, tells_an_address_to_wait_after_some_wrong_tokens) {
    unsigned status = 0;
    for (int i = 0; i < 20; ++i) status = gate.log_in("wrong", "192.0.2.1", now).status;
    EXPECT_EQ(status, 429U);
    EXPECT_EQ(gate.log_in("wrong", "192.0.2.2", now).status, 401U) << "somebody else";
    EXPECT_EQ(gate.log_in("wrong", "192.0.2.1", now + 31s).status, 401U);
    EXPECT_EQ(gate.log_in(token, "192.0.2.1", now).status, 200U) << "whoever has it is not kept out by whoever has not";
}

TEST_F(dashboard_guard, counts_wrong_bearer_tokens_as_well) {
    request asked{.authorization = "Bearer wrong", .peer = "192.0.2.1"};
    EXPECT_EQ(gate.check_reader(asked, now).value().status, 401U);
    for (int i = 0; i < 20; ++i) (void)gate.check_reader(asked, now);
    EXPECT_EQ(gate.check_reader(asked, now).value().status, 429U);
    EXPECT_EQ(gate.log_in("wrong", "192.0.2.1", now).status, 429U);
    asked.authorization = std::string{"Bearer "} + token;
    EXPECT_FALSE(gate.check_reader(asked, now));
}

TEST_F(dashboard_guard, forgets_a_session_that_was_logged_out_and_no_other) {
    auto const mine = cookie(), other = cookie();
    EXPECT_TRUE(gate.known({.cookie = mine}, now));
    EXPECT_EQ(gate.log_out({.cookie = mine}, now).status, 200U);
    EXPECT_FALSE(gate.known({.cookie = mine}, now));
    EXPECT_TRUE(gate.known({.cookie = other}, now)) << "of the same second";
}

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
    asked = from_page();
    asked.content_type = "text/plain";
    EXPECT_EQ(gate.check_action(asked, now).value().status, 415U) << "what a form can send without being asked";
}

TEST_F(dashboard_guard, refuses_an_action_without_the_right_csrf_token) {
    auto asked = from_page();
    asked.csrf.clear();
    EXPECT_EQ(gate.check_action(asked, now).value().status, 403U);
    asked.csrf = gate.csrf({});
    EXPECT_EQ(gate.check_action(asked, now).value().status, 403U) << "that of another session";
    asked = from_page();
    asked.cookie.clear();
    EXPECT_EQ(gate.check_action(asked, now).value().status, 401U);
}

TEST_F(dashboard_guard, refuses_every_action_unless_they_are_allowed) {
    auto options = with_token();
    options.allow_actions = false;
    EXPECT_EQ(guard{options}.check_action(from_page(), now).value().status, 403U);
}

TEST(dashboard_guard_open, wants_a_csrf_token_even_when_everybody_may_look) {
    guard const gate{{.hosts = {"localhost"}, .allow_actions = true}};
    request asked{.method = "POST", .host = "localhost", .content_type = "application/json"};
    EXPECT_TRUE(gate.known(asked, clock::now()));
    EXPECT_EQ(gate.check_action(asked, clock::now()).value().status, 403U);
    asked.csrf = gate.csrf(asked);
    EXPECT_FALSE(gate.check_action(asked, clock::now()));
    guard const other{{.hosts = {"localhost"}, .allow_actions = true}};
    EXPECT_TRUE(other.check_action(asked, clock::now())) << "each server has its own";
}

}  // namespace
}  // namespace lockstep::dashboard
