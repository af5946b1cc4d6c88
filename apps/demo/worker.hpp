#pragma once

// One worker of the demo's fleet: a process of its own that uses one thing over and over, until its standard input ends. It says what happens
// on its standard output: lines of a time (steady clock, ns), a space, and a record as JSON.

#include <string>

namespace lockstep::demo {

struct worker_options {
    std::string url;
    std::string name;  ///< who it is
    std::string role;  ///< the name of what it uses: ledger, licences, catalogue or round
};

/// What the fleet contends for. A killed holder is replaced by the others after this long at most, and a little.
inline constexpr int ttl_ms = 2'000;

int run_worker(worker_options const& how);

}  // namespace lockstep::demo
