#pragma once

/// Which of the 16384 Cluster slots a key lives in: CRC16 (XMODEM) of the key, or of its hash tag.

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace lockstep::redis {

inline constexpr std::uint16_t slot_count = 16384;

namespace crc16 {

inline constexpr auto table = [] {
    std::array<std::uint16_t, 256> entries{};
    for (unsigned byte = 0; byte < entries.size(); ++byte) {
        unsigned crc = byte << 8;
        for (int bit = 0; bit < 8; ++bit) crc = (crc & 0x8000U) != 0 ? crc << 1 ^ 0x1021U : crc << 1;
        entries[byte] = static_cast<std::uint16_t>(crc);
    }
    return entries;
}();

constexpr std::uint16_t of(std::string_view bytes) noexcept {
    std::uint16_t crc = 0;
    for (char const c : bytes) {
        auto const index = static_cast<std::uint8_t>(crc >> 8 ^ static_cast<unsigned char>(c));
        crc = static_cast<std::uint16_t>(crc << 8 ^ table[index]);
    }
    return crc;
}

}  // namespace crc16

/// What stands between the first `{` and the first `}` after it; the whole key when there is no such pair or nothing in it.
constexpr std::string_view hash_tag(std::string_view key) noexcept {
    auto const open = key.find('{');
    if (open == std::string_view::npos) return key;
    auto const close = key.find('}', open + 1);
    if (close == std::string_view::npos || close == open + 1) return key;
    return key.substr(open + 1, close - open - 1);
}

constexpr std::uint16_t key_slot(std::string_view key) noexcept { return crc16::of(hash_tag(key)) % slot_count; }

}  // namespace lockstep::redis
