// How a thread of chaos_worker uses what brings threads together: event and barrier.
#pragma once

#include "chaos_actor.hpp"

#include <lockstep/barrier.hpp>
#include <lockstep/client.hpp>

#include <vector>

namespace lockstep::chaos {

class meeter {
public:
    meeter(actor& self, client& by);
    meeter(meeter const&) = delete;
    meeter& operator=(meeter const&) = delete;

    void set_event();
    void wait_for_event();
    void use_barrier();

private:
    /// After a wait: whether it left anything behind that this process would take along if it were killed.
    void settle(std::uint64_t connects_before, bool woken);
    void complete();
    /// False: cancelled, and its arrival may not have been taken back yet.
    bool meet();

    actor& self_;
    client& by_;
    std::vector<barrier> barriers_;
};

}  // namespace lockstep::chaos
