// How a thread of chaos_worker schedules jobs of all kinds, and changes its mind about some. chaos_workshop runs them.
#pragma once

#include "chaos_actor.hpp"
#include "chaos_job.hpp"

#include <lockstep/client.hpp>
#include <lockstep/job_client.hpp>

#include <cstdint>
#include <deque>
#include <string>
#include <vector>

namespace lockstep::chaos {

class employer {
public:
    employer(actor& self, client& by) : self_{self}, jobs_{by, jobs_name} {}

    void schedule();
    /// Cancels, requeues, moves or awaits one that it has scheduled.
    void change();

private:
    struct known_job {
        std::string value;
        std::string id;
        bool is_of_flow = false;
    };

    job_plan new_plan();
    void schedule_one(job_plan const& what);
    void schedule_many();
    void schedule_flow();
    void remember(known_job which);
    void change(known_job const& which);
    void wait_for(known_job const& which);

    actor& self_;
    job_client jobs_;
    std::uint64_t made_ = 0;
    std::deque<known_job> known_;
};

}  // namespace lockstep::chaos
