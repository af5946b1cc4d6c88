#pragma once

// What stands behind an `election` and is shared by everything that it started, so the object may go first.

#include "election/health_gate.hpp"
#include "election/seat.hpp"
#include "election/venue.hpp"

#include <lockstep/election.hpp>

#include <chrono>
#include <memory>
#include <mutex>
#include <stop_token>
#include <string>

namespace lockstep::detail {

/// With all times set: those that were left out follow from the others. Throws `invalid_argument_error` that names the option and what is allowed.
election_options checked_options(std::string_view name, election_options options);
/// As it was given, or this host's and process's.
std::string candidate_id(std::string_view name, std::string_view given);

class election_state : public std::enable_shared_from_this<election_state> {
public:
    using clock = venue::clock;

    election_state(std::shared_ptr<venue> where, std::string_view name, std::string id, election_options const& options);

    venue& where() const noexcept { return *where_; }
    std::shared_ptr<core> const& owner() const noexcept { return where_->owner(); }
    std::string const& name() const noexcept { return name_; }
    std::string const& id() const noexcept { return id_; }
    std::chrono::milliseconds retry_period() const noexcept { return *options_.retry_period; }
    std::shared_ptr<health_verdict> const& health() const noexcept { return health_; }  ///< null: no gate
    /// Watches the gate, and for those to whom it gives way. Once.
    void supervise();

    /// Null: not elected by then. A time that has passed: once, without standing in line.
    static task<std::shared_ptr<seat>> campaign(std::shared_ptr<election_state> self, clock::time_point until);
    /// The one it gave last; null: gone.
    std::shared_ptr<seat> current() const;

private:
    struct permission {
        bool stands;
        std::stop_token withdrawn;  ///< trips when it must not stand any more
    };
    permission ask_gate() const;
    void set_permission(bool stands);

    static task<void> watch_health(std::shared_ptr<core> owner, std::weak_ptr<election_state> which, std::chrono::milliseconds every);
    static task<void> watch_ranks(std::shared_ptr<core> owner, std::weak_ptr<election_state> which, std::chrono::milliseconds every);
    static task<bool> is_outranked(std::shared_ptr<election_state> self);
    static task<bool> wait_for_permission(std::shared_ptr<election_state> self, clock::time_point until);
    std::shared_ptr<seat> sit(std::unique_ptr<tenure> held);

    std::shared_ptr<venue> where_;
    std::string name_, id_;
    election_options options_;  // without id and gate, which may not live as long
    std::shared_ptr<health_verdict> health_;

    mutable std::mutex mutex_;
    bool stands_ = true;
    std::stop_source standing_;
    std::weak_ptr<seat> current_;
};

}  // namespace lockstep::detail
