// Which connections there are, and which one makes room when there are too many, so that a client that holds idle sockets shuts nobody out.
// Decides only; closing is up to what each connection gave to admit(). May be called on any thread; drops are called on that of the caller.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>

namespace lockstep::dashboard {

// What a connection does. Those that do what stands first here make room first.
enum class activity : std::uint8_t {
    idle,       // silent, or in the middle of a request
    answering,  // its request is worked on, or the answer is on its way
    delayed,    // its request presents a token, and waits as login_throttle.hpp wants
    streaming,  // a page that follows
};

struct connection_limits {
    std::size_t total = 256;
    std::size_t untrusted_per_network = 16;  // that have not logged in
    std::size_t delayed_per_network = 4;     // of these
    std::size_t streams_per_network = 16;    // of these, too
};

class connection_table {
public:
    using id = std::uint64_t;

    explicit connection_table(connection_limits limits) : limits_(limits) {}

    // A new connection, idle and not trusted. Where there are too many of its network, one of these is dropped: by activity, then the one that has
    // done the same for longest. Where there are too many at all, the same of those that are not trusted, else an idle one. Nothing: all are busy
    // with requests of those who have logged in, and this one must be refused.
    [[nodiscard]] std::optional<id> admit(std::string network, std::function<void()> drop);
    // Trusted: its last request was of somebody who has logged in. Where this makes too many delayed ones of a network, one of them is dropped. Each
    // draws a lot, and the lowest goes: whoever comes often is as likely to be dropped each time as whoever comes once, and to be first or last does
    // not help. It may be this one. Of too many streams the oldest goes.
    void set_state(id connection, activity now, bool trusted);
    // What drops it from now on.
    void set_drop(id connection, std::function<void()> drop);
    void remove(id connection) noexcept;
    [[nodiscard]] std::size_t size() const;

private:
    struct entry {
        std::string network;
        std::function<void()> drop;
        std::uint64_t rank = 0;  // of those that do the same the lowest goes first: when it began, counted in changes, or its lot
        activity now = activity::idle;
        bool trusted = false;
    };
    using entries = std::map<id, entry>;

    [[nodiscard]] entries::iterator victim_for(std::string const& network);
    [[nodiscard]] entries::iterator victim_among(std::string const& network, activity now);
    [[nodiscard]] std::function<void()> take_out(entries::iterator victim);

    connection_limits limits_;
    mutable std::mutex mutex_;
    entries entries_;
    id next_id_ = 1;
    std::uint64_t changes_ = 0;
};

}  // namespace lockstep::dashboard
