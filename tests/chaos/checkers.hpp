// What must be true of every history. Pure functions: a history in order of time goes in, complaints come out.
//
// To add a primitive: let chaos_worker use it and report it with the events of history.hpp under names that begin with its kind, and
// call its checker in chaos_test.cpp. A new checker gets a doctored history in checkers_test.cpp that it must complain about.
#pragma once

#include "support/history.hpp"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::chaos {

using complaints = std::vector<std::string>;

/// What the topology promises (DESIGN section 6).
struct promises {
    /// At most one holder. Not across an asynchronous failover. Where the server's clock jumped forward (deed "clock_forward"),
    /// leases that were asked for before may end early, which is no violation either.
    bool exclusion = true;
};

/// One hold and the time during which its holder was right to believe in it: from when it was granted to the last time for which its
/// lease said that it was valid. A lease that is not valid stays so, so it was valid all that time; and whatever the scheduler did to
/// the process is no excuse, since the time was read before the lease was asked.
struct hold_record {
    std::string who, name, mode;
    std::uint64_t fence = 0;
    std::int64_t permits = 1;
    std::int64_t asked = 0, granted = 0, sure_until = 0;  ///< sure_until 0: never
};
/// Of names that begin with this, in order of their grants.
std::vector<hold_record> holds_of(history const& all, std::string_view kind);

/// mutex: no two holders were sure at the same time.
complaints check_exclusion(history const& all, promises const& given, std::string_view kind = "mutex");
/// All that is fenced: no fence is given twice, and one that is asked for after another was granted is larger; the referee let nobody
/// in after somebody with a larger fence; and who was refused is not sure any more.
complaints check_fences(history const& all, promises const& given, std::string_view kind = "mutex");
/// counting_semaphore: never more permits than `limit` were surely held.
complaints check_bound(history const& all, promises const& given, std::int64_t limit, std::string_view kind = "semaphore");
/// shared_mutex: a holder with mode "write" was alone.
complaints check_readers_writer(history const& all, promises const& given, std::string_view kind = "shared");
/// barrier: a generation passes for all or breaks for all, passes only when all have arrived, and is completed once.
complaints check_barrier(history const& all, std::size_t parties, std::string_view kind = "barrier");
/// event: each set wakes one wait, or is stored. A wait that never ended may have taken one along.
complaints check_event(history const& all, std::string_view kind = "event");
/// Nothing was found in the end.
complaints check_nothing_left(history const& all);

}  // namespace lockstep::chaos
