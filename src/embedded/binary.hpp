#pragma once

#include <string>
#include <vector>

namespace lockstep::embedded {

// The server's executable; `wanted` is a path, a name to look up, or empty. The order is in lockstep/embedded_server.hpp.
std::string find_server_binary(std::string const& wanted);

// The last step of it: redis-server, else valkey-server, in the first of the directories that has it.
std::string find_server_binary_in(std::vector<std::string> const& directories);

}  // namespace lockstep::embedded
