#pragma once

// Who this client is, what it holds and what it waits for, kept at the server for people and monitors: a hash
// `<prefix>:{clients}:<id>`, and the sorted set `<prefix>:{clients}:index` of all of them. Said now and then, never on the way of an
// acquisition, and nothing depends on it. In turns.

#include "redis/reactor.hpp"

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

namespace lockstep::engine {

class hub;

class registration final : redis::timer {
public:
    explicit registration(hub& home) noexcept : hub_(home) {}

    /// There is something to tell: soon, and from then on until the client closes.
    void begin() noexcept;
    void end() noexcept;

    static constexpr std::chrono::milliseconds interval{10'000};
    static constexpr std::chrono::milliseconds believed{3 * interval};

private:
    void fire() noexcept override;
    std::vector<std::string> describe() const;
    std::vector<std::string> keys() const;

    hub& hub_;
    std::int64_t since_ms_ = 0;  // wall clock
    bool begun_ = false;
    bool said_ = false;
};

}  // namespace lockstep::engine
