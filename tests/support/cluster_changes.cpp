// Slots that move and masters that fail.
#include "cluster.hpp"
#include "cluster_view.hpp"
#include "eventually.hpp"

#include <algorithm>
#include <stdexcept>

namespace lockstep::test {

void cluster::begin_migration(int slot, std::size_t to) {
    auto const from = owner_of(slot);
    if (from == to) throw std::runtime_error{"slot " + std::to_string(slot) + " is there already"};
    auto const number = std::to_string(slot);
    // The new owner first: else a client sent there by ASK could be sent back.
    nodes_.at(to)->must({"CLUSTER", "SETSLOT", number, "IMPORTING", ids_[from]});
    nodes_[from]->must({"CLUSTER", "SETSLOT", number, "MIGRATING", ids_[to]});
    moves_.push_back({.slot = slot, .from = from, .to = to});
}

cluster::move const& cluster::move_of(int slot) const {
    auto const found = std::find_if(moves_.begin(), moves_.end(), [slot](auto const& one) { return one.slot == slot; });
    if (found == moves_.end()) throw std::runtime_error{"slot " + std::to_string(slot) + " is not on the move"};
    return *found;
}

void cluster::move_keys(int slot) {
    auto const& [number, from, to] = move_of(slot);
    while (true) {
        auto const keys = nodes_[from]->must({"CLUSTER", "GETKEYSINSLOT", std::to_string(number), "100"});
        if (keys.elements.empty()) return;
        std::vector<std::string> request{"MIGRATE", "127.0.0.1", std::to_string(nodes_[to]->port()), "", "0", "5000"};
        if (!options_.password.empty()) request.insert(request.end(), {"AUTH", options_.password});
        request.emplace_back("KEYS");
        for (auto const& key : keys.elements) request.push_back(key.text);
        nodes_[from]->must(request);  // NOKEY, when they expired or were deleted meanwhile, is no error
    }
}

void cluster::finish_migration(int slot) {
    auto const [number, from, to] = move_of(slot);
    std::vector<std::string> const request{"CLUSTER", "SETSLOT", std::to_string(number), "NODE", ids_[to]};
    // The new owner first: it makes the claim. The old one second: from then on it answers MOVED and not ASK.
    nodes_[to]->must(request);
    nodes_[from]->must(request);
    for (std::size_t i = 0; i < nodes_.size(); ++i)
        if (i != to && i != from && reachable(i) && view_of(i).myself().master) nodes_[i]->must(request);
    std::erase_if(moves_, [slot](auto const& one) { return one.slot == slot; });
}

void cluster::migrate_slot(int slot, std::size_t to) {
    begin_migration(slot, to);
    move_keys(slot);
    finish_migration(slot);
}

void cluster::migrate_slots(int first, int last, std::size_t to) {
    for (int slot = first; slot <= last; ++slot)
        if (owner_of(slot) != to) migrate_slot(slot, to);
}

bool cluster::wait_until_master_is_not(std::size_t shard, std::size_t old, std::chrono::milliseconds timeout) {
    return eventually(
        [&] {
            auto const members = nodes_of(shard);
            auto const promoted = std::find_if(members.begin(), members.end(), [&](auto const index) {
                return index != old && reachable(index) && view_of(index).myself().master;
            });
            if (promoted == members.end()) return false;
            for (std::size_t i = 0; i < nodes_.size(); ++i) {
                if (!reachable(i)) continue;
                auto const seen = view_of(i);
                auto const* const successor = seen.find(ids_[*promoted]);
                auto const* const predecessor = seen.find(ids_[old]);
                if (successor == nullptr || !successor->master || successor->slots.empty()) return false;
                if (predecessor != nullptr && !predecessor->slots.empty()) return false;
            }
            return true;
        },
        timeout);
}

void cluster::failover(std::size_t shard) {
    auto const old = master_of(shard);
    auto const members = nodes_of(shard);
    auto const replica = std::find_if(members.begin(), members.end(),
                                      [&](auto const index) { return index != old && reachable(index); });
    if (replica == members.end()) throw std::runtime_error{"the shard has no replica that runs"};
    // Asked again when it comes to nothing: the replica gives up after 5 s, or its link is not up yet.
    auto const moved = eventually(
        [&] {
            static_cast<void>(nodes_[*replica]->command({"CLUSTER", "FAILOVER"}));
            return wait_until_master_is_not(shard, old, std::chrono::seconds{6});
        },
        std::chrono::seconds{30});
    if (!moved || !wait_until_ok())
        throw std::runtime_error{"the failover did not happen:\n" + nodes_[*replica]->log()};
}

std::size_t cluster::kill_master(std::size_t shard) {
    auto const old = master_of(shard);
    nodes_[old]->kill9();
    if (!wait_until_master_is_not(shard, old) || !wait_until_ok())
        throw std::runtime_error{"nobody took over:\n" + nodes_[nodes_of(shard).back()]->log()};
    return old;
}

}  // namespace lockstep::test
