#pragma once

/// How a value becomes the bytes that the server keeps, and bytes a value again.
///
///     lockstep::codec<int>::encode(42)                      // "42"
///     lockstep::codec<std::string>::decode(bytes)           // as they are
///
/// Strings and bytes are kept as they are, numbers as decimal text, which is what Redis counts with. With <lockstep/json.hpp> included,
/// every other type that Boost.JSON can convert is kept as JSON; a struct described by Boost.Describe needs no further code.
///
/// For another form, specialize `lockstep::codec` for your type, or give the object a codec of your own: each class that keeps values takes it
/// as its last template parameter. `decode` throws `conversion_error` when the bytes are no such value. Every program that shares an object must
/// use the same form.

#include <lockstep/error.hpp>

#include <array>
#include <charconv>
#include <concepts>
#include <cstddef>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

namespace lockstep {

template <class T>
struct codec;  // no definition: the type needs <lockstep/json.hpp>, or a codec of its own

template <class Codec, class T>
concept codec_for = requires(T const& value, std::string_view bytes) {
    { Codec::encode(value) } -> std::convertible_to<std::string>;
    { Codec::decode(bytes) } -> std::convertible_to<T>;
};

template <>
struct codec<std::string> {
    static std::string encode(std::string_view value) { return std::string{value}; }
    static std::string decode(std::string_view bytes) { return std::string{bytes}; }
};

template <>
struct codec<std::vector<std::byte>> {
    static std::string encode(std::vector<std::byte> const& value) { return {reinterpret_cast<char const*>(value.data()), value.size()}; }
    static std::vector<std::byte> decode(std::string_view bytes) {
        auto const* const first = reinterpret_cast<std::byte const*>(bytes.data());
        return {first, first + bytes.size()};
    }
};

namespace detail {

/// "a value of <n> bytes is not <what>".
[[noreturn]] void throw_not_decodable(std::string_view bytes, std::string_view what);

template <class T>
concept number = (std::integral<T> || std::floating_point<T>) && !std::same_as<T, bool> && !std::same_as<T, char>;

}  // namespace detail

template <detail::number T>
struct codec<T> {
    static std::string encode(T value) {
        std::array<char, 64> digits;
        return {digits.data(), std::to_chars(digits.data(), digits.data() + digits.size(), value).ptr};
    }
    static T decode(std::string_view bytes) {
        T value{};
        auto const end = bytes.data() + bytes.size();
        auto const [stopped, problem] = std::from_chars(bytes.data(), end, value);
        if (problem != std::errc{} || stopped != end) detail::throw_not_decodable(bytes, "a number that fits");
        return value;
    }
};

template <>
struct codec<bool> {
    static std::string encode(bool value) { return value ? "true" : "false"; }
    static bool decode(std::string_view bytes) {
        if (bytes != "true" && bytes != "false") detail::throw_not_decodable(bytes, "true or false");
        return bytes == "true";
    }
};

}  // namespace lockstep
