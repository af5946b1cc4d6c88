#pragma once

// The ways to obtain a lease that all primitives share.

#include "lease/target.hpp"

#include <lockstep/lease.hpp>
#include <lockstep/task.hpp>

#include <chrono>
#include <memory>
#include <optional>
#include <string>

namespace lockstep::engine {

/// Waits as long as the settings allow; then `timeout_error`.
task<lease> take(std::shared_ptr<target const> what);
/// Nothing: not obtained by then. A time that has passed, or a null pointer to it: once, without waiting.
task<std::optional<lease>> try_take(std::shared_ptr<target const> what, std::chrono::steady_clock::time_point until);
task<lease> adopt(std::shared_ptr<target const> what, std::string token);

/// Throws what forbids to begin: a child of fork().
void require_usable(target const& what);
/// Throws where a blocking form must not be called.
void require_blocking(target const& what);

}  // namespace lockstep::engine
