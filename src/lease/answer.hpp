#pragma once

// What the scripts of a lock or a pool answer, as numbers with names. The headers of src/scripts/*.lua say which answer has what.

#include <lockstep/reply.hpp>

#include <cstdint>
#include <string_view>

namespace lockstep::engine {

enum class word : std::uint8_t { granted, queued, busy, late, gone, renewed, older, released, cancelled, changed, unknown };

struct answer {
    word what = word::unknown;
    std::int64_t fence = 0;
    std::int64_t fences = 1;
    std::int64_t left_ms = 0;   ///< of the lease that was granted or is in the way
    std::int64_t now_ms = 0;    ///< the server's clock; 0: not told
    bool is_new = false;        ///< queued: its place is new
    bool asks_again = false;    ///< not all that is over is out of the way: the same at once
    std::string_view offered_to{};  ///< released: the hold that has it now, empty if nobody; points into the reply
};

/// The short forms are bare numbers: a fence, which is also the server's time in µs (granted in full), or 1 (released, nobody waited).
answer read_answer(reply_view said, std::int64_t asked_ttl_ms, std::int64_t asked_fences);

}  // namespace lockstep::engine
