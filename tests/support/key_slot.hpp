// Which of the 16384 Cluster slots a key belongs to, worked out apart from Lockstep.
#pragma once

#include <string_view>

namespace lockstep::test {

inline constexpr int slot_count = 16384;

// CRC16 (XMODEM) of the key, or of what stands between its first { and the next }, if that is not empty.
[[nodiscard]] int slot_of(std::string_view key);

}  // namespace lockstep::test
