#pragma once

// What is tried at a server to see whether it works: questions that may fail, a lock, a script, a push, rights.
//
// Nothing here throws because of the server; a failure is an answer. All end by the deadline. `cancelled_error` passes through: somebody
// does not want to know any more.

#include "observe/rules.hpp"

#include "core/core.hpp"
#include "redis/command.hpp"

#include <lockstep/error.hpp>
#include <lockstep/task.hpp>

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace lockstep::observe {

using clock = redis::reactor::clock;

/// One server that is looked at: all of them, where there is one; a master in a Cluster.
struct place {
    std::string label;  ///< its address; empty where there is only one
    std::string key;    ///< of the probe lock, in a slot of this server
    std::int16_t slot = -1;
};

/// What all probes of one examination share.
struct exam {
    std::shared_ptr<detail::core> owner;
    clock::time_point deadline;
    client_facts by;
    std::uint64_t refusals = 0;  ///< how often the client had been refused something before
    bool may_write = true;
};

/// In how many cases the server could not take a request so far (BUSY, LOADING ...), and what it said last.
std::pair<std::uint64_t, std::string> refusals_of(detail::core& owner);

struct answer {
    reply value;
    errc reason{};        ///< when there is a problem; errc::server: an error reply
    std::string problem;  ///< empty: it went well
    std::chrono::microseconds took{0};

    bool ok() const noexcept { return problem.empty(); }
    bool answered() const noexcept { return ok() || reason == errc::server; }
    /// The user may not do that.
    bool lacks_rights() const noexcept;
};

template <class... Words>
std::vector<std::string> words(Words const&... list) {
    return {std::string{list}...};
}
task<answer> ask(exam const& of, place const& at, std::vector<std::string> command);
/// By a way that is not the client's own.
task<answer> ask_by(exam const& of, std::shared_ptr<redis::router> way, clock::time_point deadline,
                    std::vector<std::string> command);

/// What a probe found, and the problem in the server's own words.
struct trial {
    finding found;
    answer last;
};

/// Takes and gives back a lock, by the scripts of `mutex`, under a name of its own; the key goes at once, or with its lease.
task<trial> try_lock(exam const& of, place const& at);
/// Does the server run scripts? Reads only, so that it works where writes are refused.
task<trial> try_script(exam const& of, place const& at);
/// Sends a message to itself, on the connection and by the kind of channel that wake-ups use.
task<trial> try_push(exam const& of, place const& at);
/// Each command that the scripts call, on keys of its own, to name the rights that are missing.
task<finding> try_rights(exam const& of, place const& at, std::string user);

/// The rule for ACL SETUSER that gives a user what it lacked when a server refused that command with that error.
std::string missing_right(std::string_view problem, std::string_view command, std::string_view prefix);

/// The commands that `try_rights` tries: all that scripts call. For tests.
std::vector<std::string> tried_commands();

}  // namespace lockstep::observe
