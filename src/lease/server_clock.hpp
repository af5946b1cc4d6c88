#pragma once

// What time it is at the server, as far as its answers have said. In turns.

#include "base/clock.hpp"

#include <chrono>
#include <cstdint>
#include <optional>

namespace lockstep::engine {

class server_clock {
public:
    /// `common` is what all objects know, where there is one server; null in a Cluster.
    explicit server_clock(std::optional<std::int64_t>* common) noexcept : common_(common) {}

    void learn(std::int64_t server_ms) noexcept {
        if (server_ms == 0) return;
        offset_ms_ = server_ms - boot_ms();
        if (common_ != nullptr) *common_ = offset_ms_;
    }
    std::int64_t now() const noexcept {
        if (offset_ms_) return *offset_ms_ + boot_ms();
        if (common_ != nullptr && *common_) return **common_ + boot_ms();
        // A guess until the first answer. A server ahead of it says "late" once and what time it has.
        return in_ms(std::chrono::system_clock::now());
    }

private:
    template <class Time>
    static std::int64_t in_ms(Time time) noexcept {
        return std::chrono::duration_cast<std::chrono::milliseconds>(time.time_since_epoch()).count();
    }
    static std::int64_t boot_ms() noexcept { return in_ms(base::boot_clock::now()); }

    std::optional<std::int64_t>* common_;
    std::optional<std::int64_t> offset_ms_;  // server's clock less boot clock
};

}  // namespace lockstep::engine
