#pragma once

// Commands as bytes: an array of counted strings, the one form every Redis since 1.2 reads. Binary safe.
//
//     resp::append_command(out, "SET", key, value, "PX", 30000);
//
// or piece by piece, when the number of arguments is known at run time only:
//
//     resp::command_header(out, 1 + keys.size());
//     resp::bulk(out, "DEL");
//     for (auto const& key : keys) resp::bulk(out, key);

#include "resp/output.hpp"

#include <array>
#include <charconv>
#include <concepts>
#include <cstddef>
#include <cstring>
#include <functional>
#include <iterator>
#include <span>
#include <string_view>

namespace lockstep::resp {

template <typename T>
concept text_argument = std::convertible_to<T const&, std::string_view>;

template <typename T>
concept bytes_argument = !text_argument<T> && std::convertible_to<T const&, std::span<std::byte const>>;

/// No char (a letter or a number?) and no bool (1, true, or yes?): the caller says which.
template <typename T>
concept number_argument = std::floating_point<T> ||
    (std::integral<T> && !std::same_as<T, bool> && !std::same_as<T, char> && !std::same_as<T, wchar_t> &&
     !std::same_as<T, char8_t> && !std::same_as<T, char16_t> && !std::same_as<T, char32_t>);

template <typename T>
concept argument = text_argument<T> || bytes_argument<T> || number_argument<T>;

namespace encoding {

constexpr std::size_t head_room = 1 + 20 + 2;  // type, length, CR LF
constexpr std::size_t number_room = 32;        // the longest: "-2.2250738585072014e-308"

inline char* write_head(char* at, char type, std::size_t count) noexcept {
    *at++ = type;
    if (count < 10)
        *at++ = static_cast<char>('0' + count);
    else
        at = std::to_chars(at, at + 20, count).ptr;
    *at++ = '\r';
    *at++ = '\n';
    return at;
}

inline char* write_bulk(char* at, std::string_view text) noexcept {
    at = write_head(at, '$', text.size());
    if (!text.empty()) std::memcpy(at, text.data(), text.size());
    at += text.size();
    *at++ = '\r';
    *at++ = '\n';
    return at;
}

/// An argument with its text and an upper bound of its encoded size, both found once. Numbers bring their digits:
/// shortest form, and a double reads back as the same double.
template <argument T> struct prepared {
    explicit prepared(T const& value) noexcept {
        if constexpr (text_argument<T>) {
            text = value;
        } else {
            auto const bytes = std::span<std::byte const>(value);
            text = {reinterpret_cast<char const*>(bytes.data()), bytes.size()};
        }
    }
    std::string_view view() const noexcept { return text; }
    std::string_view text;
};

template <number_argument T> struct prepared<T> {
    explicit prepared(T value) noexcept
        : size(static_cast<std::size_t>(std::to_chars(digits, digits + number_room, widened(value)).ptr - digits)) {}
    std::string_view view() const noexcept { return {digits, size}; }
    static auto widened(T value) noexcept {
        if constexpr (std::same_as<T, long double>)
            return static_cast<double>(value);
        else
            return value;
    }
    char digits[number_room];
    std::size_t size;
};

}  // namespace encoding

inline void command_header(output& out, std::size_t arguments) {
    auto* const at = out.reserve(encoding::head_room);
    out.commit(encoding::write_head(at, '*', arguments));
}

template <argument T> void bulk(output& out, T const& value) {
    encoding::prepared<T> const argument(value);
    auto* const at = out.reserve(encoding::head_room + argument.view().size() + 2);
    out.commit(encoding::write_bulk(at, argument.view()));
}

/// Appends one command: one check for room, then plain writes.
template <argument... T> void append_command(output& out, T const&... values) {
    static_assert(sizeof...(T) > 0, "a command has a name");
    [&out](auto const&... arguments) {
        auto const room = (arguments.view().size() + ...) + (sizeof...(T) + 1) * (encoding::head_room + 2);
        auto* at = encoding::write_head(out.reserve(room), '*', sizeof...(T));
        ((at = encoding::write_bulk(at, arguments.view())), ...);
        out.commit(at);
    }(encoding::prepared<T>(values)...);
}

/// The same for a list: `text_of(element)` is the argument's text.
template <class List, class Projection = std::identity>
void append_list(output& out, List const& arguments, Projection text_of = {}) {
    auto room = (std::size(arguments) + 1) * (encoding::head_room + 2);
    for (auto const& one : arguments) room += std::string_view{std::invoke(text_of, one)}.size();
    auto* at = encoding::write_head(out.reserve(room), '*', std::size(arguments));
    for (auto const& one : arguments) at = encoding::write_bulk(at, std::invoke(text_of, one));
    out.commit(at);
}

inline void append_command(output& out, std::span<std::string_view const> arguments) { append_list(out, arguments); }

}  // namespace lockstep::resp
