// How a thread of chaos_worker uses rate limits.
#pragma once

#include "chaos_actor.hpp"

#include <lockstep/client.hpp>
#include <lockstep/rate_limiter.hpp>

#include <vector>

namespace lockstep::chaos {

class guest {
public:
    guest(actor& self, client& by);

    void ask_for_admission();

private:
    actor& self_;
    std::vector<rate_limiter> limiters_;
};

}  // namespace lockstep::chaos
