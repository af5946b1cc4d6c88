#pragma once

/// Where Lockstep says what a person should know: a reconnect, a fall-back, an unsafe option. Never a secret.
///
/// By default warnings and errors go to standard error, one line each, control characters as \x1B. A message may have words of the server in it: a hook of
/// your own has to see to what its log takes. `set_log_hook` replaces that for the process; an
/// empty hook silences it. The hook may be called from any thread, must not throw and must not call back into Lockstep.

#include <functional>
#include <string_view>

namespace lockstep {

enum class log_level { debug, info, warning, error };

using log_hook = std::function<void(log_level, std::string_view message)>;

/// Sets the process-wide hook and returns the one before it.
log_hook set_log_hook(log_hook hook);

/// Hands a line to the hook. Used by Lockstep itself; open to programs that want one place for both.
void log(log_level level, std::string_view message) noexcept;

}  // namespace lockstep
