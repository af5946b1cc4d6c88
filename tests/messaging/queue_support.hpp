// What the tests of queues share: a look at the server's side.
#pragma once

#include <lockstep/queue.hpp>

#include "integration/topology_support.hpp"
#include "support/child_process.hpp"
#include "support/cluster.hpp"
#include "support/contract.hpp"
#include "support/eventually.hpp"
#include "support/fault_proxy.hpp"
#include "support/program_path.hpp"
#include "support/redis_server.hpp"
#include "support/sentinel_group.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace lockstep::test {

using namespace std::chrono_literals;

inline std::string const queue_key = "lockstep:{name}:queue";

/// One client at the server, and one behind a proxy that can do to it what networks do.
class near_and_far : public testing::Test {
protected:
    redis_server server;
    fault_proxy proxy{server.address()};
    client near{server.url()};
    client far{proxy.url()};
};

/// All that can be taken now, acknowledged.
inline std::vector<std::string> drain(queue<std::string>& from) {
    std::vector<std::string> found;
    while (auto one = from.try_dequeue()) {
        found.push_back(one->value());
        one->ack();
    }
    return found;
}

/// Clients that wait for items.
inline std::string waiting(redis_server& server, std::string const& part = "waiting", std::string const& key = queue_key) {
    return std::to_string(server.must({"ZCARD", key + ":" + part}).integer);
}

/// Scripts that ran, that clients say who they are left out.
inline long calls(redis_server& server) {
    auto const stats = server.must({"INFO", "commandstats", "errorstats"}).text;
    auto const number = [&](std::string const& field) {
        auto const at = stats.find(field);
        return at == std::string::npos ? 0 : std::stol(stats.substr(at + field.size()));
    };
    return number("cmdstat_evalsha:calls=") + number("cmdstat_eval:calls=") + number("cmdstat_evalsha_ro:calls=") + number("cmdstat_eval_ro:calls=") -
           number("errorstat_NOSCRIPT:count=");
}

/// Nobody polls: no script has run for a while.
inline bool is_silent(redis_server& server) {
    return eventually([&] {
        auto const before = calls(server);
        for (auto const until = now_ms() + 700; now_ms() < until;) {
            if (calls(server) != before) return false;
        }
        return true;
    });
}

/// What is there of the queue: no items, no names. The records of calls go by themselves.
inline std::vector<std::string> leftovers(redis_server& server) {
    std::vector<std::string> found;
    for (auto const& key : server.must({"KEYS", "lockstep:*"}).elements) {
        if (key.text.find(":call:") == std::string::npos && key.text.find("{clients}") == std::string::npos && key.text.find("{objects/") == std::string::npos) found.push_back(key.text);
    }
    std::sort(found.begin(), found.end());
    return found;
}

}  // namespace lockstep::test
