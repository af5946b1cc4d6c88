// A worker's line to the referee of a chaos run: what it reports is there even if the worker is killed the moment after.
#pragma once

#include <string>

namespace lockstep::test {

// One per thread. Reports are packets on a unix socket: whole, in order, and in the kernel's hand when report() returns.
class witness {
public:
    explicit witness(std::string const& socket_path);
    ~witness();
    witness(witness const&) = delete;
    witness& operator=(witness const&) = delete;

    void report(std::string const& line);
    // The same, and the referee's answer. Both throw std::runtime_error when the referee is gone.
    [[nodiscard]] std::string ask(std::string const& line);

private:
    int socket_ = -1;
};

}  // namespace lockstep::test
