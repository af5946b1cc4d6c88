#pragma once

/// What CLUSTER SLOTS says: which master has which slots. Without sockets.

#include "redis/url.hpp"

#include <lockstep/reply.hpp>

#include <cstdint>
#include <vector>

namespace lockstep::redis {

struct slot_range {
    std::uint16_t first = 0;  ///< both ends included
    std::uint16_t last = 0;
    endpoint master{};

    friend bool operator==(slot_range const&, slot_range const&) = default;
};

/// Reads the answer of `source`. A node that does not know its own address leaves it empty (or "?", where host names are preferred
/// and it has none): then it is the one by which it was reached. What makes no sense is left out.
std::vector<slot_range> read_slots(reply_view answer, endpoint const& source);

}  // namespace lockstep::redis
