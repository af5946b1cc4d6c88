#pragma once

// What a plain lock costs: SET key token NX PX 30000, then EVALSHA of the compare-and-delete script. No fence, no queue.

#include "support/load.hpp"

#include <cstddef>
#include <string>

namespace lockstep::bench {

inline constexpr char const* token = "fedcba9876543210";

std::string lock_key(std::size_t index);

/// Takes and releases the lock of its number, over and over. The script must be loaded.
worker lock_and_unlock(load& work, client& through, std::size_t index);

}  // namespace lockstep::bench
