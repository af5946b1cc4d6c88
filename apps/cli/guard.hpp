#pragma once

// A process of ours that does nothing but outlive us: should this one be killed, it kills the command's process group (or those of all its
// commands), so that nothing goes on without the lock. (PR_SET_PDEATHSIG reaches the command itself and none of the processes that it has started.)

#include <sys/types.h>

namespace lockstep::cli {

class guard {
public:
    /// Before any thread is started. Throws std::system_error.
    guard();
    /// Sends it home; what it still watches over is killed.
    ~guard();
    guard(guard const&) = delete;
    guard& operator=(guard const&) = delete;

    /// From now on this process group dies with us, too; 0: none does. From any thread.
    void watch(pid_t group) noexcept;
    /// That one has ended.
    void forget(pid_t group) noexcept { watch(-group); }
    /// Where a child writes its process group itself, as pid_t.
    int line() const noexcept { return line_; }

private:
    pid_t pid_ = -1;
    int line_ = -1;
};

}  // namespace lockstep::cli
