// What the workers of a chaos run share, by name. A name begins with its kind.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

namespace lockstep::chaos {

inline constexpr std::size_t mutex_names = 3, semaphore_names = 2, shared_names = 2, barrier_names = 2, election_names = 2, redlock_names = 3, plain_names = 1;
inline constexpr std::int64_t semaphore_permits = 3;
/// How long the server remembers who took a signal, for those whose reply was lost.
inline constexpr std::chrono::seconds event_ttl{5};

inline std::string numbered(char const* kind, std::uint64_t index) {
    return std::string{kind} + "-" + std::to_string(index);
}

/// Of all holds of this name: what is valid for longer after a moment was renewed since.
inline std::chrono::milliseconds ttl_of(std::string_view name) {
    using namespace std::chrono_literals;
    if (name == "mutex-1" || name == "election-1" || name == "redlock-2") return 1s;
    if (name == "mutex-2" || name == "semaphore-1") return 400ms;
    return name == "shared-1" ? 500ms : 600ms;
}

/// How many meet at a barrier.
inline constexpr std::int64_t parties_of(std::uint64_t barrier) { return 2 + static_cast<std::int64_t>(barrier); }

/// Another event every second: a signal that is lost is missed among few.
inline std::string event_name(std::int64_t boot_ns) {
    return numbered("event", static_cast<std::uint64_t>(boot_ns) / 1'000'000'000);
}

/// Any of those that one server has, kinds taking turns.
inline std::string name_at(std::uint64_t index, std::int64_t boot_ns) {
    auto const within = index / 6;
    switch (index % 6) {
        case 0: return numbered("mutex", within % mutex_names);
        case 1: return numbered("semaphore", within % semaphore_names);
        case 2: return numbered("shared", within % shared_names);
        case 3: return numbered("barrier", within % barrier_names);
        case 4: return numbered("election", within % election_names);
        default: return event_name(boot_ns);
    }
}

/// And of those over independent nodes. "plain" are redlocks without fences.
inline std::string quorum_name_at(std::uint64_t index) {
    auto const within = index / 4;
    switch (index % 4) {
        case 0: return numbered("election", within % election_names);
        case 1: return numbered("plain", within % plain_names);
        default: return numbered("redlock", within % redlock_names);
    }
}

}  // namespace lockstep::chaos
