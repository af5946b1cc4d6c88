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

}  // namespace

bool job_desk::act(job_deed deed, std::string const& name, job_info const& which, std::string const& by, std::string const& reason) {
    bool const is_retry = deed == job_deed::retry;
    reader const to{detail::core_access::of(client_)};
    std::vector<std::string> fields{"action", is_retry ? "retry-job" : "cancel-job", "name", name, "kind", "job", "hold", which.id, "fence", "0",
                                    "owner", which.worker, "by", by};
    if (!reason.empty()) fields.insert(fields.end(), {"reason", reason});
    auto const entry = write(to, fields);
    job_client of{client_, name};
    try {
        bool const is_done = is_retry ? of.requeue(which.id) : of.cancel(which.id);
        close(to, entry, is_done ? "done" : "gone");
        std::lock_guard const lock{mutex_};
        last_.reset();  // who did it wants to see it, and one that is being made may have missed it
        return is_done;
    } catch (error const&) {
        close(to, entry, "unknown");
        throw;
    }
}

}  // namespace lockstep::dashboard
