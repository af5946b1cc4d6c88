// What one node of a cluster believes: CLUSTER NODES, parsed. Used by cluster.cpp and cluster_changes.cpp only.
#pragma once

#include "cluster.hpp"

#include <string>
#include <utility>
#include <vector>

namespace lockstep::test {

struct cluster::view {
    struct member {
        std::string id;
        std::string master_id;  // of a replica
        bool self = false;
        bool master = false;
        bool failed = false;
        long epoch = 0;
        std::vector<std::pair<int, int>> slots{};  // both ends included; slots on the move not among them

        [[nodiscard]] bool has(int slot) const;
    };

    explicit view(std::string const& cluster_nodes);

    [[nodiscard]] member const& myself() const;
    [[nodiscard]] member const* find(std::string const& id) const;
    // The parts on which all nodes of a healthy cluster agree, as a text to compare.
    [[nodiscard]] std::string opinion() const;

    std::vector<member> members;
};

}  // namespace lockstep::test
