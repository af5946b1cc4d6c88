// The dashboard's server in front of a real Redis, and a page that follows it.
#pragma once

#include "dashboard/assets.hpp"
#include "dashboard/server.hpp"

#include "http_client.hpp"
#include "support/redis_server.hpp"

#include <lockstep/mutex.hpp>

#include <gtest/gtest.h>
#include <boost/json.hpp>

#include <algorithm>
#include <chrono>
#include <optional>
#include <string>
#include <string_view>

namespace lockstep::test {

using namespace std::chrono_literals;
namespace json = boost::json;

inline constexpr char const* token = "a-token-of-some-length";
// What a script sends to a dashboard that was started with it; where there is none it changes nothing.
inline std::string const bearer_line = std::string{"Authorization: Bearer "} + token + "\r\n";

struct dashboard_server : testing::Test {
    // A build may have no page; then the server is the same without it.
    std::string const missing_page{dashboard::missing_page_reason()};
    int const page_status = missing_page.empty() ? 200 : 404;

    dashboard::server& start(dashboard::server_options options = {}) {
        options.port = 0;
        page.emplace(backend, std::move(options));
        return *page;
    }
    std::uint16_t port() { return page->port(); }
    dashboard::server& start_acting(std::string by = {}) { return start({.token = token, .allow_actions = true, .by = std::move(by)}); }
    json::value session(std::string const& extra = "") { return json::parse(get(port(), "/api/session", extra).body); }
    // Logs in with the token, and returns the header that says so from then on.
    std::string log_in() {
        auto const answer = post(port(), "/api/login", json::serialize(json::object{{"token", token}}));
        EXPECT_EQ(answer.status, 200) << answer.body;
        return session_line(answer);
    }
    static std::string session_line(http_answer const& answer) {
        return "X-Lockstep-Session: " + std::string{json::parse(answer.body).at("session").as_string()} + "\r\n";
    }
    // The hold of `name` as an order names it.
    std::string order(std::string const& name, bool force) {
        auto const all = eye.active(name);
        return json::serialize(json::object{
            {"name", name}, {"kind", "lock"}, {"hold", all.at(0).id}, {"force", force}, {"reason", "a test"}});
    }

    redis_server redis;
    client observer{{.url = redis.url(), .name = "dashboard", .command_timeout = 2s}};
    client worker{{.url = redis.url(), .name = "worker"}};
    lockstep::monitor eye{observer};
    dashboard::monitor_backend backend{observer};
    std::optional<dashboard::server> page;
};

struct follower {
    // `extra`: further header lines.
    explicit follower(std::uint16_t port, std::string const& seen = "", std::string const& extra = "") : peer(port) {
        peer.send("GET /api/stream?seen=" + seen + " HTTP/1.1\r\nHost: localhost\r\n" + extra + "\r\n");
    }
    // The next message of the state.
    json::value next(std::chrono::milliseconds timeout = 30s) {
        if (!peer.read_until("event: state", timeout)) return nullptr;
        auto const rest = peer.received().substr(peer.received().find("event: state"));
        auto const data = rest.find("data: ");
        if (data == std::string::npos || rest.find("\n\n", data) == std::string::npos) {
            if (!peer.read_until("}}\n\n", timeout)) return nullptr;
            return next(timeout);
        }
        auto const end = rest.find("\n\n", data);
        auto text = rest.substr(data + 6, end - data - 6);
        peer.forget_until(end + peer.received().find("event: state") + 2);
        return json::parse(text);
    }
    // Until one says what is wanted.
    template <class Condition>
    bool hears(Condition const& wanted) {
        for (auto const until = std::chrono::steady_clock::now() + 10s; std::chrono::steady_clock::now() < until;) {
            auto const message = next();
            if (message.is_null()) return false;
            if (wanted(message)) return true;
        }
        return false;
    }
    http_client peer;
};

inline bool has_hold(json::value const& said, std::string_view name) {
    auto const& holds = said.at("set").at("holds").as_array();
    return std::any_of(holds.begin(), holds.end(),
                       [&](json::value const& one) { return one.at("name").as_string() == name; });
}

}  // namespace lockstep::test
