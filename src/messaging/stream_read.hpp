#pragma once

// Reads that may wait, on connections of their own.

#include "messaging/stream_state.hpp"

#include <lockstep/error.hpp>

#include <chrono>
#include <cstddef>
#include <memory>
#include <string>
#include <vector>

namespace lockstep::detail {

class entry_too_large : public protocol_error {
public:
    entry_too_large(keyed const& at, std::string entry_id, std::int64_t bytes);
    std::string const& id() const noexcept { return *id_; }

private:
    std::shared_ptr<std::string const> id_;
};

/// For longer waits it asks again: a server that vanished is noticed by that.
inline constexpr std::chrono::milliseconds longest_block{15'000};
/// What an answer may take beyond the time that it was asked to wait.
inline constexpr std::chrono::milliseconds block_grace{5'000};

/// How large replies may be, in bytes of entries.
struct reply_limits {
    std::int64_t budget;  ///< of a reply; one entry comes in any case
    std::int64_t limit;   ///< of one entry: a larger one can't be sent
    /// How many entries of that size fit in a reply; 0: the size is not known.
    std::size_t count_of(std::size_t entry_bytes) const noexcept;
};
reply_limits reply_sizes(core const& owner) noexcept;
/// With what a reply needs beside them.
std::size_t bytes_of(stream_fields const& fields) noexcept;

/// The server can't serve this connection any more, or the stream was deleted or moved while it waited: a new connection helps.
bool is_astray(server_error const& problem);

task<std::vector<stream_entry>> read_after(std::shared_ptr<stream_state> self, std::string after, std::size_t count, std::chrono::milliseconds time);
task<std::vector<stream_entry>> read_for(std::shared_ptr<stream_state> self, std::string group, std::string consumer, std::size_t count,
                                         std::chrono::milliseconds time);
/// Up to `count` entries (0: all), in replies that are not too large. Throws `entry_too_large` where the next one can't be sent at all.
task<std::vector<stream_entry>> read_range(keyed at, bool is_reverse, std::string from, std::string to, std::size_t count);
/// Is there any? None is sent.
task<bool> has_entries(keyed at, std::string from, std::string to);
/// For a command whose reply has no bound in bytes: on a connection of its own, so that one that is too large ends no other requests.
task<reply> run_apart(std::shared_ptr<stream_state> self, std::vector<std::string> words, bool may_repeat);
/// The id that was given out last; "0-0": none.
task<std::string> last_id(keyed at);

}  // namespace lockstep::detail
