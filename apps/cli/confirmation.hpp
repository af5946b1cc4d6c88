#pragma once

// A question before something that cannot be undone.

#include "cli/context.hpp"

#include <string_view>

namespace lockstep::cli {

/// Whether a person at a terminal says yes; true if there is none to be asked.
bool confirmed(context const& all, std::string_view question);

}  // namespace lockstep::cli
