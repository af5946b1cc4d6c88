#pragma once

// Sentinel: asks who the master is, verifies that with the master itself, and moves when a failover is announced.
//
// One connection to one of the Sentinels at a time, for questions and for `+switch-master`. The others are learned from it. A
// Sentinel that is down, does not know the master, or keeps naming a server that is none, is left for the next.

#include "redis/connection.hpp"
#include "redis/router.hpp"
#include "redis/url.hpp"

#include <memory>

namespace lockstep::redis {

/// How to log in to a Sentinel.
handshake sentinel_greeting(location const& where);

std::unique_ptr<router> make_sentinel_router(std::shared_ptr<reactor> home, connection_settings const& settings, handshake const& greeting,
                                             location const& where);

}  // namespace lockstep::redis
