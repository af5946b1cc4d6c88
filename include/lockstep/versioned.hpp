#pragma once

/// A value and its version: what shared values and the fields of shared maps are read as.

#include <chrono>
#include <cstdint>

namespace lockstep {

/// Each change of an object gives a larger version than every earlier one, also after the object was gone and after a failover. 0 stands for
/// "there is no value".
template <class T>
struct versioned {
    T value;
    std::uint64_t version = 0;

    T const& operator*() const noexcept { return value; }
    T const* operator->() const noexcept { return &value; }
};

/// How one write is done.
struct write_options {
    /// How long the value is there; 0: for good. Negative: as the object's options say. Not for fields of a map, which have none of their own.
    std::chrono::milliseconds ttl{-1};
    /// Refused with `stale_fence_error` when somebody has written with a larger one; equal ones are accepted. 0: not checked.
    std::uint64_t fence = 0;
};

}  // namespace lockstep
