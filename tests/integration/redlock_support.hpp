// What the tests of redlock share: some servers that know nothing of each other, and a look at what they have.
#pragma once

#include "support/fault_proxy.hpp"
#include "support/forms.hpp"
#include "support/redis_server.hpp"
#include "topology_support.hpp"

#include <lockstep/redlock.hpp>

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace lockstep::test {

class server_set {
public:
    explicit server_set(std::size_t count, server_options const& options = {}) {
        auto quickly = options;
        quickly.wait_until_ready = false;
        for (std::size_t i = 0; i != count; ++i) all_.push_back(std::make_unique<redis_server>(quickly));
        for (auto const& one : all_) one->wait_until_ready();
    }

    redis_server& operator[](std::size_t index) { return *all_.at(index); }
    std::size_t size() const { return all_.size(); }
    std::vector<std::string> urls() const {
        std::vector<std::string> found;
        for (auto const& one : all_) found.push_back(one->url());
        return found;
    }
    /// How many of those that run have this value there.
    std::size_t that_have(std::string const& key, std::string const& value) {
        std::size_t count = 0;
        for (auto const& one : all_) count += one->running() && !one->stopped() && one->must({"GET", key}).text == value ? 1 : 0;
        return count;
    }
    std::size_t that_have(std::string const& key) {
        std::size_t count = 0;
        for (auto const& one : all_) count += one->running() && !one->stopped() && one->must({"EXISTS", key}).integer == 1 ? 1 : 0;
        return count;
    }

private:
    std::vector<std::unique_ptr<redis_server>> all_;
};

/// All nodes are connected: a test may allow less time than that takes on a busy machine.
inline void connect(redlock_nodes const& nodes) {
    redlock warm{nodes, "warm-up", {.node_timeout = 10s, .wait_limit = 30s}};
    for (int i = 0; i != 2; ++i) warm.acquire().release();
}

}  // namespace lockstep::test
