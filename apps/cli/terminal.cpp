#include "cli/terminal.hpp"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <array>
#include <charconv>
#include <cstdint>
#include <cstdlib>
#include <cstring>

namespace lockstep::cli {
namespace {

struct glyph {
    std::size_t bytes = 1;
    std::uint32_t code = 0;
    bool valid = false;
};

/// The character at the front of `text`, which is not empty. Not by the locale: the program does not set one, for speed.
glyph first_glyph(std::string_view text) {
    auto const byte = [&](std::size_t at) { return static_cast<unsigned char>(text[at]); };
    auto const lead = byte(0);
    if (lead < 0x80) return {1, lead, true};
    std::size_t const length = lead >= 0xF0 && lead < 0xF5 ? 4 : lead >= 0xE0 ? 3 : lead >= 0xC2 ? 2 : 0;
    if (length == 0 || lead >= 0xF5 || text.size() < length) return {};
    static constexpr std::array<std::uint32_t, 5> smallest_code{0, 0, 0x80, 0x800, 0x10000};
    std::uint32_t code = lead & (0xFFU >> (length + 1));
    for (std::size_t i = 1; i != length; ++i) {
        if ((byte(i) & 0xC0) != 0x80) return {};
        code = code << 6 | (byte(i) & 0x3F);
    }
    bool const surrogate = code >= 0xD800 && code <= 0xDFFF;
    return {length, code, code >= smallest_code[length] && code <= 0x10FFFF && !surrogate};
}

/// Controls, and marks that turn the direction of writing: a name must not make the rest of a line read as something else.
bool is_unsafe(std::uint32_t code) {
    return code < 0x20 || (code >= 0x7F && code < 0xA0) || (code >= 0x200B && code <= 0x200F) || (code >= 0x2028 && code <= 0x202E) ||
           (code >= 0x2066 && code <= 0x2069) || code == 0xFEFF;
}

std::size_t columns_of(std::uint32_t code) {
    if (code >= 0x300 && code <= 0x36F) return 0;  // combining
    bool const wide = (code >= 0x1100 && code <= 0x115F) || (code >= 0x2E80 && code <= 0xA4CF) || (code >= 0xAC00 && code <= 0xD7A3) ||
                      (code >= 0xF900 && code <= 0xFAFF) || (code >= 0xFE30 && code <= 0xFE6F) || (code >= 0xFF00 && code <= 0xFF60) ||
                      (code >= 0xFFE0 && code <= 0xFFE6) || (code >= 0x1F300 && code <= 0x1FAFF) || (code >= 0x20000 && code <= 0x3FFFD);
    return wide ? 2 : 1;
}

std::size_t variable(char const* name, std::size_t otherwise) {
    auto const* const text = std::getenv(name);
    std::size_t number = 0;
    if (text == nullptr || std::from_chars(text, text + std::strlen(text), number).ec != std::errc{} || number == 0) return otherwise;
    return number;
}

}  // namespace

bool has_colour(int descriptor) {
    auto const* const refused = std::getenv("NO_COLOR");
    if (refused != nullptr && *refused != '\0') return false;
    auto const* const term = std::getenv("TERM");
    return term != nullptr && std::strcmp(term, "dumb") != 0 && ::isatty(descriptor) == 1;
}

std::string paint(std::string_view text, style how, bool coloured) {
    if (!coloured || how == style::plain || text.empty()) return std::string{text};
    static constexpr std::array<int, 8> codes{0, 1, 2, 31, 32, 33, 34, 36};
    return fmt::format("\033[{}m{}\033[0m", codes[static_cast<std::size_t>(how)], text);
}

terminal_size size_of_terminal() {
    winsize window{};
    if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &window) == 0 && window.ws_col > 0 && window.ws_row > 0) return {window.ws_col, window.ws_row};
    return {variable("COLUMNS", 80), variable("LINES", 24)};
}

namespace {

template <class IsSafe, class Escape>
std::string escaped(std::string_view text, IsSafe is_safe, Escape escape) {
    std::string shown;
    shown.reserve(text.size());
    while (!text.empty()) {
        auto const next = first_glyph(text);
        auto const bytes = text.substr(0, next.bytes);
        if (is_safe(next)) {
            shown.append(bytes);
        } else {
            escape(shown, next, bytes);
        }
        text.remove_prefix(next.bytes);
    }
    return shown;
}

void append_hexadecimal(std::string& shown, glyph const&, std::string_view bytes) {
    for (char const byte : bytes) shown += fmt::format("\\x{:02X}", static_cast<unsigned char>(byte));
}

}  // namespace

std::string printable(std::string_view text) {
    return escaped(text, [](glyph const& next) { return next.valid && !is_unsafe(next.code); }, append_hexadecimal);
}

std::string printable_lines(std::string_view text) {
    auto const is_safe = [](glyph const& next) { return next.valid && (next.code == '\n' || next.code == '\t' || !is_unsafe(next.code)); };
    return escaped(text, is_safe, append_hexadecimal);
}

std::string printable_json(std::string_view json) {
    auto const is_safe = [](glyph const& next) { return next.valid && (next.code == '\n' || !is_unsafe(next.code)); };
    auto const escape = [](std::string& shown, glyph const& next, std::string_view) { shown += fmt::format("\\u{:04x}", next.valid ? next.code : 0xFFFD); };
    return escaped(json, is_safe, escape);
}

std::size_t width_of(std::string_view text) {
    std::size_t columns = 0;
    while (!text.empty()) {
        auto const one = first_glyph(text);
        columns += columns_of(one.code);
        text.remove_prefix(one.bytes);
    }
    return columns;
}

std::string cut_to(std::string_view text, std::size_t columns) {
    if (width_of(text) <= columns) return std::string{text};
    if (columns == 0) return {};
    std::string kept;
    std::size_t taken = 1;  // the ellipsis
    while (!text.empty()) {
        auto const one = first_glyph(text);
        if (taken + columns_of(one.code) > columns) break;
        taken += columns_of(one.code);
        kept.append(text.substr(0, one.bytes));
        text.remove_prefix(one.bytes);
    }
    return kept + "\u2026";
}

}  // namespace lockstep::cli
