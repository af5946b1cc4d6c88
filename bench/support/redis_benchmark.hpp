#pragma once

// redis-benchmark as a contender: one connection, a pipeline depth, one command over and over.

#include "support/measurement.hpp"
#include "support/raw_connection.hpp"

#include <cstddef>
#include <string>
#include <vector>

namespace lockstep::bench {

struct redis_benchmark_run {
    std::size_t depth;
    std::size_t requests;              ///< rounded up to a multiple of the depth
    std::vector<std::string> command;  ///< `__rand_int__` in it becomes a number of 12 digits when `keys` is not 0
    /// 0: the command as it is. Otherwise its requests go through the keys 0, 1, ... keys - 1 in this order: redis-benchmark can only
    /// draw keys, so it runs with a random() that counts (preload/counting_random.cpp).
    std::size_t keys = 0;
};

/// Its own figure for the rate (it counts from the first write to the last reply, in ms), and the CPU time of the whole process.
measurement run_redis_benchmark(endpoint const& where, int core, redis_benchmark_run const& run);

}  // namespace lockstep::bench
