#pragma once

#include "core/core.hpp"

#include <lockstep/subscription.hpp>

namespace lockstep::detail {

task<subscription> open_subscription(std::shared_ptr<core> owner, subscription_options options);

}  // namespace lockstep::detail
