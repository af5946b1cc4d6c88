#include "program_path.hpp"

#include <cstdlib>
#include <filesystem>
#include <stdexcept>
#include <vector>

namespace lockstep::test {

std::string program_path(std::string const& name) {
    std::vector<std::filesystem::path> places;
    if (auto const* const place = std::getenv("LOCKSTEP_TEST_BIN")) places.emplace_back(place);
#ifdef LOCKSTEP_TEST_BIN
    places.emplace_back(LOCKSTEP_TEST_BIN);
#endif
    places.push_back(std::filesystem::read_symlink("/proc/self/exe").parent_path());
    std::string looked_in;
    for (auto const& place : places) {
        if (std::filesystem::exists(place / name)) return (place / name).string();
        looked_in += " " + place.string();
    }
    throw std::runtime_error{"no " + name + " in" + looked_in};
}

}  // namespace lockstep::test
