#include "dashboard/text.hpp"

#include <boost/asio/ip/address.hpp>

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <system_error>

namespace lockstep::dashboard {

namespace {

constexpr std::string_view digits = "0123456789abcdef";

int digit(char c) noexcept {
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    if (c >= 'A' && c <= 'F') return c - 'A' + 10;
    return -1;
}

// How many bytes the sequence at the front has, or 0 when it is none: overlong forms and surrogates are none.
std::size_t sequence(std::string_view text) noexcept {
    auto const at = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
    auto const first = at(0);
    if (first < 0x80) return 1;
    std::size_t const length = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
    if (first < 0xc2 || first > 0xf4 || text.size() < length) return 0;
    for (std::size_t i = 1; i < length; ++i)
        if ((at(i) & 0xc0) != 0x80) return 0;
    if (first == 0xe0 && at(1) < 0xa0) return 0;
    if (first == 0xed && at(1) > 0x9f) return 0;
    if (first == 0xf0 && at(1) < 0x90) return 0;
    if (first == 0xf4 && at(1) > 0x8f) return 0;
    return length;
}

}  // namespace

std::optional<std::string> percent_decoded(std::string_view text) {
    std::string out;
    out.reserve(text.size());
    for (std::size_t i = 0; i < text.size(); ++i) {
        if (text[i] != '%') {
            out += text[i];
            continue;
        }
        if (i + 2 >= text.size()) return std::nullopt;
        int const high = digit(text[i + 1]);
        int const low = digit(text[i + 2]);
        if (high < 0 || low < 0) return std::nullopt;
        out += static_cast<char>(high * 16 + low);
        i += 2;
    }
    return out;
}

std::string percent_encoded(std::string_view text) {
    std::string out;
    for (char const c : text) {
        auto const byte = static_cast<unsigned char>(c);
        bool const plain = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-' ||
                           c == '_' || c == '.' || c == '~';
        if (plain) {
            out += c;
        } else {
            out += {'%', digits[byte >> 4], digits[byte & 15]};
        }
    }
    return out;
}

std::optional<std::string> in_query(std::string_view query, std::string_view key) {
    while (!query.empty()) {
        auto const part = query.substr(0, query.find('&'));
        query.remove_prefix(std::min(query.size(), part.size() + 1));
        auto const equals = part.find('=');
        if (equals != std::string_view::npos && part.substr(0, equals) == key)
            return percent_decoded(part.substr(equals + 1));
    }
    return std::nullopt;
}

bool is_utf8(std::string_view text) noexcept {
    while (!text.empty()) {
        auto const length = sequence(text);
        if (length == 0) return false;
        text.remove_prefix(length);
    }
    return true;
}

std::string readable(std::string_view text) {
    if (is_utf8(text)) return std::string{text};
    std::string out;
    while (!text.empty()) {
        auto const length = sequence(text);
        if (length == 0) {
            auto const byte = static_cast<unsigned char>(text.front());
            out += {'\\', 'x', digits[byte >> 4], digits[byte & 15]};
        } else {
            out += text.substr(0, length);
        }
        text.remove_prefix(std::max<std::size_t>(length, 1));
    }
    return out;
}

std::string_view beginning(std::string_view text, std::size_t most) noexcept {
    if (text.size() <= most) return text;
    auto end = most;
    // What follows the first byte of a character begins with the bits 10; at most three of them.
    while (end > 0 && most - end < 3 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) --end;
    return text.substr(0, end);
}

std::string host_of(std::string_view authority) {
    // An IPv6 address as people write it, without brackets, has no port.
    if (!authority.starts_with('[') && std::ranges::count(authority, ':') > 1)
        return host_of('[' + std::string{authority} + ']');
    auto const bracket = authority.find(']');
    auto const colon = bracket == std::string_view::npos ? authority.find(':') : authority.find(':', bracket);
    std::string host{authority.substr(0, colon)};
    std::ranges::transform(host, host.begin(),
                           [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
    return host;
}

bool is_authority(std::string_view text) noexcept {
    constexpr std::string_view letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";
    auto const is_made_of = [&](std::string_view part, std::string_view more) {
        return !part.empty() && std::ranges::all_of(part, [&](char c) { return letters.find(c) != std::string_view::npos || more.find(c) != std::string_view::npos; });
    };
    bool const bracketed = text.starts_with('[');
    auto const end = bracketed ? text.find(']') : text.find(':');
    if (bracketed && end == std::string_view::npos) return false;
    auto const host = bracketed ? text.substr(1, end - 1) : text.substr(0, end);
    if (!is_made_of(host, bracketed ? ":." : ".-_")) return false;
    auto const rest = end == std::string_view::npos ? std::string_view{} : text.substr(end + (bracketed ? 1 : 0));
    if (rest.empty()) return true;
    unsigned port = 0;
    auto const [last, failure] = std::from_chars(rest.data() + 1, rest.data() + rest.size(), port);
    return rest.front() == ':' && rest.size() <= 6 && failure == std::errc{} && last == rest.data() + rest.size() && port > 0 && port <= 65'535;
}

std::string network_of(std::string_view address) {
    namespace ip = boost::asio::ip;
    boost::system::error_code failure;
    auto const parsed = ip::make_address(address, failure);
    if (failure || parsed.is_v4()) return std::string{address};
    auto const wide = parsed.to_v6();
    if (wide.is_v4_mapped()) return ip::make_address_v4(ip::v4_mapped, wide).to_string();
    auto bytes = wide.to_bytes();
    std::fill(bytes.begin() + 8, bytes.end(), std::uint8_t{0});
    return ip::address_v6{bytes}.to_string() + "/64";
}

}  // namespace lockstep::dashboard
