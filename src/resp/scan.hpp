#pragma once

// Numbers as RESP writes them: stricter than charconv (no leading zeros, no plus, no minus zero), because whatever
// deviates is not a server that we know, and a desync is found sooner.

#include <charconv>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string_view>

namespace lockstep::resp {

enum class scanned : std::uint8_t { whole, starved, malformed, no_line_end, too_large };

/// Reads `digits CR LF` or `-digits CR LF` at `pos`, and moves `pos` behind it when it is whole. What it answers depends
/// on the bytes up to the first wrong one only, so that it does not matter in which pieces they came.
inline scanned scan_integer(std::string_view bytes, std::size_t& pos, std::int64_t& value) noexcept {
    char const* at = bytes.data() + pos;
    char const* const end = bytes.data() + bytes.size();
    bool const negative = at != end && *at == '-';
    if (negative) ++at;

    char const* const first = at;
    char const* const last = end - at > 19 ? at + 19 : end;  // 19 digits always fit into 64 bits, 20 never into 63
    std::uint64_t number = 0;
    for (; at != last; ++at) {
        auto const digit = static_cast<unsigned>(static_cast<unsigned char>(*at)) - '0';
        if (digit > 9) break;
        number = number * 10 + digit;
    }
    bool const too_large = at != end && at == last && *at >= '0' && *at <= '9';
    auto const digits = at - first;
    if (digits == 0) return at == end ? scanned::starved : scanned::malformed;
    if (*first == '0' && (digits > 1 || negative)) return scanned::malformed;
    auto const most = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()) + (negative ? 1 : 0);
    if (too_large || number > most) return scanned::too_large;
    if (at == end) return scanned::starved;
    if (*at != '\r') return scanned::malformed;
    if (++at == end) return scanned::starved;
    if (*at != '\n') return scanned::no_line_end;

    value = static_cast<std::int64_t>(negative ? ~number + 1 : number);
    pos = static_cast<std::size_t>(at + 1 - bytes.data());
    return scanned::whole;
}

/// The length of the run of digits that `text` begins with.
inline std::size_t digits_of(std::string_view text) noexcept {
    std::size_t count = 0;
    while (count != text.size() && text[count] >= '0' && text[count] <= '9') ++count;
    return count;
}

/// Whether `text` is an integer of any size.
inline bool is_big_number(std::string_view text) noexcept {
    if (text.starts_with('-')) {
        text.remove_prefix(1);
        if (text.starts_with('0')) return false;
    }
    return !text.empty() && digits_of(text) == text.size() && (text.size() == 1 || text.front() != '0');
}

/// Whether `text` is `[-]digits[.digits][e[+-]digits]`, which leaves out what charconv would take beyond that.
inline bool is_decimal(std::string_view text) noexcept {
    auto const run = [&text] {
        auto const count = digits_of(text);
        text.remove_prefix(count);
        return count != 0;
    };
    if (text.starts_with('-')) text.remove_prefix(1);
    if (!run()) return false;
    if (text.starts_with('.')) {
        text.remove_prefix(1);
        if (!run()) return false;
    }
    if (text.starts_with('e') || text.starts_with('E')) {
        text.remove_prefix(1);
        if (text.starts_with('+') || text.starts_with('-')) text.remove_prefix(1);
        if (!run()) return false;
    }
    return text.empty();
}

/// Reads the text of a double. Redis 7.0 passes on C's "-nan".
inline bool read_double(std::string_view text, double& value) noexcept {
    using range = std::numeric_limits<double>;
    if (text == "inf") return value = range::infinity(), true;
    if (text == "-inf") return value = -range::infinity(), true;
    if (text == "nan" || text == "-nan") return value = range::quiet_NaN(), true;
    if (!is_decimal(text)) return false;
    return std::from_chars(text.data(), text.data() + text.size(), value).ec == std::errc{};
}

}  // namespace lockstep::resp
