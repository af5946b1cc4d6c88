#pragma once

#include <unistd.h>

#include <array>
#include <string>

namespace lockstep::base {

/// This machine's, for people; empty if it has none.
inline std::string host_name() {
    std::array<char, 256> name{};
    return ::gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "";
}

}  // namespace lockstep::base
