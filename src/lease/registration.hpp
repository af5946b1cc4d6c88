#pragma once

// Who this client is, what it holds and what it waits for, kept at the server for people and monitors. Nothing depends on it.
//
//     <prefix>:{clients}:index  sorted set: ids of clients, by when they were last heard of (server's time, ms)
//     <prefix>:{clients}:<id>   hash, for each client that has used a lock or one of its like. The ids of its holds at the server begin with `<id>.`
//       name host pid version     which program, where; name as in CLIENT LIST
//       since                     when the client was made, by its own clock, in ms since 1970
//       said                      when this was said, by the server's clock, in ms since 1970
//       held waiting              how many holds it has, and how many threads and coroutines wait in it
//       holds                     a line for each name: `<kind> <as> <holds> <permits> <fence> <name>`
//       waits                     a line for each name: `<kind> <for> <waiters> <permits> <ms> <name>`
//       holds_left_out waits_left_out   how many of `held` and `waiting` are in no line, because there would be too many
//
// Words are separated by one space. The name is the last, percent-encoded as in its key; it may have spaces. The kind is the last part of
// its key. As: `owner` (lock, recursive), `reader` or `writer` (shared), `permits` (semaphore), `signal` (event). For: the same, or
// `creation` (of a semaphore), `set` (broadcast), `open` (latch), `others` (barrier: it has arrived) or `place` (barrier: it is full). There
// is a line for each that differs. Permits are those of all in the line together, and where there are none to count as many as holds or
// waiters. The fence is the largest of them, the ms say how long the one that waits longest had waited when this was said.
//
// A client that has said this hears on the channel `<prefix>:wake:<id>` (in a Cluster too), so PUBSUB NUMSUB knows whether it is connected:
//     ?<ms>[ <pace>]   say it now, and for so long (10 min at most) soon after each change; each time the id is published on `<prefix>:news`. With
//               a pace, in ms, not more often than that, and for the first time within it: who watches many clients asks each of them for less
//     !<hold>   the hold was ended by force    ~<hold>  somebody asks for it to be released
//
// Said a second after the first use, then every 10 s or a little earlier, together with a batch of renewals; one request each time, of
// 200 lines and 32 kB of each list at most. Kept for ten minutes: so long a monitor can tell that a client was there and is gone. A client
// that is closed takes its hash along. Never on the way of an acquisition: what is held and waited for is looked at only when it is said.

#include "redis/reactor.hpp"

#include <atomic>
#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::engine {

class hub;

class registration final : redis::arrival {
public:
    explicit registration(hub& home);

    /// There is something to tell: soon, and from then on until the client closes. From any thread.
    void begin() noexcept {
        if (!begun_.load(std::memory_order_relaxed)) begin_now();
    }

    // In turns:
    void end() noexcept;
    /// Something else is being sent: what is due soon goes along.
    void go_along() noexcept;
    /// Somebody looks at this client: '<ms>[ <pace>]'.
    void watched(std::string_view terms) noexcept;
    void changed() noexcept {
        if (is_watched_) say_soon();
    }

    static constexpr std::chrono::milliseconds interval{10'000};
    static constexpr std::chrono::milliseconds kept{600'000};
    static constexpr std::size_t most_lines = 200;     ///< of each list
    static constexpr std::size_t most_bytes = 32'768;  ///< of each list

private:
    void begin_now() noexcept;
    void say_soon() noexcept;
    void say_at(redis::reactor::clock::time_point when) noexcept;
    void arm_by(redis::reactor::clock::time_point when) noexcept;
    void send_statistics() noexcept;
    void arrive() noexcept override;
    void fire() noexcept override;
    std::vector<std::string> describe() const;
    std::vector<std::string> keys() const;

    hub& hub_;
    std::string const parent_;
    std::atomic<bool> begun_{false};
    bool said_ = false;
    bool is_watched_ = false;
    std::chrono::milliseconds pace_;
    redis::reactor::clock::time_point watched_until_{};
    redis::reactor::clock::time_point said_at_{};
    redis::reactor::clock::time_point counted_at_{};
};

}  // namespace lockstep::engine
