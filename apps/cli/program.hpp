#pragma once

#include "cli/exit_code.hpp"

namespace lockstep::cli {

/// The whole program.
exit_code run_program(int argc, char const* const* argv);

}  // namespace lockstep::cli
