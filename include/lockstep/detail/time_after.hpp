#pragma once

#include <chrono>

namespace lockstep::detail {

/// A time of any clock as one of the steady clock; far away ones without overflow.
template <class Rep, class Period>
std::chrono::steady_clock::time_point time_after(std::chrono::duration<Rep, Period> const& time) {
    using namespace std::chrono;
    constexpr hours far{24 * 365 * 100};
    auto const now = steady_clock::now();
    if (time <= time.zero()) return now;
    return duration<double>(time) >= far ? steady_clock::time_point::max() : now + ceil<steady_clock::duration>(time);
}

}  // namespace lockstep::detail
