#pragma once

/// What Sentinels answer and announce. Without sockets.

#include "redis/url.hpp"

#include <lockstep/reply.hpp>

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace lockstep::redis {

/// SENTINEL GET-MASTER-ADDR-BY-NAME. Nothing: it does not know that master, or the answer makes no sense.
std::optional<endpoint> read_master(reply_view answer);
/// SENTINEL MASTER: the number of failovers that it knows of; 0 where it says nothing.
std::uint64_t read_epoch(reply_view answer);
/// SENTINEL SENTINELS: the others. What makes no sense is left out.
std::vector<endpoint> read_sentinels(reply_view answer);
/// '<name> <old ip> <old port> <new ip> <new port>' of +switch-master. Nothing: it is about another master, or not understood.
std::optional<endpoint> read_switch(std::string_view payload, std::string_view master);

}  // namespace lockstep::redis
