#pragma once

// Requests as operations in coroutine frames: a command, a transaction, one of our scripts.
//
// Each is one allocation: the coroutine's frame, with the operation in it and the encoded request behind it.

#include "redis/operation.hpp"
#include "redis/router.hpp"
#include "scripts/script.hpp"

#include <lockstep/request.hpp>
#include <lockstep/task.hpp>

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::redis {

/// What a request needs besides its bytes.
struct command_terms {
    reactor::clock::time_point deadline;
    std::int16_t slot = -1;
    bool repeatable = false;
    bool errors_are_replies = false;  ///< otherwise an error of the server is thrown
    bool yields = false;              ///< others, whom it has told something, hear that before its reply comes
};

/// One command. `way` keeps alive whatever the router belongs to. The words are copied before the call returns.
task<reply> run_command(std::shared_ptr<router> way, std::span<detail::argument const> words, command_terms terms);
/// The same for a command that is encoded already.
task<reply> run_encoded(std::shared_ptr<router> way, std::string_view bytes, command_terms terms);

/// run_command from words in place: run(way, terms, "SENTINEL", "SENTINELS", name).
template <class... Words>
task<reply> run(std::shared_ptr<router> way, command_terms terms, Words const&... words) {
    detail::argument const list[] = {detail::argument{words}...};
    return run_command(std::move(way), list, terms);
}

/// MULTI, the commands, EXEC: one operation with all its replies. Nothing: a watched key had changed.
task<std::optional<std::vector<reply>>> run_transaction(std::shared_ptr<router> way, transaction commands, command_terms terms);

/// One of our scripts, by EVALSHA, and by EVAL where the server does not know it.
task<reply> run_script(std::shared_ptr<router> way, scripts::script const& script, std::span<std::string_view const> keys,
                       std::span<detail::argument const> arguments, command_terms terms);

}  // namespace lockstep::redis
