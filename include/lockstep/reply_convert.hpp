#pragma once

/// The types that `reply::as<T>()` and `reply_view::as<T>()` know. Included by <lockstep/reply.hpp>.
///
///     T                                   accepts
///     std::string, std::string_view       strings, verbatim strings, big numbers (a view: not from a temporary reply)
///     std::vector<std::byte>              the same
///     integers                            integers in T's range; strings that hold one whole decimal number
///     float, double                       doubles, integers; strings that hold one number, "inf", "-inf", "nan"
///     bool                                booleans; the integers 0 and 1 ("OK" is not a bool)
///     std::optional<T>                    null (nullopt), or what T accepts
///     vector, list, set, unordered_set    arrays, sets, pushes
///     map, unordered_map                  maps; arrays of even size, which is how RESP2 sends a map
///     std::pair, std::tuple               arrays, sets, pushes of exactly that size
///     reply, reply_view                   everything, errors too (so vector<reply> keeps the errors inside an EXEC)
///     void                                everything but errors
///
/// For a type of your own:
///
///     template <> struct lockstep::reply_converter<point> {
///         static point convert(reply_view r) { auto [x, y] = r.as<std::pair<int, int>>(); return {x, y}; }
///     };

#include <lockstep/reply.hpp>

#include <concepts>
#include <cstddef>
#include <limits>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace lockstep {
namespace detail {

[[noreturn]] void throw_mismatch(reply_view given, std::string const& wanted);
std::string_view to_text(reply_view source);
std::int64_t to_signed(reply_view source, std::int64_t least, std::int64_t most);
std::uint64_t to_unsigned(reply_view source, std::uint64_t most);
double to_real(reply_view source);
bool to_bool(reply_view source);
void require_sequence(reply_view source);
void require_sequence(reply_view source, std::size_t size);
void require_pairs(reply_view source);

template <typename T>
concept reply_integer = std::integral<T> && !std::same_as<T, bool> && !std::same_as<T, char> && !std::same_as<T, wchar_t> &&
                        !std::same_as<T, char8_t> && !std::same_as<T, char16_t> && !std::same_as<T, char32_t>;

template <typename T>
concept reply_dictionary = requires(T into, typename T::key_type key, typename T::mapped_type value) {
    into.emplace(std::move(key), std::move(value));
};

template <typename T>
concept reply_sequence = !reply_dictionary<T> && requires(T into, typename T::value_type value) {
    into.insert(into.end(), std::move(value));
};

template <> inline constexpr bool borrows<reply_view> = true;
template <> inline constexpr bool borrows<std::string_view> = true;

}  // namespace detail

template <> struct reply_converter<void> {
    static void convert(reply_view) {}
};

template <> struct reply_converter<reply> {
    static constexpr bool keeps_errors = true;
    static reply convert(reply_view source) { return reply(source); }
};

template <> struct reply_converter<reply_view> {
    static constexpr bool keeps_errors = true;
    static reply_view convert(reply_view source) { return source; }
};

template <> struct reply_converter<std::string_view> {
    static std::string_view convert(reply_view source) { return detail::to_text(source); }
};

template <> struct reply_converter<std::string> {
    static std::string convert(reply_view source) { return std::string(detail::to_text(source)); }
};

template <> struct reply_converter<std::vector<std::byte>> {
    static std::vector<std::byte> convert(reply_view source) {
        auto const text = detail::to_text(source);
        auto const* const first = reinterpret_cast<std::byte const*>(text.data());
        return {first, first + text.size()};
    }
};

template <detail::reply_integer T> struct reply_converter<T> {
    static T convert(reply_view source) {
        using range = std::numeric_limits<T>;
        if constexpr (range::is_signed)
            return static_cast<T>(detail::to_signed(source, range::min(), range::max()));
        else
            return static_cast<T>(detail::to_unsigned(source, range::max()));
    }
};

template <std::floating_point T> struct reply_converter<T> {
    static T convert(reply_view source) { return static_cast<T>(detail::to_real(source)); }
};

template <> struct reply_converter<bool> {
    static bool convert(reply_view source) { return detail::to_bool(source); }
};

template <typename T> struct reply_converter<std::optional<T>> {
    static constexpr bool keeps_errors = detail::keeps_errors<T>;
    static std::optional<T> convert(reply_view source) {
        if (source.is_null()) return std::nullopt;
        return source.as<T>();
    }
};

template <detail::reply_sequence T> struct reply_converter<T> {
    static T convert(reply_view source) {
        detail::require_sequence(source);
        T result;
        if constexpr (requires { result.reserve(source.size()); }) result.reserve(source.size());
        for (auto element : source) result.insert(result.end(), element.as<typename T::value_type>());
        return result;
    }
};

template <detail::reply_dictionary T> struct reply_converter<T> {
    static T convert(reply_view source) {
        detail::require_pairs(source);
        T result;
        for (auto i = source.begin(); i != source.end();) {
            auto key = (*i++).as<typename T::key_type>();
            result.emplace(std::move(key), (*i++).as<typename T::mapped_type>());
        }
        return result;
    }
};

template <typename First, typename Second> struct reply_converter<std::pair<First, Second>> {
    static std::pair<First, Second> convert(reply_view source) {
        detail::require_sequence(source, 2);
        auto i = source.begin();
        auto first = (*i++).as<First>();
        return {std::move(first), (*i).as<Second>()};
    }
};

template <typename... T> struct reply_converter<std::tuple<T...>> {
    static std::tuple<T...> convert(reply_view source) {
        detail::require_sequence(source, sizeof...(T));
        [[maybe_unused]] auto i = source.begin();
        return std::tuple<T...>{(*i++).template as<T>()...};  // braces evaluate in order
    }
};

}  // namespace lockstep
