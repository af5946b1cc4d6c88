#pragma once

// Reads that may wait, on connections of their own.

#include "messaging/stream_state.hpp"

#include <chrono>
#include <cstddef>
#include <memory>
#include <string>
#include <vector>

namespace lockstep::detail {

/// For longer waits it asks again: a server that vanished is noticed by that.
inline constexpr std::chrono::milliseconds longest_block{15'000};
/// What an answer may take beyond the time that it was asked to wait.
inline constexpr std::chrono::milliseconds block_grace{5'000};

/// The server can't serve this connection any more, or the stream was deleted or moved while it waited: a new connection helps.
bool is_astray(server_error const& problem);

task<std::vector<stream_entry>> read_after(std::shared_ptr<stream_state> self, std::string after, std::size_t count, std::chrono::milliseconds time);
task<std::vector<stream_entry>> read_for(std::shared_ptr<stream_state> self, std::string group, std::string consumer, std::size_t count,
                                         std::chrono::milliseconds time);
/// The id that was given out last; "0-0": none.
task<std::string> last_id(keyed at);

}  // namespace lockstep::detail
