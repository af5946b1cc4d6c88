#include "dashboard/guard.hpp"

#include "dashboard/credentials.hpp"
#include "dashboard/text.hpp"

#include <boost/asio/ip/address.hpp>
#include <boost/json.hpp>

#include <algorithm>

namespace lockstep::dashboard {

namespace {

constexpr std::size_t most_sessions = 1'000;
constexpr std::string_view bearer = "Bearer ";

bool is_address(std::string_view host) {
    if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
    boost::system::error_code failure;
    boost::asio::ip::make_address(host, failure);
    return !failure;
}

// What stands behind "Bearer ", if anything does.
std::string_view bearer_of(request const& asked) {
    std::string_view const authorization = asked.authorization;
    return authorization.starts_with(bearer) ? authorization.substr(bearer.size()) : std::string_view{};
}

}  // namespace

response refusal(unsigned status, std::string_view why) {
    return {.status = status, .body = boost::json::serialize(boost::json::object{{"error", why}})};
}

std::chrono::milliseconds guard::delay(request const& asked, clock::time_point now) const {
    bool const presents_token = !bearer_of(asked).empty() || asked.path == "/api/login";
    if (!wants_token() || !presents_token) return std::chrono::milliseconds{0};
    return throttle_.delay(network_of(asked.peer), now);
}

bool guard::valid_session(std::string_view session, clock::time_point now) const {
    if (session.empty()) return false;
    std::lock_guard const lock{mutex_};
    auto const found = sessions_.find(digest(session));
    if (found == sessions_.end() || found->second.over(now)) return false;
    found->second.used = std::max(found->second.used, now);
    return true;
}

bool guard::known(request const& asked, clock::time_point now) const {
    if (!wants_token()) return true;
    auto const presented = bearer_of(asked);
    return presented.empty() ? valid_session(asked.session, now) : same_secret(presented, options_.token);
}

std::optional<response> guard::check_host(request const& asked) const {
    auto const host = host_of(asked.host);
    if (std::ranges::find(options_.hosts, host) != options_.hosts.end()) return std::nullopt;
    if (options_.any_address && is_address(host)) return std::nullopt;  // nobody's page has its name point here by that
    auto refused = refusal(421, "this dashboard is not known by the name in the Host header: " + readable(asked.host) +
                                    ". Start it with --allow-host NAME if that is right");
    refused.last = true;
    return refused;
}

std::optional<response> guard::check_reader(request const& asked, clock::time_point now) const {
    if (known(asked, now)) return std::nullopt;
    if (!bearer_of(asked).empty()) return wrong_token(asked.peer, now);
    return refusal(401, "log in first, or send the token as Authorization: Bearer TOKEN");
}

std::optional<response> guard::check_scraper(request const& asked, clock::time_point now) const {
    auto const presented = bearer_of(asked);
    if (!presented.empty() && same_secret(presented, options_.metrics_token)) return std::nullopt;
    return check_reader(asked, now);
}

std::optional<response> guard::check_site(request const& asked) const {
    auto const& site = asked.fetch_site;
    bool const foreign_site = !site.empty() && site != "same-origin" && site != "none";
    // Without TLS of its own it may stand behind a proxy that has it.
    bool const own_origin = asked.origin.empty() || asked.origin == "https://" + asked.host || (!options_.tls && asked.origin == "http://" + asked.host);
    if (foreign_site || !own_origin) return refusal(403, "this came from a page of another site");
    return std::nullopt;
}

std::optional<response> guard::check_origin(request const& asked) const {
    if (auto refused = check_site(asked)) return refused;
    auto const type = std::string_view{asked.content_type}.substr(0, asked.content_type.find(';'));
    if (type != "application/json") return refusal(415, "send application/json");
    return std::nullopt;
}

std::optional<response> guard::check_action(request const& asked, clock::time_point now) const {
    if (auto refused = check_reader(asked, now)) return refused;
    if (auto refused = check_origin(asked)) return refused;
    // Without a token a page of another site could not be told from ours: the server does not start that way, and this holds if it did.
    if (!allows_actions() || !wants_token()) return refusal(403, "this dashboard only shows. Start it with --allow-actions to act");
    return std::nullopt;
}

response guard::wrong_token(std::string const& peer, clock::time_point now) const {
    throttle_.note_failure(network_of(peer), now);
    return refusal(401, "that is not the token");
}

response guard::begin_session(clock::time_point now) const {
    auto const session = random_secret();
    std::lock_guard const lock{mutex_};
    std::erase_if(sessions_, [&](auto const& one) { return one.second.over(now); });
    if (sessions_.size() >= most_sessions) sessions_.erase(std::ranges::min_element(sessions_, {}, [](auto const& one) { return one.second.used; }));
    sessions_.emplace(digest(session), session_times{.begun = now, .used = now});
    return {.body = boost::json::serialize(boost::json::object{{"session", session}})};
}

std::string guard::issue_code(clock::time_point expires) const {
    auto code = random_secret();
    std::lock_guard const lock{mutex_};
    codes_.emplace(digest(code), expires);
    return code;
}

response guard::log_in(std::string_view token, std::string const& peer, clock::time_point now) const {
    if (!wants_token()) return {.body = "{}"};
    if (!same_secret(token, options_.token)) return wrong_token(peer, now);
    return begin_session(now);
}

// Not delayed: nobody guesses 128 bits in the minutes that a code lasts, and so wrong tokens keep nobody from using the link.
response guard::redeem_code(std::string_view code, clock::time_point now) const {
    {
        std::lock_guard const lock{mutex_};
        std::erase_if(codes_, [&](auto const& one) { return one.second <= now; });
        if (codes_.erase(digest(code)) == 0) return refusal(401, "this link was used before, or is too old; log in with the token");
    }
    return begin_session(now);
}

response guard::log_out(request const& asked) const {
    std::lock_guard const lock{mutex_};
    sessions_.erase(digest(asked.session));
    return {.body = "{}"};
}

}  // namespace lockstep::dashboard
