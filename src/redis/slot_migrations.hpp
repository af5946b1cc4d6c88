#pragma once

// Slots that are between two nodes for a while, and the clients that only listen.
//
// While a slot migrates, scripts run and publish where their keys already are, at the target. Clients that subscribed at the source do not
// receive that, and since they send nothing, no ASK tells them. So a client that is answered ASK announces it on a channel of that slot,
// `<prefix>:{<n>}:migrating` (n: a number in that slot), which the source serves until the end. Each client that has a shard channel in
// a slot is subscribed to that one, too. When it receives an announcement it asks the source about a key that never exists: a node answers
// ASK for such a key exactly while the slot migrates. Then all its channels of the slot are subscribed at the target, too, and their
// listeners look again.
//
// An announcement is only a reason to ask. No address is taken from it, since clients log in where they connect. All calls in turns.

#include "redis/operation.hpp"
#include "redis/subscriptions.hpp"

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace lockstep::redis {

class slot_migrations final : listener {
public:
    /// With an empty prefix nothing is announced, and there are no second places.
    slot_migrations(router& way, subscriptions& listening, std::string prefix);
    ~slot_migrations();

    std::string channel_of(std::uint16_t slot) const;

    /// A shard channel is about to be subscribed here, or is no longer.
    void begins(std::string_view channel);
    void ends(std::string_view channel) noexcept;
    /// `request` was answered ASK; `address` names the target for comparison only. True: it should be tried again a little later. Scripts that
    /// run at the target take waiters that nobody can reach out of their queue, so those are given the time to subscribe there first.
    bool asked(std::uint16_t slot, connection& target, std::string const& address, operation const& request) noexcept;
    /// The target of the channel's slot, as far as it is known and serves subscriptions.
    connection* second_place(std::string_view channel) const noexcept;
    /// The target does not have the channel's slot (any more), or does not allow that.
    void second_refused(std::string_view channel) noexcept;
    /// No longer a target: its connection was lost, or is about to go.
    void forget(connection const& target) noexcept;
    /// A new map: slots whose target is their owner do not migrate any more.
    void remove_finished(std::function<connection const*(std::uint16_t)> const& owner_of) noexcept;
    void close() noexcept;

private:
    class question;  // to the source
    struct migration;

    migration& at(std::uint16_t slot);
    void announce(migration& which) noexcept;
    void tell(migration& which) noexcept;
    void probe(migration& which) noexcept;
    bool is_migrating_channel(std::string_view channel, std::uint16_t slot) const;

    void message(std::string_view channel, std::string_view payload) noexcept override;
    void subscribed() noexcept override {}
    void interrupted() noexcept override {}
    void refused(errc, std::string_view) noexcept override {}

    router& way_;
    subscriptions& listening_;
    std::string prefix_;
    bool closed_ = false;
    std::map<std::uint16_t, std::size_t> channels_;  // how many of this client's are in a slot
    std::map<std::uint16_t, std::unique_ptr<migration>> migrations_;
};

}  // namespace lockstep::redis
