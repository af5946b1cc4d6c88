#pragma once

// What the sources of raw_queue share.

#include "messaging/depot.hpp"
#include "scripts/script.hpp"

#include <atomic>
#include <memory>
#include <optional>
#include <span>
#include <string>

namespace lockstep::detail {

task<reply> run_on(std::shared_ptr<depot> at, scripts::script const& script, std::span<std::string const> keys, std::span<argument const> words);

/// Nothing: none by then, or `stopping` (depot::dismiss).
task<std::optional<raw_item>> take(std::shared_ptr<depot> at, std::shared_ptr<queue_tally> tally, raw_queue::until time, std::atomic<bool> const* stopping);

}  // namespace lockstep::detail
