#pragma once

// How much memory the program holds. A bench that uses this gets an operator new that can count; while it does not count, that
// is one predictable branch per allocation.

#include <cstddef>

namespace lockstep::bench {

/// What malloc has handed out, its own headers and rounding included.
std::size_t heap_in_use();

struct allocations {
    std::size_t count = 0;  ///< calls of operator new
    std::size_t bytes = 0;  ///< asked for, without what malloc adds
};
/// Counts from the first to the second, in all threads.
void start_counting_allocations();
allocations stop_counting_allocations();

}  // namespace lockstep::bench
