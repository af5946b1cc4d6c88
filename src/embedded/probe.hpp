#pragma once

#include <sys/types.h>

#include <chrono>
#include <string>

namespace lockstep::embedded {

enum class answer {
    nobody,   // no such socket, or nobody listens there
    loading,  // reads its data; ask again
    silent,   // somebody listens but did not answer in time
    alive,
};

struct probe_result {
    answer state = answer::nobody;
    pid_t pid = 0;  // of the process that listens
};

// One blocking PING over a unix socket. Throws unavailable_error when another user's process answers.
probe_result probe(std::string const& socket_path, std::chrono::milliseconds patience);

}  // namespace lockstep::embedded
