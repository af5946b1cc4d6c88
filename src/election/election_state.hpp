#pragma once

// What stands behind an `election` and is shared by everything that it started, so the object may go first.

#include "election/health_gate.hpp"
#include "election/seat.hpp"
#include "lease/target.hpp"
#include "scripts/script.hpp"

#include <lockstep/election.hpp>
#include <lockstep/error.hpp>
#include <lockstep/lease.hpp>
#include <lockstep/reply.hpp>

#include <chrono>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>

namespace lockstep::detail {

class election_state : public std::enable_shared_from_this<election_state> {
public:
    using clock = std::chrono::steady_clock;

    /// Throws `invalid_argument_error`.
    election_state(std::shared_ptr<core> owner, std::string_view name, election_options const& options);

    std::shared_ptr<core> const& owner() const noexcept { return owner_; }
    std::string const& name() const noexcept { return name_; }
    std::string const& id() const noexcept { return id_; }
    std::string const& changes_key() const noexcept { return what_->changes; }
    election_options const& options() const noexcept { return options_; }
    std::shared_ptr<verdict> const& health() const noexcept { return health_; }  ///< null: no gate
    /// Watches the gate, and for those to whom it gives way. Once, where there is something to watch.
    void supervise();

    /// Null: not elected by then. A time that has passed: once, without standing in line.
    static task<std::shared_ptr<seat>> campaign(std::shared_ptr<election_state> self, clock::time_point until);
    static task<std::optional<leader_info>> leader(std::shared_ptr<election_state> self);
    /// The one it gave last; null: gone.
    std::shared_ptr<seat> current() const;

private:
    struct permission {
        bool stands;
        std::stop_token withdrawn;  ///< trips when it must not stand any more
    };
    permission ask_gate() const;
    void set_permission(bool stands);

    task<reply> script(scripts::script const& which, std::string_view hold) const;
    static task<void> watch(std::shared_ptr<core> owner, std::weak_ptr<election_state> which, std::chrono::milliseconds every);
    static task<bool> outranked(std::shared_ptr<election_state> self);
    static task<bool> wait_for_permission(std::shared_ptr<election_state> self, clock::time_point until);
    static task<lease> stand(std::shared_ptr<election_state> self, clock::time_point until, std::stop_token withdrawn);
    static task<bool> is_replicated(std::shared_ptr<election_state> self, std::string hold);
    std::shared_ptr<seat> sit(lease held, std::string const& hold);

    std::shared_ptr<core> owner_;
    std::string name_, id_;
    election_options options_;  // its id is id_, its gate is the election's
    std::shared_ptr<engine::target const> what_;
    std::shared_ptr<verdict> health_;

    mutable std::mutex mutex_;
    bool stands_ = true;
    std::stop_source standing_;
    std::weak_ptr<seat> current_;
};

/// Worth another try, as it may be better soon: the server can't be reached, or refuses for the moment.
bool is_passing(error const& problem) noexcept;

}  // namespace lockstep::detail
