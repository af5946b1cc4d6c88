// What the nemesis will do and when: drawn from a seed alone, so that the same seed makes the same choices again.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::chaos {

enum class topology {
    standalone,        // behind fault proxies, with a clock that jumps
    sentinel,          // fails over, asynchronously
    cluster,           // slots move
    cluster_failover,  // slots move and masters fail over
    quorum,            // independent nodes, each behind a fault proxy
};

enum class deed {
    kill,           // a worker; another takes its place
    kill_holder,    // the one that last used a name
    nap,            // a worker sleeps until its wake
    nap_holder,     // the one that last used a name
    wake,           // of what slept under this number
    cut,            // a worker's connections
    drop_reply,     // its next reply is lost, and the connection with it
    refuse,         // it cannot connect until its heal; what it has is cut
    heal,
    lag,            // its bytes take so long, until its heal
    script_flush,
    client_kill,    // all connections at the server, from there
    server_nap,     // the server sleeps for so long
    clock_back,
    clock_forward,
    failover,       // by agreement
    kill_master,    // and restart it later
    migrate,        // the slot of a name
    kill_node,      // one of the independent ones; it comes back with its data
};
char const* name_of(deed what);

struct step {
    std::chrono::milliseconds at{0};  // since the beginning
    deed what{};
    std::uint64_t whom = 0;           // a worker or a server; taken modulo their number
    std::uint64_t name = 0;           // taken modulo their number
    std::chrono::milliseconds amount{0};

    bool operator==(step const&) const = default;
};

/// In order of time; every nap has its wake and every fault its heal before the end.
std::vector<step> make_plan(std::uint64_t seed, topology where, std::chrono::milliseconds length, std::size_t workers);

}  // namespace lockstep::chaos
