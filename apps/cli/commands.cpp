#include "cli/commands.hpp"

#include <array>

namespace lockstep::cli {

std::span<sub_command const> sub_commands() {
    static constexpr std::array table{
        sub_command{"run", "run a command while holding a lock", add_run, true},
        sub_command{"sem", "semaphores: create, resize, show", add_sem},
        sub_command{"event", "events: set, clear, is-set, wait", add_event},
        sub_command{"latch", "latches: create, count-down, wait", add_latch},
        sub_command{"barrier", "wait until all have come", add_barrier},
        sub_command{"elect", "run a command while being the leader", add_elect, true},
        sub_command{"leader", "who leads", add_leader},
        sub_command{"observe", "changes of leadership, as they happen", add_observe},
        sub_command{"queue", "queues: push, pop, count, dead", add_queue},
        sub_command{"jobs", "jobs: ls, show, enqueue, retry, cancel, move, stats, schedule, crons", add_jobs},
        sub_command{"worker", "run jobs with programs", add_worker},
        sub_command{"publish", "a message to all who listen now", add_publish},
        sub_command{"subscribe", "messages, as they come", add_subscribe},
        sub_command{"value", "shared values: get, set, erase, watch", add_value},
        sub_command{"map", "shared maps: get, set, erase, list", add_map},
        sub_command{"counter", "counters: get, add, set", add_counter},
        sub_command{"board", "leaderboards: top, rank, add, remove", add_board},
        sub_command{"session", "sessions of a user: count, destroy", add_session},
        sub_command{"limit", "is one more within the limit", add_limit},
        sub_command{"breaker", "circuit breakers: show, open, close", add_breaker},
        sub_command{"ls", "what is held, and by whom", add_ls},
        sub_command{"who", "who holds it, and who waits", add_who},
        sub_command{"why", "why it is not free; finds deadlocks", add_why},
        sub_command{"top", "what is held and who waits, live", add_top},
        sub_command{"dashboard", "the same and more in a browser", add_dashboard},
        sub_command{"stats", "how often, how long, how long waited for", add_stats},
        sub_command{"history", "who held it when, from the flight recorder", add_history},
        sub_command{"verify", "check the flight recorder for overlaps", add_verify},
        sub_command{"release", "end a hold that nobody will end", add_release},
        sub_command{"health", "does it work now", add_health},
        sub_command{"doctor", "what to change in the deployment", add_doctor},
        sub_command{"server", "your own server on this machine: start, status, stop", add_server},
        sub_command{"acl", "the rights that a user of the server needs", add_acl},
        sub_command{"demo", "a fleet that contends, and what happens when some of it dies", add_demo},
        sub_command{"demo-worker", "", add_demo_worker},
    };
    return table;
}

}  // namespace lockstep::cli
