// Putting a cluster together and asking it how it is. Slots that move and masters that fail: cluster_changes.cpp.
#include "cluster.hpp"

#include "cluster_view.hpp"
#include "eventually.hpp"

#include <algorithm>
#include <set>
#include <stdexcept>

namespace lockstep::test {

using namespace std::chrono_literals;

namespace {

// A master does not serve in its first 2 s (CLUSTER_WRITABLE_DELAY), lest it come back from a reboot before it has
// heard of its successor. Nobody waits for that here: the nodes start with their clocks this far behind, and are put
// right once they have looked at them, before they know of each other.
constexpr auto head_start = 2500ms;

}  // namespace

cluster::cluster(cluster_options options) : options_{std::move(options)} {
    start_nodes();
    assign_slots();
    introduce_everyone();
    attach_replicas();
    if (!wait_until_ok()) throw std::runtime_error{"the cluster does not come up:\n" + picture_of(0) + node(0).log()};
}

void cluster::start_nodes() {
    clock_ = std::make_unique<clock_file>(-head_start);
    auto config = options_.config;
    config.insert(
        config.begin(),
        {"cluster-config-file nodes.conf", "cluster-node-timeout " + std::to_string(options_.node_timeout.count()),
         "cluster-announce-ip 127.0.0.1",
         // A replica may take over however long ago it heard of its master, and stays with its shard.
         "cluster-replica-validity-factor 0", "cluster-allow-replica-migration no"});
    for (std::size_t i = 0; i < options_.masters * (1 + options_.replicas_per_master); ++i) {
        nodes_.push_back(std::make_unique<redis_server>(server_options{.tls = options_.tls,
                                                                       .password = options_.password,
                                                                       .users = options_.users,
                                                                       .config = config,
                                                                       .cluster = true,
                                                                       .clock = clock_.get(),
                                                                       .wait_until_ready = false}));
    }
    for (auto const& node : nodes_) {
        node->wait_until_ready();
        ids_.push_back(node->must({"CLUSTER", "MYID"}).text);
    }
}

void cluster::assign_slots() {
    for (std::size_t i = 0; i < nodes_.size(); ++i) {
        nodes_[i]->must(
            {"CLUSTER", "SET-CONFIG-EPOCH", std::to_string(i + 1)});  // else they collide, and sort that out slowly
        if (i >= options_.masters) continue;
        auto const first = i * slot_count / options_.masters;
        auto const last = (i + 1) * slot_count / options_.masters - 1;
        // Makes the node work out its state, and so look at its clock, before it replies.
        nodes_[i]->must({"CLUSTER", "ADDSLOTSRANGE", std::to_string(first), std::to_string(last)});
    }
    clock_->set_offset(0ms);
}

// Everyone to everyone: gossip would get there too, at a few nodes per second.
void cluster::introduce_everyone() {
    for (std::size_t i = 0; i < nodes_.size(); ++i) {
        for (std::size_t j = i + 1; j < nodes_.size(); ++j) {
            auto const& other = *nodes_[j];
            nodes_[i]->must(
                {"CLUSTER", "MEET", "127.0.0.1", std::to_string(other.port()), std::to_string(other.bus_port())});
        }
    }
}

void cluster::attach_replicas() {
    for (std::size_t shard = 0; shard < options_.masters; ++shard) {
        for (auto const index : nodes_of(shard)) {
            if (index == shard) continue;
            // Refused until the replica has shaken hands with its master.
            auto const attached = eventually([&] {
                return !nodes_[index]->command({"CLUSTER", "REPLICATE", ids_[shard]}).is_error();
            });
            if (!attached) throw std::runtime_error{"a replica does not find its master:\n" + nodes_[index]->log()};
        }
    }
}

std::string cluster::url() const {
    std::string text = options_.tls ? "rediss+cluster://" : "redis+cluster://";
    for (auto const& node : nodes_) {
        if (text.back() != '/') text += ",";
        text += node->address().address();
    }
    return text;
}

std::vector<std::size_t> cluster::nodes_of(std::size_t shard) const {
    std::vector<std::size_t> members{shard};
    for (std::size_t i = 0; i < options_.replicas_per_master; ++i)
        members.push_back(options_.masters + shard * options_.replicas_per_master + i);
    return members;
}

bool cluster::reachable(std::size_t index) { return nodes_[index]->running() && !nodes_[index]->stopped(); }

cluster::view cluster::view_of(std::size_t index) { return view{nodes_[index]->must({"CLUSTER", "NODES"}).text}; }

std::string cluster::picture_of(std::size_t index) {
    return nodes_[index]->must({"CLUSTER", "NODES"}).text + nodes_[index]->must({"CLUSTER", "INFO"}).text;
}

bool cluster::is_ok(std::size_t index) {
    auto const about = nodes_[index]->must({"CLUSTER", "INFO"}).text;
    auto const known = "cluster_known_nodes:" + std::to_string(nodes_.size()) + "\r";
    if (about.find("cluster_state:ok") == std::string::npos || about.find(known) == std::string::npos) return false;
    return nodes_[index]->info("role") == "master" || nodes_[index]->info("master_link_status") == "up";
}

bool cluster::wait_until_ok(std::chrono::milliseconds timeout) {
    return eventually(
        [this] {
            std::set<std::string> opinions;  // who owns what, who follows whom
            for (std::size_t i = 0; i < nodes_.size(); ++i) {
                if (!reachable(i)) continue;
                if (!is_ok(i)) return false;
                opinions.insert(view_of(i).opinion());
            }
            return opinions.size() == 1;
        },
        timeout);
}

std::size_t cluster::owner_of(int slot) {
    std::optional<std::size_t> owner;
    long latest = -1;
    for (std::size_t i = 0; i < nodes_.size(); ++i) {
        if (!reachable(i)) continue;
        auto const self = view_of(i).myself();
        if (!self.master || !self.has(slot) || self.epoch <= latest) continue;
        owner = i;
        latest = self.epoch;
    }
    if (!owner) throw std::runtime_error{"nobody serves slot " + std::to_string(slot)};
    return *owner;
}

std::size_t cluster::master_of(std::size_t shard) {
    std::optional<std::size_t> master;
    long latest = -1;
    for (auto const i : nodes_of(shard)) {
        if (!reachable(i)) continue;
        auto const self = view_of(i).myself();
        if (!self.master || self.epoch <= latest) continue;
        master = i;
        latest = self.epoch;
    }
    if (!master) throw std::runtime_error{"shard " + std::to_string(shard) + " has no master"};
    return *master;
}

}  // namespace lockstep::test
