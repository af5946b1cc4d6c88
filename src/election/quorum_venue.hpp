#pragma once

#include "election/venue.hpp"
#include "quorum/plan.hpp"

#include <lockstep/redlock.hpp>

namespace lockstep::detail {

/// Throws `invalid_argument_error` for fewer nodes than the minimum, and for options that such an election can't have.
std::shared_ptr<venue> make_quorum_venue(redlock_nodes const& nodes, std::shared_ptr<quorum::anchor> same, std::string const& name, std::string const& id,
                                         election_options const& how);

}  // namespace lockstep::detail
