#pragma once

// Standard error, for those who have more to do than to talk.

#include <string_view>

namespace lockstep::cli {

/// Never fails and never waits, from any thread: what nobody takes at once is lost.
void say_to_standard_error(std::string_view bytes) noexcept;

}  // namespace lockstep::cli
