// What the tests of Redis Cluster share.
#pragma once

#include "topology_support.hpp"

#include "support/cluster.hpp"
#include "support/key_slot.hpp"

#include <string>

namespace lockstep::test {

/// A hash tag whose slot belongs to that master of a cluster that was just put together; the `nth` of them.
inline std::string tag_on(std::size_t master, std::size_t masters = 3, int nth = 0) {
    auto const first = static_cast<int>(master * slot_count / masters);
    auto const last = static_cast<int>((master + 1) * slot_count / masters) - 1;
    for (int i = 0;; ++i) {
        auto tag = "{tag-" + std::to_string(i) + "}";
        auto const slot = slot_of(tag);
        if (slot >= first && slot <= last && nth-- == 0) return tag;
    }
}

inline client_options patient(cluster const& nodes, std::string const& name = "worker") {
    return {.url = nodes.url(), .name = name, .command_timeout = 40s};
}

/// How often all nodes together were asked for their map.
inline long map_requests(cluster& nodes) {
    long sum = 0;
    for (std::size_t i = 0; i < nodes.size(); ++i) sum += calls_of(nodes.node(i), "cluster|slots");
    return sum;
}

inline long errors_everywhere(cluster& nodes, std::string const& word) {
    long sum = 0;
    for (std::size_t i = 0; i < nodes.size(); ++i) sum += errors_of(nodes.node(i), word);
    return sum;
}

/// Moves some keys of a slot that is on its way, and leaves the others.
inline void move_some(redis_server& from, redis_server& to, std::vector<std::string> const& keys) {
    std::vector<std::string> request{"MIGRATE", "127.0.0.1", std::to_string(to.port()), "", "0", "5000", "KEYS"};
    request.insert(request.end(), keys.begin(), keys.end());
    from.must(request);
}

}  // namespace lockstep::test
