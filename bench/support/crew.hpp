#pragma once

// Some processes that contend for one lock, started once and told by lines what to run (docs/bench.md). Ours, the raw loops and the peers
// speak the same few words, so that they are measured in the same way:
//
//   ready                                                             once
//   <mode> <retry delay, ms> <contenders> <start, ms> <length, ms>    what to run; times are of the monotonic clock
//   <acquisitions> <seconds> <fewest> <most> <wait, us> ...           what came of it, by contender
//
// They begin at the same instant, and after the length each ends with the acquisition that it is in.

#include "support/measurement.hpp"
#include "support/process.hpp"

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace lockstep::bench {

struct job {
    std::string mode =
        "one";              ///< one: one name for all; strict: the same, without cohort; own: a name for each contender
    unsigned delay_ms = 0;  ///< peers: between two tries
    std::size_t contenders = 1;  ///< in each process
};

class crew {
public:
    /// Each runs the command, pinned; they are ready when this returns.
    crew(std::vector<std::string> const& command, std::size_t size, int core);

    measurement run(job const& what, std::chrono::milliseconds length);
    std::size_t size() const noexcept { return members_.size(); }

private:
    double cpu_seconds() const;

    std::vector<std::unique_ptr<process>> members_;
};

/// The other end of it, in a process of the bench's own: reads what to run and prints what came of it, until there is no more.
struct outcome {
    double seconds = 0;
    std::vector<std::size_t> counts{};  ///< by contender
    std::vector<double> waits{};        ///< seconds
};
struct assignment {
    std::string mode;
    std::size_t contenders;
    double end;  ///< as wall_seconds()
};
void serve_crew(std::function<outcome(assignment const&)> const& run);

/// The other end of two that hand something to each other: told how often, says <acquired> <release called> for each time, in s of the
/// monotonic clock.
struct turn {
    double acquired;
    double released;
};
void serve_turns(std::function<std::vector<turn>(std::size_t)> const& run);

}  // namespace lockstep::bench
