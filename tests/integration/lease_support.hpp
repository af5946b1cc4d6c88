// What the tests of leases share: a look at the server's side of what is held.
#pragma once

#include "scripts/all.hpp"
#include "support/forms.hpp"
#include "support/redis_server.hpp"
#include "topology_support.hpp"

#include <lockstep/mutex.hpp>

#include <optional>
#include <string>

namespace lockstep::test {

inline reply lock_fields(redis_server& server, std::string const& name) {
    return server.must({"HGETALL", "lockstep:{" + name + "}:lock"});
}

/// How many holds are in the server's queue.
inline int waiting_at(redis_server& server, std::string const& name) {
    auto const fields = lock_fields(server, name).elements;
    int count = 0;
    for (std::size_t i = 0; i + 1 < fields.size(); i += 2) count += fields[i].text[0] == 'q' ? 1 : 0;
    return count;
}

/// Which hold has it; "": none.
inline std::string held_at(redis_server& server, std::string const& name) {
    auto const key = "lockstep:{" + name + "}:lock";
    auto const owner = server.must({"HGET", key, "o"}).text;
    return owner == "*" ? server.must({"HGET", key, "p"}).text : owner;
}

struct pool_state {
    std::int64_t count, available, holders, waiting;
};

/// The server's side of a semaphore, shared mutex, recursive mutex or event.
inline pool_state pool_numbers(redis_server& server, std::string const& key) {
    auto const read = server.must({"EVAL", std::string{scripts::pool_read.text}, "1", key}).elements;
    return {read.at(0).integer, read.at(1).integer, read.at(2).integer, read.at(3).integer};
}

}  // namespace lockstep::test
