#pragma once

// What one object (a mutex, a semaphore) holds: where, by which settings, and how much of it. Shared by the object and by
// all that it started, so the object may go first.

#include "lease/settings.hpp"

#include <cstdint>
#include <memory>
#include <string>

namespace lockstep::engine {

class room;

struct target {
    std::shared_ptr<room> where{};
    settings how{};
    std::string rules{};        ///< as in lock_acquire.lua: claim window, retention, channel
    std::int64_t amount = 1;  ///< pools: permits
    std::string count{};      ///< pools: the count of a new one; empty: it must exist
    std::string mode{};       ///< pools: "", "consume" or "group <owner>"
    std::string changes{};    ///< elections: the key of their changes
    std::string who{};        ///< elections: as in election_acquire.lua
    int priority = 0;         ///< elections
    std::shared_ptr<void> kept{};  ///< objects without a holder: keeps the key from expiring (key_keepalive)
};

}  // namespace lockstep::engine
