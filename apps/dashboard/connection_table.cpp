#include "dashboard/connection_table.hpp"

#include <tuple>
#include <utility>

namespace lockstep::dashboard {

// The end when nothing has to go, or nothing may; which of these, the caller tells by the number of entries.
connection_table::entries::iterator connection_table::victim_for(std::string const& network) {
    std::size_t untrusted = 0;
    for (auto const& [key, one] : entries_) untrusted += !one.trusted && one.network == network ? 1U : 0U;
    bool const own = untrusted >= limits_.untrusted_per_network;
    if (!own && entries_.size() < limits_.total) return entries_.end();
    auto const order = [](entry const& one) { return std::tuple{one.trusted, !one.idle, one.since}; };
    auto victim = entries_.end();
    for (auto it = entries_.begin(); it != entries_.end(); ++it) {
        auto const& one = it->second;
        if (own ? one.trusted || one.network != network : one.trusted && !one.idle) continue;
        if (victim == entries_.end() || order(one) < order(victim->second)) victim = it;
    }
    return victim;
}

std::optional<connection_table::id> connection_table::admit(std::string network, std::function<void()> drop) {
    std::function<void()> dropped;
    id admitted = 0;
    {
        std::lock_guard const lock{mutex_};
        if (auto const victim = victim_for(network); victim != entries_.end()) {
            dropped = std::move(victim->second.drop);
            entries_.erase(victim);
        } else if (entries_.size() >= limits_.total) {
            return std::nullopt;
        }
        admitted = next_id_++;
        entries_.emplace(admitted, entry{.network = std::move(network), .drop = std::move(drop), .since = ++changes_});
    }
    if (dropped) dropped();
    return admitted;
}

void connection_table::set_state(id connection, bool idle, bool trusted) {
    std::lock_guard const lock{mutex_};
    auto const found = entries_.find(connection);
    if (found == entries_.end()) return;
    found->second.idle = idle;
    found->second.trusted = trusted;
    found->second.since = ++changes_;
}

void connection_table::remove(id connection) noexcept {
    std::lock_guard const lock{mutex_};
    entries_.erase(connection);
}

std::size_t connection_table::size() const {
    std::lock_guard const lock{mutex_};
    return entries_.size();
}

}  // namespace lockstep::dashboard
