#pragma once

// The kinds of objects that have a key of their own, of which it is the last part: `<prefix>:{<name>}:<kind>`. A board with periods has a key
// for each of them, with more behind it.

#include <array>
#include <string_view>

namespace lockstep::detail {

inline constexpr std::array<std::string_view, 17> object_kinds{"barrier", "board", "breaker", "broadcast", "counter", "election", "event", "latch",     "lock",
                                                               "map",     "queue", "recursive", "semaphore", "shared", "stealing", "stream", "value"};

}  // namespace lockstep::detail
