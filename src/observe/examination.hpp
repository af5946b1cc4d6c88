#pragma once

// One look at a deployment: finds its servers, asks and tries each of them at the same time, lets the rules judge (rules.hpp), and makes
// one finding of what they say about each.

#include "core/core.hpp"

#include <lockstep/health.hpp>

#include <memory>

namespace lockstep::observe {

/// Throws `invalid_argument_error` for options that make no sense and in a child of fork(), else only `cancelled_error`.
task<health_report> examine(std::shared_ptr<detail::core> owner, health_options options, bool thorough);

}  // namespace lockstep::observe
