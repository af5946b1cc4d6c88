#pragma once

// The sub-commands, one file each. To add one: write apps/cli/<name>.cpp with `add_<name>`, which declares its options and sets
// `all.action`, declare it here, and put its line into the table in commands.cpp. The man page and the completions need a line too: a
// test compares them with the table.

#include <span>
#include <string_view>

namespace CLI {
class App;
}

namespace lockstep::cli {

class context;

struct sub_command {
    char const* area;  ///< its heading in --help; empty: not listed there
    char const* name;
    char const* about;
    void (*add)(CLI::App& command, context& all);
    bool takes_command = false;  ///< one of somebody else's, behind `--`
};

/// In the order in which --help shows them.
std::span<sub_command const> sub_commands();

void add_run(CLI::App& command, context& all);
void add_sem(CLI::App& command, context& all);
void add_event(CLI::App& command, context& all);
void add_latch(CLI::App& command, context& all);
void add_barrier(CLI::App& command, context& all);
void add_elect(CLI::App& command, context& all);
void add_leader(CLI::App& command, context& all);
void add_observe(CLI::App& command, context& all);
void add_queue(CLI::App& command, context& all);
void add_jobs(CLI::App& command, context& all);
void add_worker(CLI::App& command, context& all);
void add_publish(CLI::App& command, context& all);
void add_subscribe(CLI::App& command, context& all);
void add_value(CLI::App& command, context& all);
void add_map(CLI::App& command, context& all);
void add_counter(CLI::App& command, context& all);
void add_board(CLI::App& command, context& all);
void add_session(CLI::App& command, context& all);
void add_limit(CLI::App& command, context& all);
void add_breaker(CLI::App& command, context& all);
void add_ls(CLI::App& command, context& all);
void add_who(CLI::App& command, context& all);
void add_why(CLI::App& command, context& all);
void add_dashboard(CLI::App& command, context& all);
void add_top(CLI::App& command, context& all);
void add_stats(CLI::App& command, context& all);
void add_history(CLI::App& command, context& all);
void add_verify(CLI::App& command, context& all);
void add_release(CLI::App& command, context& all);
void add_health(CLI::App& command, context& all);
void add_doctor(CLI::App& command, context& all);
void add_server(CLI::App& command, context& all);
void add_acl(CLI::App& command, context& all);
void add_demo(CLI::App& command, context& all);
void add_demo_worker(CLI::App& command, context& all);

}  // namespace lockstep::cli
