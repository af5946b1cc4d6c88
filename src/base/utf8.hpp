#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace lockstep::base {

/// The text with every byte that is no UTF-8 replaced by U+FFFD: names are bytes, JSON and terminals want text.
inline std::string as_utf8(std::string_view text) {
    std::string out;
    out.reserve(text.size());
    auto const byte = [&](std::size_t at) { return static_cast<unsigned char>(text[at]); };
    auto const length = [&](std::size_t at) -> std::size_t {
        auto const first = byte(at);
        std::size_t const size = first < 0x80 ? 1 : first < 0xC2 ? 0 : first < 0xE0 ? 2 : first < 0xF0 ? 3 : first < 0xF5 ? 4 : 0;
        if (size == 0 || at + size > text.size()) return 0;
        for (std::size_t i = 1; i < size; ++i) {
            if ((byte(at + i) & 0xC0U) != 0x80) return 0;
        }
        if (size < 3) return size;
        // Overlong forms, surrogates, and beyond the last character.
        auto const second = byte(at + 1);
        bool const wrong = (first == 0xE0 && second < 0xA0) || (first == 0xED && second > 0x9F) || (first == 0xF0 && second < 0x90) ||
                           (first == 0xF4 && second > 0x8F);
        return wrong ? 0 : size;
    };
    for (std::size_t at = 0; at < text.size();) {
        auto const size = length(at);
        if (size == 0) {
            out += "\xEF\xBF\xBD";
            ++at;
        } else {
            out += text.substr(at, size);
            at += size;
        }
    }
    return out;
}

}  // namespace lockstep::base
