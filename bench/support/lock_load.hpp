#pragma once

// Locks of our own, taken and released with nobody in the way. The release is waited for.

#include "support/load.hpp"

#include <lockstep/mutex.hpp>

#include <fmt/core.h>

#include <cstddef>
#include <vector>

namespace lockstep::bench {

inline worker take_and_release(load& work, client&, mutex& lock) {
    while (work.take()) {
        auto lease = co_await lock.async_acquire();
        co_await lease.async_release();
    }
}

inline std::vector<mutex> locks_of(client& through, std::size_t count) {
    std::vector<mutex> all;
    for (std::size_t i = 0; i != count; ++i) all.emplace_back(through, fmt::format("bench:{:012}", i));
    return all;
}

}  // namespace lockstep::bench
