#pragma once

// What time it is at the server, as far as its answers have said. In turns.

#include "base/clock.hpp"

#include <chrono>
#include <cstdint>
#include <optional>

namespace lockstep::engine {

class server_clock {
public:
    /// `common` is what all objects know, where there is one server: whoever heard last, not this one, knows it best. Null in a Cluster.
    explicit server_clock(std::optional<std::int64_t>* common) noexcept : common_(common) {}

    void learn(std::int64_t server_ms) noexcept {
        if (server_ms == 0) return;
        (common_ != nullptr ? *common_ : own_) = server_ms - boot_ms();
    }
    std::int64_t now() const noexcept {
        if (auto const& offset = common_ != nullptr ? *common_ : own_) return *offset + boot_ms();
        // A guess until the first answer. A server ahead of it says "late" once and what time it has.
        return in_ms(std::chrono::system_clock::now());
    }

private:
    template <class Time>
    static std::int64_t in_ms(Time time) noexcept {
        return std::chrono::duration_cast<std::chrono::milliseconds>(time.time_since_epoch()).count();
    }
    static std::int64_t boot_ms() noexcept { return in_ms(base::boot_clock::now()); }

    std::optional<std::int64_t>* common_;  // server's clock less boot clock
    std::optional<std::int64_t> own_;
};

}  // namespace lockstep::engine
