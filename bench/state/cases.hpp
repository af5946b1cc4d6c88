#pragma once

// The cases of bench_state.

#include "support/peers.hpp"
#include "support/stand.hpp"

#include <string>

namespace lockstep::bench {

void sliding_log(stand& all, peer_kit& peers, std::string const& name);
void sliding_log_full(stand& all, peer_kit& peers, std::string const& name);
void sliding_window(stand& all, peer_kit& peers, std::string const& name);
void token_bucket(stand& all, peer_kit& peers, std::string const& name);
void bucket_memory(stand& all, peer_kit& peers, std::string const& name);

void near_cache_hit(stand& all, peer_kit& peers, std::string const& name);
void closed_breaker(stand& all, peer_kit& peers, std::string const& name);

}  // namespace lockstep::bench
