#pragma once

#include "cli/exit_code.hpp"

#include <optional>
#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace lockstep::cli {

class context;

/// Declares everything in the new `app`, and sets `all.action` to what the arguments ask for. Otherwise returns the code to end with: help was shown, or
/// something is wrong with them.
std::optional<exit_code> parse_arguments(CLI::App& app, std::vector<std::string> arguments, context& all);

/// The whole program, with its arguments but not its name.
exit_code run_program(std::vector<std::string> arguments);

/// Takes the password out of the URL of --redis, where other users of the machine would see it for as long as this process runs (/proc/PID/cmdline, ps).
void hide_passwords(int argc, char** argv) noexcept;

}  // namespace lockstep::cli
