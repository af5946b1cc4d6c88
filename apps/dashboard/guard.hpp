// Who may ask what. The dangers are other pages in the same browser, and strangers in the network:
//   a page of another site that has its name point here (DNS rebinding): the Host header must be one that is known;
//   a page of another site that posts here: Origin must be this one, and a header must carry a token that only our own page can read;
//   a stranger: a token, given once and kept in a cookie that scripts can't read and other sites don't send; or as a bearer token;
//   a page of another site that has the browser read from here: refused too, though it could not see the answer;
//   someone who tries tokens: compared in constant time, long enough to make that hopeless, and after some wrong ones told to wait.
//
// Cookies carry a signature by the token, so that one outlives a restart of the server, and ends with the token. One
// that was logged out is remembered until the server ends.
#pragma once

#include "dashboard/http.hpp"

#include <chrono>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::dashboard {

struct guard_options {
    std::string token{};               // empty: everybody may look
    std::vector<std::string> hosts{};  // in lower case, without ports
    std::uint16_t port = 0;            // cookies know no ports: theirs is part of the cookie's name
    bool allow_actions = false;
    bool any_address = false;  // it listens on all of the machine's: an address as Host is one of them
};

class guard {
public:
    using clock = std::chrono::system_clock;
    static constexpr std::chrono::hours session_length{12};

    explicit guard(guard_options options);

    // Each is the answer to send instead, or nothing when it is fine.
    [[nodiscard]] std::optional<response> check_host(request const& asked) const;
    [[nodiscard]] std::optional<response> check_reader(request const& asked, clock::time_point now) const;
    // Of a POST that changes something.
    [[nodiscard]] std::optional<response> check_action(request const& asked, clock::time_point now) const;
    // Not from another site's page.
    [[nodiscard]] std::optional<response> check_site(request const& asked) const;
    // The same, and not what a form can send. For every POST.
    [[nodiscard]] std::optional<response> check_origin(request const& asked) const;

    [[nodiscard]] bool known(request const& asked, clock::time_point now) const;
    [[nodiscard]] bool wants_token() const noexcept { return !options_.token.empty(); }
    [[nodiscard]] bool allows_actions() const noexcept { return options_.allow_actions; }
    // What the page has to send along with a POST.
    [[nodiscard]] std::string csrf(request const& asked) const;

    // With the right token: a Set-Cookie. Otherwise says why not.
    [[nodiscard]] response log_in(std::string_view token, std::string const& peer, clock::time_point now) const;
    [[nodiscard]] response log_out(request const& asked, clock::time_point now) const;

private:
    struct wrong_tokens {
        int count = 0;
        clock::time_point since{};
    };

    [[nodiscard]] response wrong_token(std::string const& peer, clock::time_point now) const;
    [[nodiscard]] std::string cookie_name() const;
    [[nodiscard]] std::string sign(std::string_view purpose, std::string_view text) const;
    [[nodiscard]] bool valid_session(std::string_view cookie, clock::time_point now) const;
    [[nodiscard]] bool right_token(std::string_view token) const;

    guard_options options_;
    std::string key_;
    mutable std::mutex mutex_;
    mutable std::map<std::string, wrong_tokens> wrong_;       // by the address they came from
    mutable std::map<std::string, clock::time_point> left_;  // sessions that were logged out, and when to forget them
};

// Takes as long whatever they hold.
[[nodiscard]] bool same_secret(std::string_view a, std::string_view b);

}  // namespace lockstep::dashboard
