#pragma once

// Glob patterns as Redis matches channels by them.

#include <string>
#include <string_view>

namespace lockstep::detail {

/// The text as a pattern that fits itself only.
std::string quoted_glob(std::string_view text);
/// `*` any text, `?` one character, `[abc]`, `[^abc]` and `[a-z]` one of these, `\` before one that is meant as it is.
bool fits_glob(std::string_view pattern, std::string_view text) noexcept;

}  // namespace lockstep::detail
