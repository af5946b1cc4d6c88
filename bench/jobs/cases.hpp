#pragma once

#include "support/peers.hpp"
#include "support/stand.hpp"

#include <string>

namespace lockstep::bench {

void schedule_one_by_one(stand& all, peer_kit& peers, std::string const& name);
void schedule_in_bulk(stand& all, peer_kit& peers, std::string const& name);
void process_one_at_a_time(stand& all, peer_kit& peers, std::string const& name);
void process_many_at_a_time(stand& all, peer_kit& peers, std::string const& name);
void add_flows(stand& all, peer_kit& peers, std::string const& name);
void process_flows(stand& all, peer_kit& peers, std::string const& name);
void add_to_start(stand& all, peer_kit& peers, std::string const& name);
void waiting_jobs(stand& all, peer_kit& peers, std::string const& name);
// crons.cpp
void schedules_over_the_hour(stand& all, peer_kit& peers, std::string const& name);
void schedules_in_one_second(stand& all, peer_kit& peers, std::string const& name);

}  // namespace lockstep::bench
