#pragma once

/// Chance, of two kinds.
///
/// `random_below` and `random_unit` are for jitter: fast, per thread, not secret. A child made by fork() starts a sequence
/// of its own, so that a pool of forked workers does not retry in step. `random_id` names holds, requests and processes:
/// it asks the kernel each time, so no two are ever the same, also across fork(), raw clone() and restored snapshots.
///
/// All may be called from any thread. They throw std::system_error only where the kernel has no getrandom().

#include <cstdint>
#include <string>

namespace lockstep::base {

/// Evenly one of 0 .. n - 1; 0 when n is 0.
std::uint64_t random_below(std::uint64_t n);

/// Evenly from [0, 1).
double random_unit();

/// 128 random bits as 22 characters of A-Z a-z 0-9 - _ (the url-safe base64 alphabet).
std::string random_id();

}  // namespace lockstep::base
