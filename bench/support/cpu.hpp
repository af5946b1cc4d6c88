#pragma once

// Which core runs what, and how much of it somebody used.
//
// A wake-up across cores can cost far more than the request it is for, and the scheduler moves threads as it likes: the same loop
// then measures 370 or 36,000 requests a second. So everything is pinned, the same way for every contender.

#include <sys/types.h>

namespace lockstep::bench {

/// The first two cores this process may use. With one only, both are that one (and rows with many in flight say less).
struct cores {
    int server;
    int client;
    bool distinct() const noexcept { return server != client; }
};
cores available_cores();

/// Pins the calling thread; threads and processes it starts from then on inherit that.
void pin_this_thread(int core);

double thread_cpu_seconds();            ///< user + system, of the calling thread so far
double process_cpu_seconds(pid_t pid);  ///< user + system, of all its threads so far

double wall_seconds();  ///< monotonic

}  // namespace lockstep::bench
