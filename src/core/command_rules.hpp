#pragma once

// What a raw command may be on a connection that others share, and where its keys are.

#include "core/core.hpp"

#include <lockstep/request.hpp>
#include <lockstep/task.hpp>

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::detail {

/// The arguments of an encoded command.
std::vector<std::string_view> arguments_of(std::string_view encoded);

/// Throws `invalid_argument_error`, naming what to use instead, for a command that would change or block the shared connection.
void require_shareable(std::string_view encoded);
void require_shareable(std::span<argument const> words);
/// The same for a command that has no reply of its own (SUBSCRIBE, MONITOR ...): it is of no use on any connection of a client's.
void require_answered(std::string_view encoded);
/// require_shareable for each command of a transaction, which must not be empty.
void require_runnable(transaction const& commands);

/// In a Cluster: the slot of the command's first key, -1 when it has none. Asks the server once for its table of commands, and
/// for the keys of commands where they can stand anywhere.
task<std::int16_t> find_slot(core& owner, std::string encoded, redis::reactor::clock::time_point deadline);

}  // namespace lockstep::detail
