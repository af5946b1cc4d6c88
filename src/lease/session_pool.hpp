#pragma once

// Who counts something once carries a session and a sequence that grows (src/scripts/include/once.lua). Calls of one session follow one
// another, so concurrent calls need one each; a session serves call after call, so that the server has to remember few. In turns.

#include <chrono>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace lockstep::engine {

/// A call that counts once is sent again for so long at most. Then it may run 5 s later, and the server remembers its session for a minute.
inline constexpr std::chrono::milliseconds longest_try{55'000};

struct session {
    std::string id;
    std::int64_t sequence = 0;  ///< of its latest call
};

class session_pool {
public:
    /// Ids begin with the client's.
    explicit session_pool(std::string const& client) : prefix_(client + '.') {}

    /// For one call, under a new sequence.
    session borrow() {
        if (idle_.empty()) return {.id = prefix_ + std::to_string(++made_), .sequence = 1};
        auto free = std::move(idle_.back());
        idle_.pop_back();
        ++free.sequence;
        return free;
    }
    /// Only when the call was answered: one that was given up may still run, and the session's next one must come after it.
    void give_back(session used) { idle_.push_back(std::move(used)); }

private:
    std::string prefix_;
    std::uint64_t made_ = 0;
    std::vector<session> idle_;
};

}  // namespace lockstep::engine
