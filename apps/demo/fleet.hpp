#pragma once

// The demo's worker processes: started, listened to, killed and replaced.

#include <sys/types.h>

#include <chrono>
#include <functional>
#include <string>
#include <vector>

namespace lockstep::demo {

class fleet {
public:
    using clock = std::chrono::steady_clock;

    struct member {
        std::string name, role;
        pid_t pid = -1;  ///< -1: not running
        clock::time_point again{};  ///< when to start it again
    };
    using hears = std::function<void(member const&, std::string const& line)>;

    /// `program` is called as: program demo-worker --url URL --worker NAME --role ROLE
    fleet(std::string program, std::string url, std::vector<member> members);
    ~fleet();
    fleet(fleet const&) = delete;
    fleet& operator=(fleet const&) = delete;

    std::vector<member> const& members() const noexcept { return members_; }
    void start(member const& who);
    /// What it said before it died is told too.
    void kill(member const& who, clock::time_point again, hears const& told);
    /// Waits at most so long for something to be said, and tells all that was.
    void listen(std::chrono::milliseconds most, hears const& told);
    /// Those that ended by themselves since the last call; they are not running any more.
    std::vector<member> collect(clock::time_point again, hears const& told);
    /// Asks all to end, and waits for that; those that don't in time are killed.
    void finish(std::chrono::milliseconds time, hears const& told);

private:
    struct pipes {
        int input = -1, output = -1;
        std::string unread;
    };
    /// All that is there now; false: the pipe has ended.
    bool drain(std::size_t index, hears const& told);
    void close(std::size_t index) noexcept;
    std::size_t index_of(member const& who) const;

    std::string program_, url_;
    std::vector<member> members_;
    std::vector<pipes> pipes_;
};

}  // namespace lockstep::demo
