// The end of a run for jobs: what is left is run, how each of them ended is reported, and then they are forgotten, with all that belongs to them.
#pragma once

#include "support/history.hpp"
#include "world.hpp"

#include <functional>
#include <string>

namespace lockstep::chaos {

/// `referee`: its socket.
void drain_jobs(world& where, std::string const& referee, std::function<void(event)> const& report);

}  // namespace lockstep::chaos
