#pragma once

#include "core/core.hpp"

#include <lockstep/election.hpp>

#include <functional>
#include <memory>
#include <string>

namespace lockstep::detail {

/// In force when it ends. `after`: as in `observe_options`.
task<observation> begin_observation(std::shared_ptr<core> owner, std::string key, std::function<void(leader_change const&)> handler, std::string after);

}  // namespace lockstep::detail
