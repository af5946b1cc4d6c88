#include "cli/commands.hpp"

#include <array>

namespace lockstep::cli {

std::span<sub_command const> sub_commands() {
    static constexpr std::array table{
        sub_command{"run", "run a command while holding a lock", add_run},
    };
    return table;
}

}  // namespace lockstep::cli
