#pragma once

// What the sources of raw_queue share.

#include "messaging/depot.hpp"
#include "scripts/script.hpp"

#include <atomic>
#include <chrono>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace lockstep::detail {

constexpr std::chrono::milliseconds longest_delay = std::chrono::hours{24 * 366 * 10};

task<reply> run_on(std::shared_ptr<depot> at, scripts::script const& script, std::span<std::string const> keys, std::span<argument const> words);

/// Nothing is delivered by it, or again. Without a type it is not a queue of jobs. False: that was so already.
task<bool> set_paused(std::shared_ptr<depot> at, bool pauses, std::string job_type);

/// `tally` may be null. What had no room by then comes back without an id.
task<std::vector<enqueued>> send(std::shared_ptr<depot> at, std::shared_ptr<queue_tally> tally, cargo load,
                                 raw_queue::until until = raw_queue::until::max());

/// What became of an item, without waiting for the answer; an error goes to `failed`, which may be empty. False: it is not held any more, or
/// somebody has said what became of it. From any thread.
bool decide(verdict what, std::function<void(std::exception_ptr)> failed) noexcept;

/// Nothing: none by then, or `stopping` (depot::dismiss).
task<std::optional<raw_item>> take(std::shared_ptr<depot> at, std::shared_ptr<queue_tally> tally, raw_queue::until time, std::atomic<bool> const* stopping);

}  // namespace lockstep::detail
