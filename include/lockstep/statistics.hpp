#pragma once

/// What a client's connections did so far.

#include <cstdint>

namespace lockstep {

struct statistics {
    std::uint64_t requests = 0;       ///< sent, repeats included
    std::uint64_t replies = 0;
    std::uint64_t batches = 0;        ///< writes: requests / batches is how well they were pipelined
    std::uint64_t bytes_sent = 0;
    std::uint64_t bytes_received = 0;
    std::uint64_t pushes = 0;         ///< messages the server sent on its own
    std::uint64_t connects = 0;       ///< successful log-ins; 1 per node without trouble
    std::uint64_t reconnects = 0;     ///< connections that were lost after they had worked
    std::uint64_t pending = 0;        ///< requests waiting or in flight now
    std::uint64_t connections = 0;    ///< open now
};

}  // namespace lockstep
