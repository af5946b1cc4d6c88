#include "cli/program.hpp"

int main(int argc, char** argv) { return static_cast<int>(lockstep::cli::run_program(argc, argv)); }
