#include "dashboard/guard.hpp"

#include "dashboard/text.hpp"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/rand.h>

#include <boost/asio/ip/address.hpp>
#include <boost/json.hpp>

#include <algorithm>
#include <array>
#include <charconv>
#include <stdexcept>

namespace lockstep::dashboard {

namespace {

constexpr int most_wrong = 10;
constexpr std::chrono::seconds wrong_span{30};
constexpr std::size_t most_wrong_peers = 1'000;
constexpr std::string_view bearer = "Bearer ";

std::string hmac(std::string_view key, std::string_view text) {
    std::array<unsigned char, EVP_MAX_MD_SIZE> out{};
    unsigned int size = 0;
    if (HMAC(EVP_sha256(), key.data(), static_cast<int>(key.size()),
             reinterpret_cast<unsigned char const*>(text.data()), text.size(), out.data(), &size) == nullptr)
        throw std::runtime_error{"OpenSSL could not compute a signature"};
    constexpr std::string_view digits = "0123456789abcdef";
    std::string hex;
    for (unsigned int i = 0; i < size; ++i) hex += {digits[out[i] >> 4], digits[out[i] & 15]};
    return hex;
}

std::string random_key() {
    std::array<unsigned char, 32> bytes{};
    if (RAND_bytes(bytes.data(), static_cast<int>(bytes.size())) != 1)
        throw std::runtime_error{"OpenSSL has no random numbers"};
    return {bytes.begin(), bytes.end()};
}

bool is_address(std::string_view host) {
    if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
    boost::system::error_code failure;
    boost::asio::ip::make_address(host, failure);
    return !failure;
}

std::int64_t seconds_of(guard::clock::time_point time) {
    return std::chrono::duration_cast<std::chrono::seconds>(time.time_since_epoch()).count();
}

}  // namespace

response refusal(unsigned status, std::string_view why) {
    return {.status = status, .body = boost::json::serialize(boost::json::object{{"error", why}})};
}

bool same_secret(std::string_view a, std::string_view b) {
    // Of equal length whatever they are, so that not even the length shows.
    auto const left = hmac("lockstep", a);
    auto const right = hmac("lockstep", b);
    return CRYPTO_memcmp(left.data(), right.data(), left.size()) == 0;
}

guard::guard(guard_options options)
    : options_(std::move(options)),
      key_(options_.token.empty() ? random_key() : hmac(options_.token, "lockstep dashboard")) {}

std::string guard::cookie_name() const { return "lockstep_" + std::to_string(options_.port); }

std::string guard::sign(std::string_view purpose, std::string_view text) const {
    return hmac(key_, std::string{purpose} + ':' + std::string{text});
}

// <when it ends, in seconds>.<something random>.<signature>
bool guard::valid_session(std::string_view cookie, clock::time_point now) const {
    auto const dot = cookie.rfind('.');
    if (dot == std::string_view::npos) return false;
    auto const said = cookie.substr(0, dot);
    if (!same_secret(cookie.substr(dot + 1), sign("session", said))) return false;
    {
        std::lock_guard const lock{mutex_};
        if (left_.contains(std::string{said})) return false;
    }
    auto const ends = said.substr(0, said.find('.'));
    std::int64_t seconds = 0;
    auto const read = std::from_chars(ends.data(), ends.data() + ends.size(), seconds);
    return read.ec == std::errc{} && read.ptr == ends.data() + ends.size() && seconds > seconds_of(now);
}

bool guard::right_token(std::string_view token) const { return same_secret(token, options_.token); }

bool guard::known(request const& asked, clock::time_point now) const {
    if (!wants_token()) return true;
    std::string_view const authorization = asked.authorization;
    if (authorization.starts_with(bearer)) return right_token(authorization.substr(bearer.size()));
    auto const cookie = in_cookies(asked.cookie, cookie_name());
    return cookie && valid_session(*cookie, now);
}

std::string guard::csrf(request const& asked) const {
    return sign("csrf", wants_token() ? in_cookies(asked.cookie, cookie_name()).value_or("") : "");
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
    if (asked.authorization.starts_with(bearer)) return wrong_token(asked.peer, now);
    return refusal(401, "log in first, or send the token as Authorization: Bearer TOKEN");
}

std::optional<response> guard::check_site(request const& asked) const {
    auto const& site = asked.fetch_site;
    bool const foreign_site = !site.empty() && site != "same-origin" && site != "none";
    bool const foreign_origin =
        !asked.origin.empty() && asked.origin != "http://" + asked.host && asked.origin != "https://" + asked.host;
    if (foreign_site || foreign_origin) return refusal(403, "this came from a page of another site");
    return std::nullopt;
}

std::optional<response> guard::check_origin(request const& asked) const {
    if (auto refused = check_site(asked)) return refused;
    if (!asked.content_type.starts_with("application/json")) return refusal(415, "send application/json");
    return std::nullopt;
}

std::optional<response> guard::check_action(request const& asked, clock::time_point now) const {
    if (auto refused = check_reader(asked, now)) return refused;
    if (auto refused = check_origin(asked)) return refused;
    if (!same_secret(asked.csrf, csrf(asked)))
        return refusal(403, "the header X-Lockstep-CSRF must carry the csrf that /api/session says");
    if (!allows_actions()) return refusal(403, "this dashboard only shows. Start it with --allow-actions to act");
    return std::nullopt;
}

// Counted for each address, and only wrong ones: nobody who has the token is kept out by somebody who has not.
response guard::wrong_token(std::string const& peer, clock::time_point now) const {
    std::lock_guard const lock{mutex_};
    std::erase_if(wrong_, [&](auto const& one) {
        return now - one.second.since > wrong_span || now < one.second.since;
    });
    bool const full = wrong_.size() >= most_wrong_peers && !wrong_.contains(peer);
    if (!full && ++wrong_.try_emplace(peer, wrong_tokens{.since = now}).first->second.count <= most_wrong)
        return refusal(401, "that is not the token");
    auto refused = refusal(429, "too many wrong tokens; wait half a minute");
    refused.headers.emplace_back("Retry-After", std::to_string(wrong_span.count()));
    return refused;
}

response guard::log_in(std::string_view token, std::string const& peer, clock::time_point now) const {
    if (!wants_token()) return {.body = "{}"};
    if (!right_token(token)) return wrong_token(peer, now);
    auto const ends = std::to_string(seconds_of(now + session_length)) + '.' + hmac(random_key(), "").substr(0, 16);
    response made{.body = "{}"};
    made.headers.emplace_back("Set-Cookie", cookie_name() + '=' + ends + '.' + sign("session", ends) +
                                                "; Path=/; HttpOnly; SameSite=Strict; Max-Age=" +
                                                std::to_string(std::chrono::seconds{session_length}.count()));
    return made;
}

response guard::log_out(request const& asked, clock::time_point now) const {
    auto const cookie = in_cookies(asked.cookie, cookie_name());
    if (wants_token() && cookie && valid_session(*cookie, now)) {
        std::lock_guard const lock{mutex_};
        std::erase_if(left_, [&](auto const& one) { return one.second < now; });
        left_.emplace(cookie->substr(0, cookie->rfind('.')), now + session_length);
    }
    response made{.body = "{}"};
    made.headers.emplace_back("Set-Cookie", cookie_name() + "=; Path=/; HttpOnly; SameSite=Strict; Max-Age=0");
    return made;
}

}  // namespace lockstep::dashboard
