// A file as it is now. Empty where there is none, or where it belongs to a process that ends while it is read.
#pragma once

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

namespace lockstep::test {

inline std::string file_content(std::filesystem::path const& file) {
    std::ifstream in{file, std::ios::binary};
    std::ostringstream out;
    out << in.rdbuf();  // an iterator over the buffer would throw what reading /proc of the dead gives
    return out.str();
}

}  // namespace lockstep::test
