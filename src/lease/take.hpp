#pragma once

// The ways to obtain a lease that all primitives share.

#include "lease/target.hpp"

#include "scripts/script.hpp"

#include <lockstep/lease.hpp>
#include <lockstep/reply.hpp>
#include <lockstep/request.hpp>
#include <lockstep/task.hpp>

#include <chrono>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>

namespace lockstep::engine {

/// Waits as long as the settings allow; then `timeout_error`.
task<lease> take(std::shared_ptr<target const> what);
/// Nothing: not obtained by then. A time that has passed, or a null pointer to it: once, without waiting.
task<std::optional<lease>> try_take(std::shared_ptr<target const> what, std::chrono::steady_clock::time_point until);
task<lease> adopt(std::shared_ptr<target const> what, std::string token);

struct change_result {
    bool changed = false;
    lease held;  ///< with the new amount, or as it was
};
/// Of a pool: holds another amount from now on, if that is possible now. Throws `lease_lost_error`.
task<change_result> change(lease held, std::int64_t amount);

/// A script that concerns a name without holding it; may run twice.
task<reply> call(target const& what, scripts::script const& script, std::initializer_list<detail::argument> arguments);

/// A script that changes a name without holding it, in order with this process's other changes of that kind: it takes a session and a sequence
/// before these arguments, so that it counts once, and the server's time after which it must not run any more behind them. Throws
/// `indeterminate_error` when no answer came.
task<reply> change_once(std::shared_ptr<target const> what, scripts::script const& script, std::initializer_list<detail::argument> arguments);

/// Throws what forbids to begin: a child of fork().
void require_usable(target const& what);
/// Throws where a blocking form must not be called.
void require_blocking(target const& what);

}  // namespace lockstep::engine
