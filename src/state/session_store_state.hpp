#pragma once

// What the steps of a session store share. Keys of the sessions and lists of a group, which share a slot:
//   <prefix>:{<store>/<group>}:session:<handle>      and      <prefix>:{<store>/<group>}:sessions:<user>
// The group comes from the user's name (for a session without a user: from chance), so that all that is done to a session and to the list of its user is
// one step of one script. Only a log-in may move a session to another group (session_rotation.cpp).

#include "core/core.hpp"
#include "lease/server_clock.hpp"
#include "redis/command.hpp"
#include "scripts/script.hpp"
#include "state/request_limit.hpp"

#include <lockstep/session_store.hpp>

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::detail {

class session_store_state {
public:
    using time_point = redis::reactor::clock::time_point;

    session_store_state(client& by, std::string_view called, session_store_options const& options);

    std::string session_key(std::string_view handle) const { return key("session", handle.substr(0, 3), handle); }
    std::string index_key(std::string_view group, std::string_view user) const { return key("sessions", group, user); }
    std::string moved_key(std::string_view handle) const { return key("session_moved", handle.substr(0, 3), handle); }

    /// The server's errors name the store, never a session. No answer in time: `unavailable_error`.
    task<reply> run(scripts::script const& script, std::vector<std::string> const& keys,
                    std::vector<std::string> const& words) const;
    task<reply> command(std::vector<std::string> const& words, std::string_view key) const;
    /// The same, but what was sent and not answered in time is a `timeout_error`.
    task<reply> run_until(time_point until, scripts::script const& script, std::vector<std::string> const& keys,
                          std::vector<std::string> const& words) const;

    time_point deadline() const noexcept { return limit_.deadline(*owner); }
    void require_usable() const { owner->require_same_process(); }
    void require_blocking() const;
    std::string checked_user(std::string_view user) const;

    /// May a script have keys of both groups?
    bool share_a_slot(std::string_view one_group, std::string_view other) const;

    /// In turns: of the server that has this key. The nodes of a Cluster each have their own.
    engine::server_clock& clock_of(std::string_view key) const;

    std::shared_ptr<core> owner;
    std::string name;
    session_store_options how;

private:
    std::int16_t slot_of(std::string_view key) const;
    std::string key(std::string_view kind, std::string_view group, std::string_view rest) const;
    void check(std::string_view option, std::chrono::milliseconds time) const;
    redis::command_terms terms(std::string_view key, time_point until) const;
    task<reply> heard(task<reply> answer) const;

    std::string prefix_;
    mutable object_index::mark noted_;
    mutable std::map<std::int16_t, engine::server_clock> clocks_;  ///< by slot; 1,024 groups at most
    mutable request_limit limit_;
};

using session_store_ref = std::shared_ptr<session_store_state const>;

/// Of a script whose ARGV begin with deadline_ms, and which answers {word, number, now_ms, ...}, or {'late', 0, now_ms} when that has passed: so what was
/// given up does not happen later. Sent again it changes nothing, by the handles in its words. Goes on in a turn.
task<reply> change_sessions(session_store_ref at, scripts::script const& script, std::vector<std::string> keys,
                            std::vector<std::string> words);

/// Whose it is; "": nobody's; nothing: there is none. Does not use it.
task<std::optional<std::string>> user_of_session(session_store_ref at, std::string handle);

/// 'destroy' or 'keep' those; the ones that were there. Of one group; `user`: "": nobody.
task<std::vector<std::string>> settle_sessions(session_store_ref at, std::string what, std::string user,
                                               std::vector<std::string> handles);

/// The id under which the session goes on, of this user from now on, unless that is "". Nothing: there is no such session.
task<std::optional<std::string>> rotate_session(session_store_ref at, std::string id, std::string user);

}  // namespace lockstep::detail
