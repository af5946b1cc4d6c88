// Who may ask what. The dangers are other pages in the same browser, other users of this machine, and strangers in the network:
//   a page of another site that has its name point here (DNS rebinding): the Host header must be one that is known;
//   a page of another site that has the browser read from here or post here: refused by Sec-Fetch-Site and Origin. It could do nothing
//     with a session either: the id of one is in a header that only this origin's page can set, not in a cookie that the browser adds;
//   a server on another port of this host: browsers send it every cookie of the host, so there is none;
//   any process that can connect: a token, exchanged for a session, or sent as a bearer token;
//   a client that guesses tokens: compared in constant time, weak ones refused at the start, answers delayed (login_throttle.hpp).
//
// Sessions and login codes are in memory, as digests of what was given out: they end with the server, and one that was logged out stays so. Browsers
// write the id of a session to their disk, so one that is not used ends soon.
#pragma once

#include "dashboard/http.hpp"
#include "dashboard/login_throttle.hpp"

#include <chrono>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::dashboard {

struct guard_options {
    std::string token{};               // empty: everybody may look
    std::string metrics_token{};       // for /metrics alone
    std::vector<std::string> hosts{};  // in lower case, without ports
    bool allow_actions = false;
    bool any_address = false;  // it listens on all of the machine's: an address as Host is one of them
    bool tls = false;
    login_delays delays{};
};

class guard {
public:
    using clock = std::chrono::steady_clock;
    static constexpr std::chrono::hours session_length{12};
    static constexpr std::chrono::minutes session_idle{30};  // without a request or an open stream

    explicit guard(guard_options options) : options_(std::move(options)), throttle_(options_.delays) {}

    // How long to wait before a request is looked at: those that present a token, where wrong ones came before.
    [[nodiscard]] std::chrono::milliseconds delay(request const& asked, clock::time_point now) const;

    // Each is the answer to send instead, or nothing when it is fine.
    [[nodiscard]] std::optional<response> check_host(request const& asked) const;
    [[nodiscard]] std::optional<response> check_reader(request const& asked, clock::time_point now) const;
    // Of /metrics: whoever may read, or has the token for it.
    [[nodiscard]] std::optional<response> check_scraper(request const& asked, clock::time_point now) const;
    // Of a POST that changes something.
    [[nodiscard]] std::optional<response> check_action(request const& asked, clock::time_point now) const;
    // Not from another site's page.
    [[nodiscard]] std::optional<response> check_site(request const& asked) const;
    // The same, and not what a form can send. For every POST.
    [[nodiscard]] std::optional<response> check_origin(request const& asked) const;

    [[nodiscard]] bool known(request const& asked, clock::time_point now) const;
    [[nodiscard]] bool wants_token() const noexcept { return !options_.token.empty(); }
    [[nodiscard]] bool allows_actions() const noexcept { return options_.allow_actions; }

    // A code that logs in once, before its time is over.
    [[nodiscard]] std::string issue_code(clock::time_point expires) const;
    // Each answers with {"session": its id}, or says why not.
    [[nodiscard]] response log_in(std::string_view token, std::string const& peer, clock::time_point now) const;
    [[nodiscard]] response redeem_code(std::string_view code, clock::time_point now) const;
    [[nodiscard]] response log_out(request const& asked) const;

private:
    using expiries = std::map<std::string, clock::time_point>;  // by digest
    struct session_times {
        clock::time_point begun, used;
        [[nodiscard]] bool over(clock::time_point now) const { return now >= begun + session_length || now >= used + session_idle; }
    };

    [[nodiscard]] response wrong_token(std::string const& peer, clock::time_point now) const;
    [[nodiscard]] response begin_session(clock::time_point now) const;
    [[nodiscard]] bool valid_session(std::string_view session, clock::time_point now) const;

    guard_options options_;
    mutable login_throttle throttle_;
    mutable std::mutex mutex_;
    mutable std::map<std::string, session_times> sessions_;  // by digest
    mutable expiries codes_;
};

}  // namespace lockstep::dashboard
