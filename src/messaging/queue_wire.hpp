#pragma once

// What the scripts of queues are told and answer, and how an item is written (src/scripts/include/queue_entry.lua).

#include <lockstep/queue_options.hpp>
#include <lockstep/reply.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace lockstep::detail {

/// How large what is enqueued and what is answered may be, for a client with this `max_reply_bytes`.
struct size_limits {
    std::size_t payload = 0;   ///< of an item that it enqueues: it can take it again
    std::size_t budget = 0;    ///< of items in one reply, which has the first always
    std::size_t largest = 0;   ///< of one item in a reply
};
size_limits size_limits_of(std::size_t max_reply_bytes) noexcept;

/// What queue_rules.lua reads.
std::string write_rules(queue_options const& how, bool is_cluster, std::string_view channel);

struct entry_parts {
    std::string_view id;
    std::int32_t deliveries = 0;  ///< before this one
    std::int32_t priority = 0;
    std::string_view payload;
};
/// Throws `protocol_error` for what is no entry.
entry_parts read_entry(std::string_view entry);

/// In place of an entry that is too large for us (read_within.lua).
struct large_entry {
    std::size_t bytes = 0;
    std::string head;  ///< an entry without its payload
};
std::optional<large_entry> read_large_entry(std::string_view entry);

struct push_answer {
    bool late = false;
    std::int64_t now_ms = 0;
    std::string batch;
    std::size_t accepted = 0;
    std::vector<std::pair<std::size_t, std::string>> twins;  ///< which one (from 0 on) has the key of which item
    bool told = true;  ///< somebody who waits was told of them
};
push_answer read_push_answer(reply_view said);

struct pull_answer {
    bool late = false;
    std::int64_t now_ms = 0;
    std::int64_t look_again_ms = 0;
    bool waits = false;
    bool more = false;  ///< there is more, which did not fit
    std::int64_t dropped = 0;  ///< dead letters that were too old or too many
    std::vector<std::size_t> lost;         ///< which of the verdicts, from 0 on
    std::vector<std::string_view> tokens;  ///< of the items that were taken
    std::string_view victim;               ///< whose lane to steal from
    std::uint64_t dropped_completed = 0;   ///< of jobs: how many that had ended were forgotten before their retention was over
    std::uint64_t dropped_failed = 0;
};
/// Points into the reply.
pull_answer read_pull_answer(reply_view said, bool is_of_jobs);

/// An item in a message, leased from then on.
struct offer {
    std::int64_t now_ms = 0;
    std::chrono::milliseconds lease{};
    std::string_view token;
    std::string_view entry;
};
offer read_offer(std::string_view message);

struct once_answer {
    bool late = false;
    std::int64_t now_ms = 0;
    std::string text;  ///< behind the sequence
};
/// Of scripts that depot::ask_once runs.
once_answer read_once_answer(reply_view said);
std::int64_t read_number(std::string_view text);

}  // namespace lockstep::detail
