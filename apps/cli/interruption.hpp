#pragma once

// For commands that wait: Ctrl-C and its like end the waiting in an orderly way, so that nothing is left behind at the server.

#include "cli/context.hpp"
#include "cli/signals.hpp"

#include <functional>
#include <stop_token>

namespace lockstep::cli {

struct interruption_habits {
    /// At SIGTSTP; what it is given stops this process, and returns when it is continued.
    std::function<void(std::function<void()> const&)> pause{};
    /// At a second signal that ends: somebody does not want to wait. Need not return. SIGHUP is none, which comes from the shell and from the kernel.
    std::function<void(int)> hurry{};
};

/// Calls `work` with a token that trips at SIGINT, SIGTERM, SIGHUP and SIGQUIT. What such a signal ended returns 128+n. Make the client
/// inside of `work`: signals must be blocked before its threads start.
exit_code interruptible(std::function<exit_code(std::stop_token)> const& work, interruption_habits const& habits = {});

}  // namespace lockstep::cli
