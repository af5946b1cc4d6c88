#pragma once

// How people see what the monitor reports.

#include "cli/table.hpp"

#include <lockstep/monitor.hpp>

#include <chrono>
#include <string>
#include <vector>

namespace lockstep::cli {

/// "backup@host:4711"; its id where it has not said who it is.
std::string show(client_info const& who);
/// "14:05:09.123", of today's clock here.
std::string show_time(std::chrono::system_clock::time_point at);
/// In which state an object is, in a word or two: "held", "free", "2 of 5 taken", "3 signals", "set", "open", "1 of 3 came".
std::string state_of(object_info const& what);
/// Whether somebody has to do with it now.
bool in_use(object_info const& what);

enum class order { name, held, queue };
/// Objects with their holders, one row each.
table table_of(snapshot const& now, order by, bool all);
table table_of(std::vector<hold_info> const& holds);
table table_of(std::vector<wait_info> const& waits);

}  // namespace lockstep::cli
