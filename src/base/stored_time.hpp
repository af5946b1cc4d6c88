#pragma once

// Times as they are stored, in ms since 1970. Anybody may have stored them, so they may be out of the range of a clock that counts ns (1677 to 2262):
// then they are its first or its last ms.

#include <algorithm>
#include <chrono>
#include <cstdint>

namespace lockstep::base {

inline std::chrono::system_clock::time_point time_of_ms(std::int64_t ms) noexcept {
    using namespace std::chrono;
    constexpr auto first = ceil<milliseconds>(system_clock::duration::min()).count();
    constexpr auto last = floor<milliseconds>(system_clock::duration::max()).count();
    return system_clock::time_point{milliseconds{std::clamp<std::int64_t>(ms, first, last)}};
}

}  // namespace lockstep::base
