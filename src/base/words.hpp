#pragma once

// Reading text word by word.

#include <charconv>
#include <optional>
#include <string_view>
#include <system_error>

namespace lockstep::base {

/// The text before the first `by`, which is taken off the rest; all of it where there is none.
inline std::string_view cut(std::string_view& rest, char by) noexcept {
    auto const at = rest.find(by);
    auto const first = rest.substr(0, at);
    rest = at == std::string_view::npos ? std::string_view{} : rest.substr(at + 1);
    return first;
}

/// Nothing: it is none, or out of range.
template <class T>
std::optional<T> number_in(std::string_view text) noexcept {
    T value{};
    auto const [end, problem] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (problem != std::errc{} || end != text.data() + text.size()) return std::nullopt;
    return value;
}

}  // namespace lockstep::base
