// lockstep run NAME [options] -- command...

#include "cli/commands.hpp"
#include "cli/job.hpp"
#include "cli/options.hpp"

#include <memory>

namespace lockstep::cli {

void add_run(CLI::App& command, context& all) {
    auto const how = std::make_shared<run_options>();
    auto const wait = std::make_shared<patience>();
    command.description("Runs a command while holding a lock:\n\n    lockstep run NAME [OPTIONS] -- COMMAND [ARGUMENTS...]\n");
    command.footer(
        "The command runs without a shell, with LOCKSTEP_NAME, LOCKSTEP_FENCE and LOCKSTEP_OWNER in its environment. Its exit code is\n"
        "returned, 128+n if signal n ended it; 1 (see -E) if the lock was not obtained; 75 if the lease was lost and the command\n"
        "was stopped; 126 and 127 if it can't be run.");
    add_name(command, how->name, "the lock; `mutex` and `shared_mutex` of that name in programs exclude it too");
    wait->declare(command);
    auto* const shared = command.add_flag("-s,--shared", how->shared, "share it with others that say -s");
    command.add_flag("-x,-e,--exclusive", how->exclusive, "share it with nobody, the default")->excludes(shared);
    command.add_option("-c,--permits", how->permits, "take one of N permits of a semaphore instead")
        ->type_name("N")
        ->check(number_within(1, 1'000'000'000))
        ->excludes(shared);
    command.add_option("-E,--conflict-exit-code", how->conflict_code, "return this where the lock is not obtained [1]")
        ->type_name("CODE")
        ->check(number_within(0, 255));
    add_duration(command, "--ttl", how->ttl, "how long the server keeps the lock if this machine dies [30s]");
    add_duration(command, "--at-least", how->at_least, "hold it at least so long, even if the command ends sooner");
    add_duration(command, "--max-hold", how->max_hold, "stop the command and give the lock back after so long");
    add_duration(command, "--kill-after", how->kill_after, "from SIGTERM to SIGKILL when the lease is lost [5s, at most a tenth of --ttl]");
    command.add_flag("--yield", how->yield, "send SIGTERM to the command when somebody asks for the lock");
    command.add_flag("--record", all.connection.record, "write to the flight recorder, for history and verify");
    command.callback([how, wait, &all] {
        how->wait = wait->time();
        all.action = [how, &all] {
            signals from;
            return static_cast<exit_code>(job{all, *how, from}.run());
        };
    });
}

}  // namespace lockstep::cli
