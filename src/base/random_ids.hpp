#pragma once

/// What `random_id` does in two parts, for those who need many ids at once: bits from the kernel, and two such numbers as an id.

#include <array>
#include <cstdint>
#include <string>

namespace lockstep::base {

void random_from_kernel(std::array<std::uint64_t, 32>& to);
void append_id(std::string& to, std::uint64_t low, std::uint64_t high);

}  // namespace lockstep::base
