#pragma once

#include "support/cpu.hpp"

#include <condition_variable>
#include <cstddef>
#include <mutex>

namespace lockstep::bench {

/// Waits for a number that the client's I/O thread counts up to.
class finish_line {
public:
    explicit finish_line(std::size_t count) : left_(count) {}
    void pass() {
        if (--left_ != 0) return;
        end_ = wall_seconds();
        // Notified under the lock: this object may be gone as soon as the waiting thread can see that it is done.
        std::lock_guard const guard{mutex_};
        done_ = true;
        changed_.notify_one();
    }
    /// When the last one passed.
    double wait() {
        std::unique_lock guard{mutex_};
        changed_.wait(guard, [this] { return done_; });
        return end_;
    }

private:
    std::size_t left_;
    double end_ = 0;
    std::mutex mutex_;
    std::condition_variable changed_;
    bool done_ = false;
};

}  // namespace lockstep::bench
