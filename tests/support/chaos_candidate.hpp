// How a thread of chaos_worker stands for leader: at a server, or over independent nodes.
#pragma once

#include "chaos_actor.hpp"

#include <lockstep/client.hpp>
#include <lockstep/election.hpp>
#include <lockstep/redlock.hpp>

#include <vector>

namespace lockstep::chaos {

class candidate {
public:
    candidate(actor& self, client& by);
    candidate(actor& self, redlock_nodes const& nodes);

    void use_election();

private:
    void lead(leadership leads);

    actor& self_;
    std::vector<election> elections_;
};

}  // namespace lockstep::chaos
