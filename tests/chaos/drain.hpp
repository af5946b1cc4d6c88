// What the workers have left in queues and streams is done by the last client.
#pragma once

#include "support/history.hpp"
#include "world.hpp"

#include <functional>

namespace lockstep::chaos {

/// Takes all there is, once those who held it are known to be dead, and finds that queues still work. Streams are removed: they do not expire.
void drain(world& where, std::function<void(event)> const& report);

}  // namespace lockstep::chaos
