#pragma once

/// The options of `queue` and `work_stealing_queue`, and what they tell.

#include <lockstep/text_ref.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>

namespace lockstep {

/// The largest payload that `queue`, `work_stealing_queue` and jobs accept. It is half of the client's `max_reply_bytes` where that is less.
inline constexpr std::size_t max_payload_bytes = std::size_t{128} << 20;

/// How a queue behaves for this object.
struct queue_options {
    /// How long an item is left with who took it, without a word from it; then it comes back. 20 ms to 24 h.
    std::chrono::milliseconds visibility{30'000};
    /// Prolong that while the item is held here, every third of it.
    bool renew = true;

    // Limits of the queue. What is set here is kept in the queue, as long as it is remembered or has dead letters, for those who set nothing; what nobody
    // has set is the default. Whoever sets something else changes that.

    /// An item that came back so often goes to the dead letters instead. 1 to 1,000,000; 20 by default: with the backoff of `consume`, about two hours.
    std::optional<std::int32_t> max_deliveries{};
    /// How many items may wait, those that are put off included and those that are held not. 0, the default: any number.
    std::optional<std::int64_t> max_length{};
    /// How long dead letters are kept. 14 days by default; 0: until they are dropped by hand or for the following limits.
    std::optional<std::chrono::milliseconds> dead_retention{};
    /// How many dead letters are kept: the youngest. 0, the default: any number.
    std::optional<std::int64_t> max_dead{};
    /// How much memory of the server dead letters may take, about. 0, the default: any amount.
    std::optional<std::int64_t> max_dead_bytes{};

    /// False: what is taken is gone, as by BLPOP. No lease, nothing to acknowledge, and nothing comes back (what nobody waits for any more is put there
    /// again, behind the others).
    bool reliable = true;
    /// How long the queue is remembered when it is empty and nobody uses it. Items do not expire. 1 s or more; some minutes at least.
    std::chrono::milliseconds retention{3'600'000};
};

/// How an item is enqueued.
struct enqueue_options {
    /// Nobody gets it before this time is over.
    std::chrono::milliseconds delay{0};
    /// Larger ones are taken before smaller ones. -1,000,000 to 1,000,000.
    std::int32_t priority = 0;
    /// While an item with this key waits or is held, another one is not enqueued. 0 to 512 bytes; empty: none.
    text_ref key{};
    /// Nor for this long after the item was done. Counts only with a key.
    std::chrono::milliseconds key_window{0};
};
static_assert(std::is_trivially_destructible_v<queue_options> && std::is_trivially_destructible_v<enqueue_options>);

/// What became of an item that was enqueued.
struct enqueued {
    std::string id;      ///< of this one, or of the one that has its key
    bool is_new = true;  ///< false: there is one with its key already, so this one was left out
};

struct queue_counts {
    std::int64_t ready = 0;    ///< to be taken
    std::int64_t delayed = 0;  ///< put off
    std::int64_t held = 0;     ///< taken, and not acknowledged yet
    std::int64_t dead = 0;     ///< dead letters
    std::int64_t dropped = 0;  ///< dead letters that were dropped for their age or number, since the queue is remembered
    bool paused = false;       ///< nothing is delivered until `resume`
};

/// How `consume` works.
struct consume_options {
    std::size_t concurrency = 1;                     ///< how many handlers at once. 1 to 10,000; threads: 1 to 1,000
    std::chrono::milliseconds backoff{1'000};        ///< how long an item waits whose handler threw, 10 years at most; doubled with each delivery
    std::chrono::milliseconds max_backoff{600'000};  ///< at most
    /// How long destruction lets handlers finish before it trips their stop tokens and gives back what they handle. 0 to 24 h.
    std::chrono::milliseconds stop_limit{30'000};
};
static_assert(std::is_trivially_destructible_v<consume_options>);

}  // namespace lockstep
