#pragma once

// Something that is kept at the server and changed by calls of which each counts once, also when its reply is lost and it is sent again
// (src/scripts/include/once.lua), and not at all after a time in the server's clock.

#include "core/keyed.hpp"
#include "lease/server_clock.hpp"

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::engine {
class hub;
}

namespace lockstep::detail {

class state_object : public keyed {
public:
    state_object(client& by, std::string_view name, std::string_view kind);
    state_object(std::shared_ptr<core> owner, std::string_view name, std::string_view kind);

    /// What its scripts are told: '<retention ms> <PUBLISH or SPUBLISH>'.
    std::string rules(std::chrono::milliseconds retention) const;
    // In turns:
    engine::hub& home() const noexcept { return hub_; }
    engine::server_clock& clock() const noexcept { return clock_; }

private:
    engine::hub& hub_;
    mutable engine::server_clock clock_;
};

/// A script whose ARGV begin with session, sequence and deadline_ms, and which answers {word, number, now_ms, ...}, or {'late', 0, now_ms} when
/// the deadline has passed.
struct change {
    scripts::script const* script;
    std::vector<std::string> keys;
    std::vector<std::string> words;  ///< those after the three
};

/// A call that is tried until `until` may be given up then, and must not run later: the server's time that it is to carry. In a turn.
std::int64_t latest_run(core const& owner, engine::server_clock const& there, redis::reactor::clock::time_point until);
/// Until when a change is tried: as long as the server remembers what counted (state_rules.lua), and no longer than the client's `command_timeout`.
redis::reactor::clock::time_point end_of_tries(core const& owner);

/// Goes on in a turn with the answer. `indeterminate_error`: none came in time; it may have counted, once.
task<reply> change_once(std::shared_ptr<state_object const> at, change what);

/// Throws `invalid_argument_error` unless it is `least` to 10^12 ms.
void require_time(keyed const& at, std::string_view option, std::chrono::milliseconds time, std::chrono::milliseconds least);

[[noreturn]] void throw_unexpected_answer(keyed const& at);

}  // namespace lockstep::detail
