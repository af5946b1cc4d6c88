#pragma once

#include <cstddef>
#include <string>

namespace lockstep::embedded {

struct server_config {
    std::string socket;
    std::string directory;  // where the server keeps its data
    bool persistent = false;
    bool sync_always = false;
    std::size_t maxmemory = 0;
};

// The text of the server's configuration file.
std::string config_text(server_config const& config);

}  // namespace lockstep::embedded
