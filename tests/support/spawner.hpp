// Starts processes that die with this one, whatever kills it.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

namespace lockstep::test {

struct spawn_request {
    std::vector<std::string> arguments;    // [0] is looked up in PATH unless it has a slash
    std::vector<std::string> environment;  // NAME=value, complete
    int input = -1;                        // descriptors that become 0, 1 and 2
    int output = -1;
    int error = -1;
};

// Returns the pid once the program is running; throws std::system_error when it can't be executed. Any thread.
//
// PR_SET_PDEATHSIG fires when the *thread* that forked ends, not the process. So all forks are made by one thread that
// lives as long as the process: a child may be started from a short-lived thread and live on.
[[nodiscard]] pid_t spawn(spawn_request const& request);

}  // namespace lockstep::test
