// redact_url: shows only what is provably harmless and hides the rest.
//
// The URL may be malformed, and then anything may be a piece of the password: `redis://user:secret` (the @ forgotten) has it
// where a port belongs, `redis://user:a/b@host` where a path does. So each piece is shown only if it is exactly what belongs
// in its place, and from the first that is not, everything is hidden. The limit: a secret that makes a
// proper URL where a host or a user belongs (`redis://secret`, `redis://user:x@secret`) looks like one.
#include <lockstep/options.hpp>

#include <algorithm>
#include <string>
#include <string_view>

#include "redis/url_text.hpp"

namespace lockstep {
namespace {

using namespace redis::url_text;

constexpr std::string_view hidden = "***";

std::string redact_login(std::string_view login) {
    auto const user = login.substr(0, login.find(':'));
    // No colon, or nothing after it: then the only word there may well be the password, put in the wrong place.
    bool const has_password = login.size() > user.size() + 1;
    bool const is_clear = has_password && (user.empty() || is_word(user)) && login.find('/') == std::string_view::npos;
    return (is_clear ? std::string{user} + ":" : std::string{}).append(hidden) + "@";
}

// Paths of files and sockets, and names. An `=` may be a query whose `?` or `&` was forgotten.
bool is_plain_value(std::string_view text) {
    return std::ranges::all_of(text, [](char c) { return c > ' ' && c < 0x7f && c != '='; });
}

bool is_plain_place(scheme const& how, std::string_view place) {
    if (how.unix_socket) return place.starts_with('/') && is_plain_value(place);
    auto hosts = take_until(place, '/');
    do {
        if (!split_host(take_until(hosts, ','))) return false;
    } while (!hosts.empty());
    if (how.kind == redis::topology::sentinel && !place.empty() && !is_word(take_until(place, '/'))) return false;
    return place.empty() || number(place, 999'999'999);
}

std::string redact_query(std::string_view query) {
    std::string shown;
    bool after_hidden = false;  // then an unknown key may be the tail of a password with an `&` in it
    while (!query.empty()) {
        auto const part = take_until(query, '&');
        auto const key = part.substr(0, part.find('='));
        auto const value = part.substr(std::min(key.size() + 1, part.size()));
        bool const is_known = is_query_key(key);
        bool const may_name = is_known || key == "password" || (is_word(key) && !is_secret_key(key) && !after_hidden);
        bool const may_show = is_known && !is_secret_key(key) && is_plain_value(value);
        shown += shown.empty() ? "" : "&";
        if (may_name && key.size() < part.size()) shown.append(key).append("=");
        shown += may_show && key.size() < part.size() ? value : hidden;
        after_hidden = after_hidden || !may_show;
    }
    return shown;
}

}  // namespace

std::string redact_url(std::string_view url) {
    if (url == no_server) return std::string{url};
    auto const opened = open(url);
    if (!opened) return guess_url(url).empty() ? std::string{hidden} : std::string{url};
    auto shown = std::string{opened->how.name} + "://";
    auto rest = opened->rest;

    auto const at = rest.rfind('@');
    auto const query_at = rest.find_first_of("?#");
    if (at != std::string_view::npos) {
        // Either the password has a `?` or a value has an `@` (its `?` maybe forgotten): no telling where the host would be.
        if (at > query_at || is_secret_key(rest.substr(0, at))) return shown.append(hidden);
        shown += redact_login(rest.substr(0, at));
        rest.remove_prefix(at + 1);
    }
    auto const place = rest.substr(0, rest.find_first_of("?#"));
    rest.remove_prefix(place.size());
    if (!is_plain_place(opened->how, place)) return shown.append(hidden);
    shown += place;
    if (rest.starts_with('#')) return shown.append(hidden);
    if (!rest.empty()) shown += "?" + redact_query(rest.substr(1));
    return shown;
}

}  // namespace lockstep
