#pragma once

#include "support/peers.hpp"
#include "support/stand.hpp"

#include <string>

namespace lockstep::bench {

void enqueue_one_by_one(stand& all, peer_kit& peers, std::string const& name);
void enqueue_in_bulk(stand& all, peer_kit& peers, std::string const& name);
void take_and_acknowledge(stand& all, peer_kit& peers, std::string const& name);
void whole_life(stand& all, peer_kit& peers, std::string const& name);
void latency(stand& all, peer_kit& peers, std::string const& name);
void many_waiting(stand& all, peer_kit& peers, std::string const& name);
void memory(stand& all, peer_kit& peers, std::string const& name);

void stream_consumer(stand& all, peer_kit& peers, std::string const& name);

}  // namespace lockstep::bench
