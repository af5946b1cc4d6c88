#pragma once

// Sessions of calls that count once (stream_add.lua). As engine::session_pool, but of one object and for any thread.

#include "base/random.hpp"

#include <cstdint>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

namespace lockstep::detail {

class add_sessions {
public:
    struct session {
        std::string id;
        std::int64_t sequence = 0;
    };

    session borrow() {
        std::lock_guard const guard{mutex_};
        if (idle_.empty()) return {.id = owner_ + '.' + std::to_string(++made_), .sequence = 1};
        auto free = std::move(idle_.back());
        idle_.pop_back();
        ++free.sequence;
        return free;
    }
    /// Only when the call was answered: one that was given up may still run, and the session's next one must come after it.
    void give_back(session used) {
        std::lock_guard const guard{mutex_};
        idle_.push_back(std::move(used));
    }

private:
    std::string owner_ = base::random_id();
    std::mutex mutex_;
    std::uint64_t made_ = 0;
    std::vector<session> idle_;
};

}  // namespace lockstep::detail
