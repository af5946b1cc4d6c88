#include "dashboard/connection_table.hpp"

#include <random>
#include <tuple>
#include <utility>

namespace lockstep::dashboard {

namespace {

// From the system: a client that could foresee its lot would come when it is high.
std::uint64_t draw_lot() {
    std::random_device source;
    return std::uniform_int_distribution<std::uint64_t>{}(source);
}

}  // namespace

// The end when nothing has to go, or nothing may; which of these, the caller tells by the number of entries.
connection_table::entries::iterator connection_table::victim_for(std::string const& network) {
    std::size_t untrusted = 0;
    for (auto const& [key, one] : entries_) untrusted += !one.trusted && one.network == network ? 1U : 0U;
    bool const own = untrusted >= limits_.untrusted_per_network;
    if (!own && entries_.size() < limits_.total) return entries_.end();
    auto const order = [](entry const& one) { return std::tuple{one.trusted, one.now, one.rank}; };
    auto victim = entries_.end();
    for (auto it = entries_.begin(); it != entries_.end(); ++it) {
        auto const& one = it->second;
        if (own ? one.trusted || one.network != network : one.trusted && one.now != activity::idle) continue;
        if (victim == entries_.end() || order(one) < order(victim->second)) victim = it;
    }
    return victim;
}

// Of those of a network that do the same, when they are too many; else the end.
connection_table::entries::iterator connection_table::victim_among(std::string const& network, activity now) {
    if (now != activity::delayed && now != activity::streaming) return entries_.end();
    auto const limit = now == activity::delayed ? limits_.delayed_per_network : limits_.streams_per_network;
    std::size_t count = 0;
    auto victim = entries_.end();
    for (auto it = entries_.begin(); it != entries_.end(); ++it) {
        auto const& one = it->second;
        if (one.trusted || one.now != now || one.network != network) continue;
        ++count;
        if (victim == entries_.end() || one.rank < victim->second.rank) victim = it;
    }
    return count > limit ? victim : entries_.end();
}

std::function<void()> connection_table::take_out(entries::iterator victim) {
    if (victim == entries_.end()) return {};
    auto drop = std::move(victim->second.drop);
    entries_.erase(victim);
    return drop;
}

std::optional<connection_table::id> connection_table::admit(std::string network, std::function<void()> drop) {
    std::function<void()> dropped;
    id admitted = 0;
    {
        std::lock_guard const lock{mutex_};
        dropped = take_out(victim_for(network));
        if (!dropped && entries_.size() >= limits_.total) return std::nullopt;
        admitted = next_id_++;
        entries_.emplace(admitted, entry{.network = std::move(network), .drop = std::move(drop), .rank = ++changes_});
    }
    if (dropped) dropped();
    return admitted;
}

void connection_table::set_state(id connection, activity now, bool trusted) {
    std::function<void()> dropped;
    {
        std::lock_guard const lock{mutex_};
        auto const found = entries_.find(connection);
        if (found == entries_.end()) return;
        auto& entry = found->second;
        entry.now = now;
        entry.trusted = trusted;
        entry.rank = now == activity::delayed ? draw_lot() : ++changes_;
        dropped = take_out(victim_among(entry.network, now));
    }
    if (dropped) dropped();
}

void connection_table::set_drop(id connection, std::function<void()> drop) {
    std::lock_guard const lock{mutex_};
    if (auto const found = entries_.find(connection); found != entries_.end()) found->second.drop = std::move(drop);
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
