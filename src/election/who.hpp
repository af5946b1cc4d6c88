#pragma once

// '<pid> <host> <id>', as election_acquire.lua has it.

#include <charconv>
#include <cstdint>
#include <string>
#include <string_view>

namespace lockstep::detail {

inline void read_who(std::string_view text, std::int64_t& pid, std::string& host, std::string& id) {
    auto const first = text.find(' ');
    auto const second = first == std::string_view::npos ? first : text.find(' ', first + 1);
    if (second == std::string_view::npos) return;
    std::from_chars(text.data(), text.data() + first, pid);
    host = text.substr(first + 1, second - first - 1);
    id = text.substr(second + 1);
}

}  // namespace lockstep::detail
