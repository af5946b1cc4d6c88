#pragma once

#include "cli/exit_code.hpp"

#include <string>
#include <vector>

namespace lockstep::cli {

/// The whole program, with its arguments but not its name.
exit_code run_program(std::vector<std::string> arguments);

/// Takes the password out of the URL of --redis, where other users of the machine would see it for as long as this process runs (/proc/PID/cmdline, ps).
void hide_passwords(int argc, char** argv) noexcept;

}  // namespace lockstep::cli
