#include "base/names.hpp"

#include <lockstep/error.hpp>

#include <algorithm>

namespace lockstep::base {
namespace {

bool is_control(char c) {
    auto const byte = static_cast<unsigned char>(c);
    return byte < 0x20 || byte == 0x7f;
}

bool must_encode(char c) { return c == '{' || c == '}' || c == '%' || is_control(c); }

// The value of a hexadecimal digit as `encode_name` writes it, otherwise -1.
int digit(char c) {
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'A' && c <= 'F') return c - 'A' + 10;
    return -1;
}

void append_encoded(std::string& out, std::string_view name) {
    static constexpr std::string_view digits = "0123456789ABCDEF";
    for (char const c : name) {
        if (must_encode(c)) {
            auto const byte = static_cast<unsigned char>(c);
            out += {'%', digits[byte >> 4], digits[byte & 15]};
        } else {
            out += c;
        }
    }
}

}  // namespace

void check_name(std::string_view name) {
    if (name.empty() || name.size() > max_name_bytes) {
        throw invalid_argument_error(
            "a name has 1 to " + std::to_string(max_name_bytes) + " bytes; this one has " + std::to_string(name.size()));
    }
}

std::string encode_name(std::string_view name) {
    check_name(name);
    std::string encoded;
    encoded.reserve(name.size());
    append_encoded(encoded, name);
    return encoded;
}

std::optional<std::string> decode_name(std::string_view encoded) {
    std::string name;
    name.reserve(encoded.size());
    for (std::size_t i = 0; i < encoded.size(); ++i) {
        if (encoded[i] != '%') {
            if (must_encode(encoded[i])) return std::nullopt;
            name += encoded[i];
            continue;
        }
        if (encoded.size() - i < 3) return std::nullopt;
        int const high = digit(encoded[i + 1]);
        int const low = digit(encoded[i + 2]);
        if (high < 0 || low < 0) return std::nullopt;
        auto const c = static_cast<char>(high * 16 + low);
        if (!must_encode(c)) return std::nullopt;  // one name, one encoding
        name += c;
        i += 2;
    }
    if (name.empty() || name.size() > max_name_bytes) return std::nullopt;
    return name;
}

void check_prefix(std::string_view prefix) {
    if (prefix.empty()) throw invalid_argument_error("the key prefix is empty; it needs at least one character");
    if (std::any_of(prefix.begin(), prefix.end(), [](char c) { return c == '{' || c == '}' || is_control(c); })) {
        throw invalid_argument_error("the key prefix may contain anything but braces and control characters");
    }
}

std::string key_name(std::string_view prefix, std::string_view name, std::string_view kind) {
    check_prefix(prefix);
    check_name(name);
    std::string key;
    key.reserve(prefix.size() + name.size() + kind.size() + 4);
    key.append(prefix).append(":{");
    append_encoded(key, name);
    return key.append("}:").append(kind);
}

}  // namespace lockstep::base
