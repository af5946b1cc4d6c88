#pragma once

// The cases of bench_sync, one source each. docs/bench.md says what they measure.

#include "support/stand.hpp"
#include "support/peers.hpp"

#include <cstddef>
#include <string>

namespace lockstep::bench {

void contended_in_one_process(stand& all, peer_kit& peers, std::string const& name, std::size_t contenders);
void contended_between_processes(stand& all, peer_kit& peers, std::string const& name);
void uncontended_many(stand& all, peer_kit& peers, std::string const& name);
void uncontended_one_at_a_time(stand& all, std::string const& name);
void many_waiters(stand& all, std::string const& name);
void hand_off(stand& all, std::string const& name);
void deaths(stand& all, std::string const& name);

/// How many operations take about the length of one measurement; the best of some tries, for whatever disturbs makes them slower.
template <class Run>
std::size_t operations_for(stand const& all, std::size_t least, Run run) {
    auto const goal = static_cast<double>(all.chosen.length.count()) * 1e-3;
    double rate = run(4 * least).rate();
    for (int i = 0; i != 4; ++i) rate = std::max(rate, run(static_cast<std::size_t>(rate * goal / 20) + least).rate());
    return static_cast<std::size_t>(rate * goal) + least;
}

}  // namespace lockstep::bench
