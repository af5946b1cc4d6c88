#pragma once

// Two ways to start a program: bound to the calling thread, or detached from everything.

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

namespace lockstep::embedded {

struct program {
    std::vector<std::string> arguments;  // [0] is the path of the executable
    std::string log_file;                // takes its output, emptied first
    std::vector<int> keep{};             // descriptors it inherits, as 3, 4 and so on; all others are closed
    std::optional<std::vector<std::string>> environment{};  // NAME=value; not given: that of this process
};

// A child in its own process group (Ctrl-C on the terminal is not for it) that the kernel kills when the calling *thread* ends:
// call it from a thread that lives as long as the child shall. Throws unavailable_error when it can't be executed.
pid_t spawn_bound(program const& program);

// A process of its own session, with no parent to wait for it, that outlives this one. Throws as above.
void spawn_detached(program const& program);

}  // namespace lockstep::embedded
