#pragma once

// Waiting for a value with a larger version, by push; of shared values and of a shared map's fields.

#include "messaging/doorbell.hpp"
#include "state/watching.hpp"

#include <lockstep/detail/shared_value.hpp>
#include <lockstep/task.hpp>

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>

namespace lockstep::detail {

class newer {
public:
    explicit newer(std::uint64_t known) noexcept : known_(known) {}

    /// What is there now. In turns.
    void offer(std::optional<raw_value> const& now);

    /// Until a newer one is offered. `watch` is what offers, and ends then.
    static task<std::optional<raw_value>> wait(std::shared_ptr<newer> self, std::shared_ptr<watch_state> watch, std::shared_ptr<core> owner);
    /// What `waiting`, which is `wait` of the same, ends with; nothing: it did not in this time. If that was over before it had looked, then what
    /// `reading` finds, so that it is looked once at least. Throws `unavailable_error` where there was no server then.
    static task<std::optional<raw_value>> no_longer_than(std::chrono::milliseconds time, std::shared_ptr<newer> self, std::shared_ptr<state_object const> at,
                                                         task<std::optional<raw_value>> waiting, task<std::optional<raw_value>> reading);

private:
    std::uint64_t known_;
    std::optional<raw_value> got_;
    bool has_looked_ = false;
    doorbell bell_;
};

/// What `reading` finds, if it is newer.
task<std::optional<raw_value>> if_newer(std::uint64_t version, task<std::optional<raw_value>> reading);

}  // namespace lockstep::detail
