#pragma once

// Where an election is held: at one server (be it with Sentinel, or a Cluster), or at several independent nodes.

#include "election/seat.hpp"

#include <lockstep/election.hpp>

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>

namespace lockstep::engine {
struct kind;
}

namespace lockstep::detail {

class venue {
public:
    using clock = std::chrono::steady_clock;

    virtual ~venue() = default;

    // From any thread:
    /// In whose turns it happens.
    virtual std::shared_ptr<core> const& owner() const noexcept = 0;
    virtual void require_blocking() const = 0;

    /// Null: it does not lead by then. A time that has passed: once, without standing in line.
    virtual task<std::unique_ptr<tenure>> stand(clock::time_point until) = 0;
    virtual task<std::optional<leader_info>> leader() = 0;
    /// The highest priority of those who stand in line.
    virtual task<int> highest_in_line() = 0;
    virtual task<observation> observe(std::function<void(leader_change const&)> handler, std::string after) = 0;
};

/// How this candidate is known: '<pid> <host> <id>', as election_acquire.lua has it.
std::string describe_candidate(std::string const& id);

/// Worth another try, as it may be better soon: the server can't be reached, or refuses for the moment.
bool is_passing(error const& problem) noexcept;

/// how: as checked_options() returns them, as for all venues.
std::shared_ptr<venue> make_server_venue(std::shared_ptr<core> owner, std::string const& name, std::string const& id, election_options const& how);
/// An election of another kind, apart from those of users: the keys of the same name differ.
std::shared_ptr<venue> make_server_venue(std::shared_ptr<core> owner, engine::kind const& kind, std::string const& name, std::string const& id,
                                         election_options const& how);

}  // namespace lockstep::detail
