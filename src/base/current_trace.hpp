#pragma once

#include <string_view>

namespace lockstep::base {

/// What the innermost `trace_scope` of this thread said; empty without one. Valid until that ends.
std::string_view current_trace() noexcept;

}  // namespace lockstep::base
