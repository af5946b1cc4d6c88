#include "cli/commands.hpp"

#include <array>

namespace lockstep::cli {

std::span<sub_command const> sub_commands() {
    static constexpr auto const* try_it = "Try it";
    static constexpr auto const* locks = "Locks and synchronization";
    static constexpr auto const* leaders = "Leader election";
    static constexpr auto const* messages = "Messages and jobs";
    static constexpr auto const* state = "Shared state and limits";
    static constexpr auto const* monitoring = "Monitoring";
    static constexpr auto const* operations = "Operations";
    static constexpr std::array table{
        sub_command{try_it, "demo", "watch a fleet of processes compete for locks, crash and take over", add_demo},
        sub_command{locks, "run", "run a command while holding a lock", add_run, true},
        sub_command{locks, "sem", "semaphores: create, resize, show", add_sem},
        sub_command{locks, "event", "events: set, clear, is-set, wait", add_event},
        sub_command{locks, "latch", "latches: create, count-down, wait", add_latch},
        sub_command{locks, "barrier", "wait until all parties have arrived", add_barrier},
        sub_command{leaders, "elect", "run a command while being the leader", add_elect, true},
        sub_command{leaders, "leader", "show the current leader", add_leader},
        sub_command{leaders, "observe", "print changes of leadership as they happen", add_observe},
        sub_command{messages, "queue", "queues: push, pop, count, pause, resume, dead", add_queue},
        sub_command{messages, "jobs", "jobs: ls, show, enqueue, retry, cancel, move, stats, schedule, crons", add_jobs},
        sub_command{messages, "worker", "run jobs with programs", add_worker},
        sub_command{messages, "publish", "send a message to all current subscribers", add_publish},
        sub_command{messages, "subscribe", "print messages as they arrive", add_subscribe},
        sub_command{state, "value", "shared values: get, set, erase, watch", add_value},
        sub_command{state, "map", "shared maps: get, set, erase, list", add_map},
        sub_command{state, "counter", "counters: get, add, set", add_counter},
        sub_command{state, "board", "leaderboards: top, rank, add, remove", add_board},
        sub_command{state, "session", "sessions of a user: count, destroy", add_session},
        sub_command{state, "limit", "rate limits: return 0 if one more is allowed", add_limit},
        sub_command{state, "breaker", "circuit breakers: show, open, close", add_breaker},
        sub_command{monitoring, "ls", "list what is held, and by which process", add_ls},
        sub_command{monitoring, "who", "show the holders of a name and its waiters", add_who},
        sub_command{monitoring, "why", "explain why a name is not free; finds deadlocks", add_why},
        sub_command{monitoring, "top", "live view of holders and waiters", add_top},
        sub_command{monitoring, "dashboard", "the same and more in a browser", add_dashboard},
        sub_command{monitoring, "stats", "how often and how long names were held and waited for", add_stats},
        sub_command{monitoring, "history", "who held a name when, from the flight recorder", add_history},
        sub_command{monitoring, "verify", "check the flight recorder for overlapping holders", add_verify},
        sub_command{operations, "release", "release what a dead process still holds", add_release},
        sub_command{operations, "health", "check that the server works now", add_health},
        sub_command{operations, "doctor", "report what to change in the deployment", add_doctor},
        sub_command{operations, "server", "your own server on this machine: start, status, stop", add_server},
        sub_command{operations, "acl", "print the rights that a user of the server needs", add_acl},
        sub_command{"", "demo-worker", "", add_demo_worker},
    };
    return table;
}

}  // namespace lockstep::cli
