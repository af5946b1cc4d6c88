// What the tests of elections share: a look at the server's side, and what an observer saw.
#pragma once

#include "support/contract.hpp"
#include "support/eventually.hpp"
#include "topology_support.hpp"

#include <lockstep/election.hpp>

#include <algorithm>
#include <mutex>
#include <string>
#include <vector>

namespace lockstep::test {

/// How many candidates stand in line.
inline int candidates_at(redis_server& server, std::string const& name = "name") {
    auto const fields = server.must({"HGETALL", "lockstep:{" + name + "}:election"}).elements;
    int count = 0;
    for (std::size_t i = 0; i + 1 < fields.size(); i += 2) count += fields[i].text[0] == 'q' ? 1 : 0;
    return count;
}

/// What was observed, in order. Outlives the observation.
class seen_changes {
public:
    auto handler() {
        return [this](leader_change const& one) {
            std::lock_guard const guard{mutex_};
            all_.push_back(one);
        };
    }
    std::vector<leader_change> all() const {
        std::lock_guard const guard{mutex_};
        return all_;
    }
    /// "elected a, resigned a, elected b"
    std::string text() const {
        std::string made;
        for (auto const& one : all()) {
            if (!made.empty()) made += ", ";
            made += std::string{to_string(one.what)} + ' ' + one.id;
        }
        return made;
    }
    [[nodiscard]] bool becomes(std::string const& wanted, std::chrono::milliseconds timeout = 10s) const {
        return eventually([&] { return text() == wanted; }, timeout);
    }

private:
    mutable std::mutex mutex_;
    std::vector<leader_change> all_;
};

}  // namespace lockstep::test
