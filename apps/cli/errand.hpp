#pragma once

// A program that handles one job: its payload on standard input, its result on standard output, what it complains of on standard error.

#include "cli/groups.hpp"

#include <chrono>
#include <csignal>
#include <functional>
#include <stop_token>
#include <string>

namespace lockstep::cli {

struct errand {
    command_line what;
    std::string input;
    /// Then its process group gets SIGTERM, and SIGKILL after `grace`.
    std::stop_token stop;
    std::chrono::milliseconds grace{5'000};
    /// A line `progress: <text>` of its output; of several that come together the last one.
    std::function<void(std::string)> on_progress;
    /// Asked when we were stopped, and it with us: false, and it is killed instead of continued.
    std::function<bool()> may_go_on = [] { return true; };
    sigset_t mask{};
    command_groups* among = nullptr;
};

struct errand_end {
    int status = 0;         ///< as from waitpid
    std::string output;     ///< without lines of progress, and without the last line end
    bool is_cut = false;    ///< there was more than is kept
    std::string complaint;  ///< the last line of its standard error
};

/// Runs it to its end, on this thread; what it leaves in its process group is killed, also when this throws. Its standard error goes on to ours. Throws
/// `failure` and `std::system_error` where it can't be started.
errand_end run_errand(errand what);

}  // namespace lockstep::cli
