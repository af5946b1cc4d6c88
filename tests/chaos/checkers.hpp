// What must be true of every history. Pure functions: a history in order of time goes in, complaints come out.
//
// To add a primitive: let chaos_worker use it and report it with the events of history.hpp under names that begin with its kind, and
// call its checker in chaos_test.cpp. A new checker gets a doctored history in checkers_test.cpp that it must complain about, and a mutant
// of the library in README.md whose runs it complains of.
#pragma once

#include "support/history.hpp"

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::chaos {

using complaints = std::vector<std::string>;

/// What the topology promises (DESIGN section 6).
struct promises {
    /// What the server has acknowledged stays so: at most one holder, the bound, all or none, every signal. Not across an asynchronous
    /// failover. Where the server's clock jumped forward (deed "clock_forward"), leases that were asked for before and not renewed since may
    /// have ended early, which is no violation either. Fences are promised everywhere.
    bool memory = true;
};

/// When the server's clock jumped forward.
struct jump {
    std::int64_t begun = 0, done = 0;
};
std::vector<jump> jumps_in(history const& all);
bool jumped_between(std::vector<jump> const& jumps, std::int64_t from, std::int64_t to);

/// One hold and the time during which its holder was right to believe in it: from when it was granted to the last time for which its
/// lease said that it was valid. A lease that is not valid stays so, so it was valid all that time; and whatever the scheduler did to
/// the process is no excuse, since the time was read before the lease was asked. Changed to another mode, it is another hold.
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
/// All that is fenced: no fence is given twice but to who adopts, and one that is asked for after another was granted is larger; the
/// referee let nobody in after somebody with a larger fence (a reader: after a writer with one); and who was refused is not sure any more.
complaints check_fences(history const& all, promises const& given, std::string_view kind = "mutex");
/// counting_semaphore: never more permits than `limit` were surely held.
complaints check_bound(history const& all, promises const& given, std::int64_t limit,
                       std::string_view kind = "semaphore");
/// shared_mutex: a holder with mode "write" was alone.
complaints check_readers_writer(history const& all, promises const& given, std::string_view kind = "shared");
/// All that is held: a stop token trips when its lease is lost.
complaints check_told(history const& all);

/// barrier: those who passed can be told apart into meetings of `parties`, each of which was completed once after all of them had arrived
/// and before the first went on. Who was killed, cancelled or does not know may have been there.
complaints check_barrier(history const& all, promises const& given, std::int64_t parties,
                         std::string_view kind = "barrier");
/// event: no set wakes two, and none is lost, but for those that somebody may have taken along (see `taken_along`).
complaints check_event(history const& all, promises const& given, std::string_view kind = "event");
/// How many signals of each event waits may have taken for nothing, which is no violation: a process that is killed after it has taken a
/// signal takes it along; and who took one is known to the server for the ttl, less if its clock jumps, so a wait that goes on for longer
/// after its reply was lost takes another.
std::map<std::string, std::int64_t> taken_along(history const& all, std::string_view kind = "event");

/// election: the changes that the server kept have every term once and in order, and no leader is missing among them.
complaints check_changes(history const& all, promises const& given, std::string_view kind = "election");

/// Nothing was found in the end.
complaints check_nothing_left(history const& all);

}  // namespace lockstep::chaos
