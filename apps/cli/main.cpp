#include "cli/program.hpp"

#include <algorithm>
#include <utility>

int main(int argc, char** argv) {
    std::vector<std::string> arguments{argv + std::min(argc, 1), argv + argc};
    lockstep::cli::hide_passwords(argc, argv);
    return static_cast<int>(lockstep::cli::run_program(std::move(arguments)));
}
