#pragma once

/// The names of keys, made here and nowhere else: `<prefix>:{<name>}:<kind>`.
///
/// The braces make the name the Cluster hash tag: all keys of one object live in one slot. So a name must not be able to
/// close its tag or open another: `{`, `}`, `%` and control characters in it are percent-encoded. Everything else,
/// UTF-8 included, stays as it is, so that a person who looks at the server recognises the name.

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace lockstep::base {

inline constexpr std::size_t max_name_bytes = 512;

/// Throws invalid_argument_error unless the name has 1 to 512 bytes.
void check_name(std::string_view name);

/// Throws as `check_name` does.
std::string encode_name(std::string_view name);

/// The inverse; nothing when the text is no encoded name (a stray `%`, or a character that is always encoded).
std::optional<std::string> decode_name(std::string_view encoded);

/// Throws invalid_argument_error when the prefix is empty or has braces or control characters.
void check_prefix(std::string_view prefix);

/// Throws as `encode_name` and `check_prefix` do. `kind` is one of Lockstep's own words and is taken as it is.
std::string key_name(std::string_view prefix, std::string_view name, std::string_view kind);

}  // namespace lockstep::base
