#pragma once

// Records of a flight recorder as a drawing: a line for each owner, time from left to right.

#include <lockstep/monitor.hpp>

#include <cstddef>
#include <string>
#include <vector>

namespace lockstep::cli {

/// `#` held, `-` waiting, `!` lost. At most so many columns wide.
std::string lanes(std::vector<history_entry> const& records, std::size_t width, bool coloured);

}  // namespace lockstep::cli
