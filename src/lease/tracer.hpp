#pragma once

// Tells what happens: to the user's hook, and to the flight recorder at the server.
//
//     <prefix>:{record}:log   stream, capped: what kind use name hold fence permits waited held at trace detail owner
//
// `at` is ms since 1970 by the server's clock, waited and held are in µs, the owner is `<name> <host> <pid>`; what is empty is left out.
// Records wait here a moment, so that many leave together, and not for ever: when the server can't be reached, only the last 10,000 are
// kept, and the first after them says how many are missing. In turns.

#include "redis/reactor.hpp"

#include <lockstep/trace.hpp>

#include <cstdint>
#include <deque>
#include <memory>
#include <string>

namespace lockstep::detail {
class core;
}

namespace lockstep::engine {

class hub;

/// The stream's last word in its key, and its name there.
inline constexpr std::string_view record_name = "record";
inline constexpr std::string_view record_word = "log";

class tracer final : redis::timer {
public:
    explicit tracer(hub& home);

    /// Somebody listens. Otherwise nothing is to be built.
    bool is_on() const noexcept { return on_; }
    void tell(trace_record const& record) noexcept;
    /// The client closes: what is still here goes out.
    void end() noexcept;

private:
    void fire() noexcept override;
    void flush();

    hub& hub_;
    detail::core& owner_;
    bool on_;
    std::string key_;
    std::string self_;  // name host pid
    std::deque<std::string> waiting_;  // encoded commands
    std::uint64_t dropped_ = 0;
};

}  // namespace lockstep::engine
