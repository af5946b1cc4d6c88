#pragma once

/// The vocabulary of server URLs, shared by the parser (url.cpp) and by `redact_url` (redact.cpp): schemes, query keys, and
/// which characters a host or a word may have. To add a query key, name it here and take its value in url.cpp.

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>

#include "redis/url.hpp"

namespace lockstep::redis::url_text {

struct scheme {
    std::string_view name;
    topology kind;
    bool tls;
    bool unix_socket;
};

/// Stands for "no server", so that a program neither finds one elsewhere nor starts its own.
inline constexpr std::string_view no_server = "none:";

inline constexpr std::array schemes{
    scheme{"redis", topology::standalone, false, false},
    scheme{"rediss", topology::standalone, true, false},
    scheme{"unix", topology::standalone, false, true},
    scheme{"redis+sentinel", topology::sentinel, false, false},
    scheme{"rediss+sentinel", topology::sentinel, true, false},
    scheme{"redis+cluster", topology::cluster, false, false},
    scheme{"rediss+cluster", topology::cluster, true, false},
};

inline constexpr std::string_view schemes_in_words =
    "redis://, rediss://, unix://, redis+sentinel://, rediss+sentinel://, redis+cluster:// and rediss+cluster://";

inline constexpr std::array<std::string_view, 13> query_keys{"db",
                                                             "name",
                                                             "password_file",
                                                             "ca_file",
                                                             "cert_file",
                                                             "key_file",
                                                             "server_name",
                                                             "prefix",
                                                             "connect_timeout_ms",
                                                             "command_timeout_ms",
                                                             "sentinel_user",
                                                             "sentinel_password",
                                                             "sentinel_password_file"};

inline constexpr std::string_view query_keys_in_words =
    "db, name, password_file, ca_file, cert_file, key_file, server_name, prefix, connect_timeout_ms, "
    "command_timeout_ms, "
    "and for Sentinel sentinel_user, sentinel_password, sentinel_password_file";

inline bool is_query_key(std::string_view key) { return std::ranges::find(query_keys, key) != query_keys.end(); }
inline bool is_secret_key(std::string_view key) { return key.find("password") != std::string_view::npos; }

inline bool is_digit(char c) { return c >= '0' && c <= '9'; }
inline bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
inline bool is_word_char(char c) { return is_digit(c) || is_letter(c) || c == '.' || c == '_' || c == '-'; }
inline bool is_word(std::string_view text) { return !text.empty() && std::ranges::all_of(text, is_word_char); }

/// A whole number without sign from 0 to `max`.
inline std::optional<int> number(std::string_view digits, int max) {
    int value = 0;
    auto const* const end = digits.data() + digits.size();
    auto const [rest, error] = std::from_chars(digits.data(), end, value);
    if (digits.empty() || !is_digit(digits.front()) || error != std::errc{} || rest != end || value > max) return {};
    return value;
}

/// The scheme and what follows its "://"; nothing when it is not one of ours.
struct opened {
    scheme how;
    std::string_view rest;
};
inline std::optional<opened> open(std::string_view url) {
    auto const end = url.find("://");
    if (end == std::string_view::npos) return std::nullopt;
    std::string name{url.substr(0, end)};
    for (auto& c : name) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    auto const found = std::ranges::find(schemes, name, &scheme::name);
    if (found == schemes.end()) return std::nullopt;
    return opened{*found, url.substr(end + 3)};
}

/// Takes and returns what stands before `separator`; the rest stays in `text`, without it.
inline std::string_view take_until(std::string_view& text, char separator) {
    auto const at = text.find(separator);
    auto const head = text.substr(0, at);
    text = at == std::string_view::npos ? std::string_view{} : text.substr(at + 1);
    return head;
}

/// "host", "host:port", "[v6]", "[v6]:port"; nothing when it is none of them. Port 0: none was given.
struct host_port {
    std::string_view host;
    std::uint16_t port = 0;
};
inline std::optional<host_port> split_host(std::string_view text) {
    std::string_view host;
    if (text.starts_with('[')) {
        auto const close = text.find(']');
        if (close == std::string_view::npos) return std::nullopt;
        host = text.substr(1, close - 1);
        text.remove_prefix(close + 1);
        auto const address = host.substr(0, host.find('%'));  // what follows is a zone: fe80::1%eth0
        auto const is_address_char = [](char c) {
            return is_digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F') || c == ':' || c == '.';
        };
        if (address.find(':') == std::string_view::npos || !std::ranges::all_of(address, is_address_char)) return {};
        if (address.size() < host.size() && !is_word(host.substr(address.size() + 1))) return {};
    } else {
        host = text.substr(0, text.find(':'));
        text.remove_prefix(host.size());
        if (!is_word(host)) return std::nullopt;
    }
    if (text.empty()) return host_port{host, 0};
    auto const port = number(text.substr(1), 65535);
    if (text.front() != ':' || !port || *port == 0) return std::nullopt;
    return host_port{host, static_cast<std::uint16_t>(*port)};
}

/// The commonest slip: the scheme was left out, as in `127.0.0.1:6379`. The URL that was meant, if what is there is a place and cannot well be a password;
/// a single word without a port may be one, `localhost` is not.
inline std::string guess_url(std::string_view text) {
    if (text.starts_with('/') && text.ends_with(".sock") && std::ranges::all_of(text, [](char c) { return is_word_char(c) || c == '/'; })) return "unix://" + std::string{text};
    auto place = text;
    auto hosts = take_until(place, '/');
    if (!place.empty() && !number(place, 999'999'999)) return {};
    bool const several = hosts.find(',') != std::string_view::npos;
    do {
        auto const one = take_until(hosts, ',');
        auto const found = split_host(one);
        if (!found) return {};
        bool const is_address = one.starts_with('[') || found->host.find_first_not_of("0123456789.") == std::string_view::npos;
        if (found->port == 0 && found->host != "localhost" && !(is_address && found->host.find_first_of(".:") != std::string_view::npos)) return {};
    } while (!hosts.empty());
    return (several ? "redis+cluster://" : "redis://") + std::string{text};
}

}  // namespace lockstep::redis::url_text
