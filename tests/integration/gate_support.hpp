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

/// How many scripts ran for what clients do with their objects. That they say who they are (which is all that ZADD and ZREM are for) is
/// none of it, nor is a call by a SHA1 that the server did not know yet.
inline long scripts_run(redis_server& server) {
    auto const stats = server.must({"INFO", "commandstats", "errorstats"}).text;
    auto const number = [&](std::string const& field) {
        auto const at = stats.find(field);
        return at == std::string::npos ? 0 : std::stol(stats.substr(at + field.size()));
    };
    auto const ran = number("cmdstat_evalsha:calls=") + number("cmdstat_eval:calls=") - number("errorstat_NOSCRIPT:count=");
    return ran - number("cmdstat_zadd:calls=") - number("cmdstat_zrem:calls=");
}

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
