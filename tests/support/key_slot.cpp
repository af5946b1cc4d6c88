#include "key_slot.hpp"

namespace lockstep::test {

int slot_of(std::string_view key) {
    if (auto const open = key.find('{'); open != std::string_view::npos) {
        auto const close = key.find('}', open);
        if (close != std::string_view::npos && close > open + 1) key = key.substr(open + 1, close - open - 1);
    }
    unsigned crc = 0;
    for (auto const letter : key) {  // bit by bit: no table to get wrong
        crc ^= static_cast<unsigned>(static_cast<unsigned char>(letter)) << 8;
        for (int bit = 0; bit < 8; ++bit) crc = ((crc & 0x8000U) != 0 ? (crc << 1) ^ 0x1021U : crc << 1) & 0xffffU;
    }
    return static_cast<int>(crc % slot_count);
}

}  // namespace lockstep::test
