#pragma once

// What the scripts of broadcast events, latches and barriers answer, as numbers with names. The headers of src/scripts/*.lua say which
// answer has what.

#include <lockstep/reply.hpp>

#include <cstdint>
#include <string_view>

namespace lockstep::engine {

enum class gate_word : std::uint8_t {
    unknown, set, cleared, open, waiting, late, left, gone, created, exists, counted, absent, complete, run, broken, behind, forgotten, full,
    renewed
};

struct gate_answer {
    gate_word what = gate_word::unknown;
    std::int64_t value = 0;       ///< a generation, or what is left of a latch's count, or the length of a lease
    std::int64_t look_again = 0;  ///< full: in so many ms the server would find that somebody who arrived is dead
    std::int64_t now_ms = 0;      ///< the server's clock
};

/// Throws `count_mismatch_error`, `invalid_argument_error` or `server_error` for an error, `protocol_error` for no answer of a script; each
/// says of what, which kind of thing with which name.
gate_answer read_gate_answer(reply_view said, std::string_view kind, std::string_view name);

}  // namespace lockstep::engine
