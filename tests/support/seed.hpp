// What chance starts from: LOCKSTEP_SEED in the environment, to make the same choices again, or another number each time.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <random>

namespace lockstep::test {

inline std::uint64_t chosen_seed() {
    auto const* const given = std::getenv("LOCKSTEP_SEED");
    return given != nullptr ? std::strtoull(given, nullptr, 10) : std::uint64_t{std::random_device{}()};
}

}  // namespace lockstep::test
