// Does something for somebody, and records who that was: in the same log, and in the same form, as what monitors do to holds (src/observe/audit.hpp).
#pragma once

#include "observe/audit.hpp"

#include <lockstep/error.hpp>

#include <string>
#include <utility>

namespace lockstep::dashboard {

// The entry is written first; what was done is counted and noted in it. The fields lack the reason.
template <class Action>
auto audited(client& by, observe::audit_fields fields, std::string const& reason, Action action) {
    observe::reader const to{detail::core_access::of(by)};
    if (!reason.empty()) fields.emplace_back("reason", reason);
    auto const entry = sync_wait(observe::append_audit(to, std::move(fields)));
    try {
        auto const done = action();
        sync_wait(observe::append_outcome(to, entry, done != 0 ? "done" : "gone"));
        return done;
    } catch (error const&) {
        sync_wait(observe::append_outcome(to, entry, "unknown"));
        throw;
    }
}

}  // namespace lockstep::dashboard
