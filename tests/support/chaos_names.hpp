// What the workers of a chaos run share, by name. A name begins with its kind.
#pragma once

#include <lockstep/queue_options.hpp>

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

namespace lockstep::chaos {

inline constexpr std::size_t mutex_names = 3, semaphore_names = 2, shared_names = 2, barrier_names = 2, election_names = 2, redlock_names = 3, plain_names = 1;
inline constexpr std::size_t queue_names = 3, stream_names = 1, limit_names = 3, job_names = 1;
inline constexpr std::int64_t semaphore_permits = 3;
/// How long the server remembers who took a signal, for those whose reply was lost.
inline constexpr std::chrono::seconds event_ttl{5};

inline std::string numbered(char const* kind, std::uint64_t index) {
    return std::string{kind} + "-" + std::to_string(index);
}

/// Of all holds of this name: what is valid for longer after a moment was renewed since.
inline std::chrono::milliseconds ttl_of(std::string_view name) {
    using namespace std::chrono_literals;
    if (name == "mutex-1" || name == "election-1" || name == "redlock-2" || name.starts_with("queue-0")) return 1s;
    if (name == "mutex-2" || name == "semaphore-1" || name.starts_with("queue-1")) return 400ms;
    if (name.starts_with("queue-2")) return 5s;
    return name == "shared-1" ? 500ms : 600ms;
}

/// How many meet at a barrier.
inline constexpr std::int64_t parties_of(std::uint64_t barrier) { return 2 + static_cast<std::int64_t>(barrier); }

inline constexpr std::string_view mortal_queue = "queue-1", ordered_queue = "queue-2";
/// Of all who use this queue. One is renewed, and knows priorities, delays and keys; one is not renewed, small, and lets items die; and of the
/// one whose order is checked, items come back late and are never given back unseen by who did not want to wait any longer.
inline queue_options queue_options_of(std::string_view name) {
    queue_options how{.visibility = ttl_of(name), .max_deliveries = 1'000'000};
    if (name != mortal_queue) return how;
    how.renew = false;
    how.max_deliveries = 4;
    how.max_length = 4;
    how.max_dead = 1'000'000;
    return how;
}
/// Those who read a stream together.
inline constexpr char const* stream_group = "readers";

/// A log, a window and a bucket.
struct rate {
    std::int64_t limit = 0;
    std::chrono::milliseconds per{0};
    std::int64_t burst = 0;  ///< of a bucket
};
inline rate rate_of(std::string_view name) {
    using namespace std::chrono_literals;
    if (name == "limit-0") return {.limit = 8, .per = 400ms};
    if (name == "limit-1") return {.limit = 8, .per = 300ms};
    return {.limit = 10, .per = 500ms, .burst = 5};
}

/// Another event every second: a signal that is lost is missed among few.
inline std::string event_name(std::int64_t boot_ns) {
    return numbered("event", static_cast<std::uint64_t>(boot_ns) / 1'000'000'000);
}

/// Any of those that one server has, kinds taking turns.
inline std::string name_at(std::uint64_t index, std::int64_t boot_ns) {
    auto const within = index / 9;
    switch (index % 9) {
        case 0: return numbered("mutex", within % mutex_names);
        case 1: return numbered("semaphore", within % semaphore_names);
        case 2: return numbered("shared", within % shared_names);
        case 3: return numbered("barrier", within % barrier_names);
        case 4: return numbered("election", within % election_names);
        case 5: return numbered("queue", within % queue_names);
        case 6: return within % 2 == 0 ? numbered("stream", within / 2 % stream_names) : numbered("limit", within / 2 % limit_names);
        case 7: return numbered("job", within % job_names);
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
