#pragma once

// What the bench program is when it was started by itself: `bench_sync member <role> <port or path of the server> ...`. See members.cpp.

#include "support/raw_connection.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace lockstep::bench {

/// The command line of such a process.
std::vector<std::string> member_command(std::string_view role, endpoint const& where,
                                        std::vector<std::string> more = {});

/// If this process is one: runs it and returns what main returns; else -1.
int run_as_member(int argc, char** argv);

}  // namespace lockstep::bench
