// Waiting for a condition instead of for a time: the only kind of waiting tests do.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>

namespace lockstep::test {

// True as soon as `condition` holds; false when `timeout` passes first. Polls with small, growing sleeps, so that a
// condition that is nearly there costs little and one that takes seconds does not burn a core others need.
// Usage: EXPECT_TRUE(eventually([&] { return server.running(); }));
[[nodiscard]] bool eventually(std::function<bool()> const& condition,
                              std::chrono::milliseconds timeout = std::chrono::seconds{10});

// Milliseconds on a clock that never steps back; only differences mean anything.
[[nodiscard]] std::int64_t now_ms();

}  // namespace lockstep::test
