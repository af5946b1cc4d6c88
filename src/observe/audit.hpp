#pragma once

// The record of who ended or asked for what: <prefix>-audit:log, a list of entries, the newest last.
//
// It is a list so that it can be append-only for those who write it: of RPUSH, unlike XADD, no argument trims or reserves anything, and
// `lockstep acl --for act` allows no other command for this key. The key lies outside of the patterns of all other rules, `<prefix>:{*}:*`.
// A client whose user may do more (as `default`) shortens it now and then to the newest 10,000.
//
// An entry is lines '<field> <value>'; line ends and % in a value are percent-encoded. Its id begins with the server's time in ms. An action is
// written before it is done, and its outcome behind it as an entry that names the first (`of`).

#include "observe/reader.hpp"

#include <lockstep/monitor.hpp>

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace lockstep::observe {

using audit_fields = std::vector<std::pair<std::string_view, std::string>>;

std::string audit_key(std::string_view prefix);

/// Returns the id of the entry.
task<std::string> append_audit(reader from, audit_fields fields);
/// What became of it. An action that was done is done: trouble with noting that is only logged.
task<void> append_outcome(reader from, std::string entry, std::string outcome);

/// The newest first.
task<std::vector<audit_entry>> read_audit(reader from, std::size_t count);

}  // namespace lockstep::observe
