// A Redis Cluster of real servers, put together with plain commands, and the operations that disturb one: slots that
// move, masters that fail.
//
//     cluster nodes;                                        // 3 masters, 3 replicas
//     nodes.migrate_slot(slot_of("key"), 2);                // to the master that is node 2
//     nodes.failover(0);
#pragma once

#include "clock_file.hpp"
#include "key_slot.hpp"
#include "redis_server.hpp"

#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace lockstep::test {

struct cluster_options {
    std::size_t masters = 3;
    std::size_t replicas_per_master = 1;
    std::chrono::milliseconds node_timeout{1000};
    std::string password{};
    std::vector<std::string> users{};   // ACL rules, as in server_options; the default user must keep its rights
    std::optional<tls_files> tls{};     // clients, replication and bus then speak TLS only
    std::vector<std::string> config{};  // further lines for every node
};

// Nodes are numbered: first the masters, one per shard, in the order of their slots, then the replicas of shard 0, of
// shard 1 and so on. A shard keeps its number and its nodes whoever its master is. Methods throw std::runtime_error
// when the cluster does not get there in time. One thread at a time; a migration may run beside any load.
class cluster {
public:
    // Ready when every node knows all others, says cluster_state:ok, and the replicas are in step.
    explicit cluster(cluster_options options = {});

    [[nodiscard]] std::string url() const;  // redis+cluster://127.0.0.1:p1,127.0.0.1:p2,... (rediss+cluster with TLS)
    [[nodiscard]] redis_server& node(std::size_t index) { return *nodes_.at(index); }
    [[nodiscard]] std::size_t size() const { return nodes_.size(); }
    [[nodiscard]] std::size_t shards() const { return options_.masters; }

    // By what the nodes say of themselves; of two that claim a slot the one with the later claim (config epoch).
    [[nodiscard]] std::size_t owner_of(int slot);
    [[nodiscard]] std::size_t master_of(std::size_t shard);
    [[nodiscard]] redis_server& master(std::size_t shard) { return node(master_of(shard)); }

    // The three steps of moving a slot, apart, so that a test can look at the moments between them. After the first,
    // the old owner answers ASK for keys it no longer has; after the last, MOVED, and all masters know.
    void begin_migration(int slot, std::size_t to);
    void move_keys(int slot);
    void finish_migration(int slot);
    void migrate_slot(int slot, std::size_t to);
    void migrate_slots(int first, int last, std::size_t to);

    // A replica takes over in agreement with its master, no write lost. Returns when all nodes know.
    void failover(std::size_t shard);
    // The master is killed and its replica promoted, after node_timeout and an election. Returns the number of the
    // killed node, when all the others know; node(n).restart() brings it back, as a replica.
    std::size_t kill_master(std::size_t shard);
    // True when a node of the shard other than `old` is its master and all running nodes know.
    [[nodiscard]] bool wait_until_master_is_not(std::size_t shard, std::size_t old,
                                                std::chrono::milliseconds timeout = std::chrono::seconds{30});
    // True when all running nodes say cluster_state:ok, agree on the owner of every slot, and replicas are in step.
    [[nodiscard]] bool wait_until_ok(std::chrono::milliseconds timeout = std::chrono::seconds{30});

private:
    struct view;  // CLUSTER NODES of one node, parsed
    struct move {
        int slot;
        std::size_t from;
        std::size_t to;
    };

    void start_nodes();
    void assign_slots();
    void introduce_everyone();
    void attach_replicas();
    [[nodiscard]] view view_of(std::size_t index);
    [[nodiscard]] std::string picture_of(std::size_t index);
    [[nodiscard]] bool is_ok(std::size_t index);
    [[nodiscard]] bool reachable(std::size_t index);
    [[nodiscard]] std::vector<std::size_t> nodes_of(std::size_t shard) const;
    [[nodiscard]] move const& move_of(int slot) const;

    cluster_options options_;
    std::unique_ptr<clock_file> clock_;  // before the nodes: it outlives them
    std::vector<std::unique_ptr<redis_server>> nodes_;
    std::vector<std::string> ids_;
    std::vector<move> moves_;
};

}  // namespace lockstep::test
