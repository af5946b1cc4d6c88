// Which connections there are, and which one makes room when there are too many, so that a client that holds idle sockets shuts nobody out.
// Decides only; closing is up to what each connection gave to admit(). May be called on any thread; drops are called on that of admit().
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>

namespace lockstep::dashboard {

struct connection_limits {
    std::size_t total = 256;
    std::size_t untrusted_per_network = 16;  // that have not logged in
};

class connection_table {
public:
    using id = std::uint64_t;

    explicit connection_table(connection_limits limits) : limits_(limits) {}

    // A new connection, idle and not trusted. Where there are too many of its network, the oldest of these is dropped, an idle one first; where
    // there are too many at all, the oldest idle one that is not trusted, else another. Nothing: all are busy with requests of those who have
    // logged in, and this one must be refused.
    [[nodiscard]] std::optional<id> admit(std::string network, std::function<void()> drop);
    // Idle: it waits for a request, or for its turn. Trusted: its last request was of somebody who has logged in.
    void set_state(id connection, bool idle, bool trusted);
    void remove(id connection) noexcept;
    [[nodiscard]] std::size_t size() const;

private:
    struct entry {
        std::string network;
        std::function<void()> drop;
        std::uint64_t since = 0;  // when it became what it is, counted in changes
        bool idle = true;
        bool trusted = false;
    };
    using entries = std::map<id, entry>;

    [[nodiscard]] entries::iterator victim_for(std::string const& network);

    connection_limits limits_;
    mutable std::mutex mutex_;
    entries entries_;
    id next_id_ = 1;
    std::uint64_t changes_ = 0;
};

}  // namespace lockstep::dashboard
