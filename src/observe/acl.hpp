#pragma once

/// What a user of the server must be allowed for a use of Lockstep, and no more: for `lockstep acl`, and for health checks that find something
/// missing.
///
/// Commands that a script calls need their own rights, so a new one in src/scripts must be added here: a unit test compares.

#include <array>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::observe {

enum class acl_use {
    locks,       ///< locks and their like, elections, redlock
    messaging,   ///< queues, streams, buses, idempotency
    jobs,        ///< schedules, workers, cron
    state,       ///< values, maps, counters, boards, sessions, limiters, breakers
    near_cache,  ///< reads of values and maps through a near cache: learns the names of all keys that anybody changes
    look,        ///< monitors and dashboards that only show
    act,         ///< those that also release, ask, and change jobs
};

inline constexpr std::array acl_use_names{"locks", "messaging", "jobs", "state", "near-cache", "look", "act"};  // in this order

/// Of programs; none of these learns anything of what is outside of the prefix.
inline constexpr std::array acl_program_uses{acl_use::locks, acl_use::messaging, acl_use::jobs, acl_use::state};

struct acl_needs {
    std::string_view prefix = "lockstep";
    std::vector<acl_use> uses{acl_program_uses.begin(), acl_program_uses.end()};
    bool cluster = false;   ///< the server is part of one
    bool database = false;  ///< another one than 0 is used
    bool scan = false;      ///< also what finds buses, and names without the index: sees the names of all keys and channels of the server
};

/// Rules as ACL SETUSER takes them, one argument each, from nothing on: "reset", "~lockstep:{*}:*", "+evalsha" ... Redis 7.0 and newer, and
/// Valkey, take all of them. Neither `on` nor a password is among them. Throws invalid_argument_error for a prefix that is refused, or one that
/// could end a rule and begin another where rules are written as text: with spaces, quotes, backslashes or parentheses.
std::vector<std::string> acl_rules(acl_needs const& needs);

}  // namespace lockstep::observe
