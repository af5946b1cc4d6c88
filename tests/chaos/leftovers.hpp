// What is found at the servers in the end.
#pragma once

#include "world.hpp"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::chaos {

/// What is there of clients that are connected, in fields of these kinds: o and p name who holds, w who waits.
/// And names of those who wait at queues. Without these and events where a failover may have forgotten that a waiter went: it stays there
/// until the next signal or item passes.
std::vector<std::string> left_by_the_living(world& where, std::string_view fields, bool with_events);
/// What is there that should not be when no client is connected any more.
std::vector<std::string> leftovers(world& where);

/// The events that are known there.
struct event_state {
    std::string name;
    std::int64_t signals = 0;  ///< that nobody has taken
    bool is_waited_for = false;
    bool in_use = false;  ///< somebody is offered one, or took one just now
};
std::vector<event_state> events_at(world& where);

}  // namespace lockstep::chaos
