#pragma once

// What a new connection says first, and whether the answers are good enough. Without sockets.

#include "resp/output.hpp"

#include <lockstep/reply.hpp>

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

namespace lockstep::redis {

struct handshake {
    std::string user;
    std::function<std::string()> password;  ///< asked at each connect: the file may have changed
    std::string client_name;
    int database = 0;
    bool check_server = true;      ///< version and eviction policy
    bool allow_eviction = false;
    bool require_master = false;   ///< Sentinel: ROLE must say so
    bool track = false;            ///< the server is to tell when keys change that were read here

    /// The password as it is now. One log-in asks once: `judge` must hide the one that was said.
    std::string secret() const { return password ? password() : std::string{}; }
    /// Appends the requests; returns how many replies will come.
    std::size_t say(resp::output& out, std::string const& secret) const;
    /// Throws `authentication_error` or `unsuitable_server_error`, which trying again does not mend, or `unavailable_error`, which it may.
    void judge(std::vector<reply> const& answers, std::string const& secret) const;
};

/// As CLIENT SETNAME takes it: printable and without spaces.
std::string clean_client_name(std::string name);

}  // namespace lockstep::redis
