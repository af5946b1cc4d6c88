#pragma once

/// How leases are taken and kept: for all objects of a client (`client_options::defaults`), and for one object.
///
///     lockstep::mutex mutex{client, "report", {.ttl = 10s, .max_hold = 5min}};
///
/// What an object leaves out comes from its client, what the client leaves out from the table in docs/options.md (in brackets here).

#include <chrono>
#include <cstddef>
#include <optional>
#include <type_traits>

namespace lockstep {

struct lease_options {
    /// How long the server keeps a hold whose holder is gone, 10 ms to 30 days. [30 s]
    std::optional<std::chrono::milliseconds> ttl{};
    /// Renew it for as long as it is held. False: it ends after `ttl` unless `extend` is called. [true]
    std::optional<bool> renew{};
    /// How often, with ±20 % of jitter, at most every half of `ttl`; 0: every third of it. [0]
    std::optional<std::chrono::milliseconds> renew_every{};
    /// The longest hold: then it is not renewed any more and counts as lost. 0: no limit. [0]
    std::optional<std::chrono::milliseconds> max_hold{};

    /// How long `acquire()` and `lock()` wait before `timeout_error`; 0: for ever. [0]
    std::optional<std::chrono::milliseconds> wait_limit{};
    /// Instead of queueing, try so many times; 0: queue. [0]
    std::optional<unsigned> attempts{};
    /// Between those attempts: this long, plus or minus up to `retry_jitter`. [200 ms, 100 ms]
    std::optional<std::chrono::milliseconds> retry_delay{};
    std::optional<std::chrono::milliseconds> retry_jitter{};

    /// Waiters of one process share one place in the queue and pass a lease on among themselves, at most so often and so long before
    /// other processes get their turn. 0 passes: every waiter queues for itself, first come, first served everywhere. [128, 20 ms]
    std::optional<unsigned> cohort_passes{};
    std::optional<std::chrono::milliseconds> cohort_time{};

    /// How long a waiter that was told of its turn may take to claim it. [500 ms]
    std::optional<std::chrono::milliseconds> claim_window{};
    /// How long the server remembers an unused object (its last fence). [1 h]
    std::optional<std::chrono::milliseconds> retention{};
    /// The most that may wait for one name. [100,000]
    std::optional<std::size_t> max_waiters{};
    /// False: neither counted in statistics nor traced or recorded. For a lease that is a part of something of which another lease is reported, as the
    /// `shared_mutex` of `lockstep run` is. [true]
    std::optional<bool> report{};
};
static_assert(std::is_trivially_destructible_v<lease_options>);

}  // namespace lockstep
