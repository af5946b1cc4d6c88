#pragma once

// What metrics are made of, without the engine's headers: this client's own counts, and a bounded look at all others'.

#include "base/histogram.hpp"
#include "messaging/message_counts.hpp"

#include <lockstep/client.hpp>
#include <lockstep/monitor.hpp>
#include <lockstep/task.hpp>

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace lockstep::observe {

struct kind_counts {
    std::string kind;
    std::uint64_t acquisitions = 0;
    std::uint64_t waits = 0;
    std::uint64_t timeouts = 0;
    std::uint64_t losses = 0;
    base::histogram held;
    base::histogram waited;
};

/// Since the client was made; every kind, also those that were not used. Empty when the client is closed.
std::vector<kind_counts> own_counts(client& of);

/// What it did with queues and streams. Null when the client is closed.
std::shared_ptr<detail::message_counts const> own_messages(client& of);

/// Nothing: it took longer. Throws as `monitor` does.
task<std::optional<snapshot>> look_at_all(client& by, std::chrono::milliseconds within);

}  // namespace lockstep::observe
