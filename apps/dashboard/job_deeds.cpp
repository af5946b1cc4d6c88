// What the dashboard does to jobs, and the record of who did it: in the same stream, and in the same form, as what monitors do to holds
// (src/observe/actions.cpp).
#include "dashboard/job_desk.hpp"

#include "observe/reader.hpp"

#include <lockstep/error.hpp>
#include <lockstep/log.hpp>

#include <exception>
#include <utility>

namespace lockstep::dashboard {

namespace {

using observe::reader;

std::string write(reader const& to, std::vector<std::string> const& fields) {
    auto const key = to.key("audit", "log");
    std::vector<std::string> words{"XADD", key, "MAXLEN", "~", "10000", "*"};
    words.insert(words.end(), fields.begin(), fields.end());
    return std::string{sync_wait(to.at(key, std::move(words))).text()};
}

// What is done is done: trouble with noting it is only logged.
void close(reader const& to, std::string const& entry, std::string_view outcome) try {
    write(to, {"of", entry, "outcome", std::string{outcome}});
} catch (error const& problem) {
    log(log_level::warning, std::string{"what became of a job that was changed could not be noted: "} + problem.what());
}

// The entry is written first; what was done is counted and noted in it.
template <class Deed>
auto noted(reader const& to, std::vector<std::string> const& fields, Deed deed) {
    auto const entry = write(to, fields);
    try {
        auto const done = deed();
        close(to, entry, done != 0 ? "done" : "gone");
        return done;
    } catch (error const&) {
        close(to, entry, "unknown");
        throw;
    }
}

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
    reader const to{detail::core_access::of(client_)};
    std::vector<std::string> fields{"action", action_of(deed), "name", which.name, "kind", "jobs", "hold", which.type, "fence", "0", "owner", "", "by", by};
    if (!reason.empty()) fields.insert(fields.end(), {"reason", reason});
    job_client of{client_, which.name};
    auto const done = noted(to, fields, [&] { return done_to(of, deed, which.type, state); });
    std::lock_guard const lock{mutex_};
    last_.reset();  // as below
    return done;
}

bool job_desk::act(job_deed deed, std::string const& name, job_info const& which, std::string const& by, std::string const& reason) {
    bool const is_retry = deed == job_deed::retry;
    reader const to{detail::core_access::of(client_)};
    std::vector<std::string> fields{"action", is_retry ? "retry-job" : "cancel-job", "name", name, "kind", "job", "hold", which.id, "fence", "0",
                                    "owner", which.worker, "by", by};
    if (!reason.empty()) fields.insert(fields.end(), {"reason", reason});
    job_client of{client_, name};
    bool const is_done = noted(to, fields, [&] { return is_retry ? of.requeue(which.id) : of.cancel(which.id); });
    std::lock_guard const lock{mutex_};
    last_.reset();  // who did it wants to see it, and one that is being made may have missed it
    return is_done;
}

}  // namespace lockstep::dashboard
