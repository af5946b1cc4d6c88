#pragma once

// The process groups of the commands of a worker: whoever stops or ends the worker stops or ends them with it.

#include "cli/child.hpp"
#include "cli/guard.hpp"

#include <chrono>
#include <csignal>
#include <functional>
#include <list>
#include <mutex>

namespace lockstep::cli {

class command_groups {
public:
    explicit command_groups(guard& watched) noexcept : watched_(watched) {}

    /// A command that runs, for one thread. If this goes before it is `over`, because something threw, the group is killed: nobody watches over it any more.
    class member {
    public:
        member(command_groups& among, command_line const& what, sigset_t const& mask, std::function<bool()> may_go_on);
        ~member();
        member(member const&) = delete;
        member& operator=(member const&) = delete;

        pid_t group() const noexcept { return group_; }
        /// To all of its group; waits while they are paused.
        void signal(int number) noexcept;
        /// It stays a zombie until it is reaped, so that its number is not somebody else's.
        bool has_ended() const noexcept;
        int reap() noexcept;  ///< as from waitpid, for which it waits
        bool has_others() const noexcept;  ///< in its group, when it was reaped
        void over() noexcept;              ///< nothing is left of it

    private:
        friend command_groups;
        command_groups& among_;
        std::function<bool()> may_go_on_;
        std::list<member*>::iterator place_;
        pid_t group_ = -1;
        bool is_reaped_ = false;
        bool is_over_ = false;
    };

    /// Stops them all, calls `meanwhile`, then continues those that may go on and kills the others. None is started or signalled in between.
    void pause(std::function<void()> const& meanwhile);
    /// Kills them all, and at once those that are started from now on. Returns how many there were.
    std::size_t kill_all() noexcept;
    /// Kills them all, and lets none be started any more, nor be told to have ended: the process must end.
    void end() noexcept;

private:
    bool lock_in_time() noexcept;

    guard& watched_;
    std::mutex mutex_;
    std::list<member*> all_;
    bool kills_ = false;
};

}  // namespace lockstep::cli
