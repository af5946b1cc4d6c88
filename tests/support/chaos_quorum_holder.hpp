// How a thread of chaos_worker uses redlocks.
#pragma once

#include "chaos_actor.hpp"

#include <lockstep/redlock.hpp>

#include <vector>

namespace lockstep::chaos {

class quorum_holder {
public:
    quorum_holder(actor& self, redlock_nodes const& nodes);

    void use_redlock();

private:
    void extend(redlock_lease& held);
    void use(redlock_lease held);

    actor& self_;
    std::vector<redlock> locks_;
};

}  // namespace lockstep::chaos
