// What the dashboard does to jobs, and the record of who did it.
#include "dashboard/audited.hpp"
#include "dashboard/job_desk.hpp"

#include <utility>

namespace lockstep::dashboard {

namespace {

char const* action_of(queue_deed deed) {
    switch (deed) {
        case queue_deed::pause: return "pause-jobs";
        case queue_deed::resume: return "resume-jobs";
        case queue_deed::retry: return "retry-all-jobs";
        case queue_deed::cancel: return "cancel-all-jobs";
    }
    return "";
}

std::int64_t done_to(job_client& of, queue_deed deed, std::string const& type, job_state state) {
    lockstep::job_filter which;
    which.type = type;
    which.state = state;
    switch (deed) {
        case queue_deed::pause: return of.pause(type) ? 1 : 0;
        case queue_deed::resume: return of.resume(type) ? 1 : 0;
        case queue_deed::retry: return of.retry_all(which);
        case queue_deed::cancel: return of.cancel_all(which);
    }
    return 0;
}

}  // namespace

std::int64_t job_desk::act(queue_deed deed, queue_filter const& which, job_state state, std::string const& by, std::string const& reason) {
    observe::audit_fields fields{{"action", action_of(deed)}, {"name", which.name}, {"kind", "jobs"}, {"hold", which.type}, {"fence", "0"}, {"owner", ""}, {"by", by}};
    job_client of{client_, which.name};
    auto const done = audited(client_, std::move(fields), reason, [&] { return done_to(of, deed, which.type, state); });
    std::lock_guard const lock{mutex_};
    last_.reset();  // as below
    return done;
}

bool job_desk::act(job_deed deed, std::string const& name, job_info const& which, std::string const& by, std::string const& reason) {
    bool const is_retry = deed == job_deed::retry;
    observe::audit_fields fields{{"action", is_retry ? "retry-job" : "cancel-job"}, {"name", name}, {"kind", "job"}, {"hold", which.id}, {"fence", "0"},
                                 {"owner", which.worker}, {"by", by}};
    job_client of{client_, name};
    bool const is_done = audited(client_, std::move(fields), reason, [&] { return is_retry ? of.requeue(which.id) : of.cancel(which.id); });
    std::lock_guard const lock{mutex_};
    last_.reset();  // who did it wants to see it, and one that is being made may have missed it
    return is_done;
}

}  // namespace lockstep::dashboard
