#pragma once

// Fires the schedules of one name's jobs, in one of all processes that are ready to: who is elected.
//
// The leader only reckons and asks. What is due, and whether it was fired already, the server decides (cron_fire.lua): so two who both think that they
// lead cannot fire a due time twice, and one that dies leaves what it has not fired to the next. As long as there is no schedule nobody stands; who puts
// one has all told.
//
// The election is of a kind of its own, so that no election of the user's can be in its way. Workers of version 0.1 stand in the ordinary one named
// 'jobs:<name>'; while such workers run beside newer ones there are two leaders, which is no harm.
//
// A leader that does not know the time zone of a schedule leaves that one as it is, and gives others a chance to lead now and then.

#include "election/election_state.hpp"
#include "jobs/cron_text.hpp"
#include "jobs/job_office.hpp"
#include "messaging/doorbell.hpp"

#include <chrono>
#include <cstdint>
#include <exception>
#include <memory>
#include <set>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::detail {

/// Where the workers of jobs of this name elect who fires their schedules.
std::shared_ptr<venue> make_scheduler_venue(std::shared_ptr<core> owner, std::string const& name, std::chrono::milliseconds takeover);

class cron_scheduler {
public:
    cron_scheduler(std::shared_ptr<job_office> office, std::chrono::milliseconds takeover);

    /// Until it is stopped, or the client is closed.
    static task<void> run(std::shared_ptr<cron_scheduler> self);
    void request_stop() noexcept { stop_.request_stop(); }  ///< from any thread

private:
    struct due_one {
        std::string id;
        std::int64_t due_ms = 0;
        std::string head;
    };
    struct look {
        std::int64_t now_ms = 0;
        std::int64_t next_ms = 0;  ///< 0: there is nothing to fire
        std::int64_t following_ms = 0;  ///< the first that is not due yet; 0: none
        std::vector<due_one> due;
    };

    static task<void> stand(std::shared_ptr<cron_scheduler> self);
    static task<void> listen(std::shared_ptr<cron_scheduler> self);
    static task<void> wait_for_turn(std::shared_ptr<cron_scheduler> self);
    static task<void> lead(std::shared_ptr<cron_scheduler> self);
    static task<look> fire(std::shared_ptr<cron_scheduler> self, std::vector<std::string> what);
    static task<void> nudge(std::shared_ptr<cron_scheduler> self);
    std::vector<std::string> reckon_all(look const& seen);
    void leave_to_others(std::string const& id, std::string_view why);
    void report(std::exception_ptr why) const noexcept;

    std::shared_ptr<job_office> office_;
    std::shared_ptr<election_state> election_;
    cron_shelf shelf_;
    std::shared_ptr<doorbell> changed_ = std::make_shared<doorbell>();
    subscription ear_;
    std::stop_source stop_;
    // Types of what was entered: whoever was told of it may have died.
    std::set<std::string> owed_;
    std::chrono::steady_clock::time_point nudge_at_{};
    // Of schedules whose time zone is not known here:
    std::size_t skipped_ = 0;  // of those that were due when it looked last
    bool resigns_ = false;     // others may know it
    std::chrono::steady_clock::time_point next_resignation_{};
};

}  // namespace lockstep::detail
