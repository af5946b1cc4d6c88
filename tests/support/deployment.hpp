// Servers in each of the ways in which people run them, for tests that must not see a difference. Nothing fails over here by itself,
// however long a test stops a server: tests of failovers start a sentinel_group or a cluster of their own.
#pragma once

#include "cluster.hpp"
#include "redis_server.hpp"
#include "sentinel_group.hpp"

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

namespace lockstep::test {

enum class topology { standalone, sentinel, cluster };

// Starting Sentinels or a cluster takes a second or two: tests share one and empty() it before each. One thread at a time.
class deployment {
public:
    explicit deployment(topology which);

    [[nodiscard]] topology which() const { return which_; }
    [[nodiscard]] std::string url() const;
    // The server that has the object of this name.
    [[nodiscard]] redis_server& server_of(std::string const& name);
    // How many servers share the names among them.
    [[nodiscard]] std::size_t masters() { return all_masters().size(); }
    // As if they had just been started: without data, scripts and statistics.
    void empty();

private:
    [[nodiscard]] std::vector<redis_server*> all_masters();

    topology which_;
    std::optional<redis_server> alone_;
    std::optional<sentinel_group> group_;
    std::optional<cluster> nodes_;
};

}  // namespace lockstep::test
