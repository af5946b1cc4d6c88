// What the tests of broadcast events, latches and barriers share: a look at the server's side of the object.
#pragma once

#include "lease_support.hpp"
#include "support/cluster.hpp"
#include "support/contract.hpp"
#include "support/eventually.hpp"
#include "support/fault_proxy.hpp"
#include "support/redis_server.hpp"
#include "support/sentinel_group.hpp"
#include "topology_support.hpp"

#include <cctype>
#include <string>
#include <utility>
#include <vector>

namespace lockstep::test {

/// How many fields of more than one letter begin with this one: waiting clients c, sessions a, arrivals h.
inline int fields_of(redis_server& server, std::string const& key, char letter) {
    auto const fields = server.must({"HKEYS", key}).elements;
    int count = 0;
    for (auto const& one : fields) count += one.text[0] == letter && one.text.size() > 1 ? 1 : 0;
    return count;
}

/// Registered waiters of an event or a latch.
inline int clients_waiting(redis_server& server, std::string const& key) { return fields_of(server, key, 'c'); }

/// How many commands clients sent, but for PING and the test's own looks.
inline long scripts_run(redis_server& server) { return calls_of(server, "evalsha") + calls_of(server, "eval"); }

/// Nobody polls: no script has run for a while.
inline bool falls_silent(redis_server& server) {
    return eventually([&] {
        auto const before = scripts_run(server);
        for (auto const until = now_ms() + 300; now_ms() < until;) {
            if (scripts_run(server) != before) return false;
        }
        return true;
    });
}

}  // namespace lockstep::test
