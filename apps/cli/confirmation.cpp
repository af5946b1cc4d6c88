#include "cli/confirmation.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <iostream>
#include <string>

namespace lockstep::cli {

bool confirmed(context const& all, std::string_view question) {
    if (::isatty(STDIN_FILENO) != 1) return true;
    all.print(fmt::format("{} Go on? [y/N] ", question));
    std::string line;
    std::getline(std::cin, line);
    return line == "y" || line == "Y" || line == "yes";
}

}  // namespace lockstep::cli
