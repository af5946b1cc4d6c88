// lockstep elect NAME [options] [-- command...]

#include "cli/commands.hpp"
#include "cli/interruption.hpp"
#include "cli/job.hpp"
#include "cli/options.hpp"

#include <lockstep/election.hpp>
#include <lockstep/error.hpp>

#include <boost/json.hpp>
#include <fmt/format.h>

#include <condition_variable>
#include <memory>
#include <mutex>

namespace lockstep::cli {
namespace {

/// Without a command: leads until it is told to end, or loses.
exit_code lead(context const& all, run_options const& how) {
    return interruptible([&](std::stop_token token) {
        auto by = all.connect("elect");
        election in{by, how.name, how.candidacy()};
        std::optional<leadership> leads;
        if (how.wait) {
            leads = in.try_campaign_for(*how.wait, token);
        } else {
            leads = in.campaign(token);
        }
        if (!leads) return static_cast<exit_code>(how.conflict_code);
        if (all.json) {
            all.print_json(boost::json::object{{"name", how.name}, {"id", in.id()}, {"term", std::to_string(leads->term())}});
        } else {
            all.print(fmt::format("{} leads {} in term {}\n", printable(in.id()), printable(how.name), leads->term()));
        }
        std::mutex mutex;
        std::condition_variable_any changed;
        auto const lost = leads->stop_token();
        std::stop_callback const wakes{lost, [&] {
                                           std::lock_guard const guard{mutex};
                                           changed.notify_all();
                                       }};
        {
            std::unique_lock guard{mutex};
            changed.wait(guard, token, [&] { return lost.stop_requested(); });
        }
        if (lost.stop_requested()) leads->check();
        leads->resign();
        throw cancelled_error("told to end");  // by a signal, which says what to return
    });
}

}  // namespace

void add_elect(CLI::App& command, context& all) {
    auto const how = std::make_shared<run_options>();
    auto const wait = std::make_shared<patience>();
    how->elects = true;
    command.description("Stands for election, and runs a command while it leads:\n\n    lockstep elect NAME --id ID [OPTIONS] [-- COMMAND [ARGUMENTS...]]\n");
    command.footer(
        "The command runs as with `lockstep run`, with LOCKSTEP_TERM (a number that grows with every leader) in its environment. When it ends, the\n"
        "next candidate leads. When the leadership is lost the command is stopped, and 75 returned: a supervisor that starts\n"
        "this again has it stand again. Without a command it leads until a signal ends it.");
    add_name(command, how->name, "the election; programs stand in it with lockstep::election");
    command.add_option("--id", how->id, "how others see this candidate [host-pid]")->type_name("ID");
    command.add_option("--priority", how->priority, "0 to 1000; of those who stand the highest is next [0]")->type_name("N")->check(number_within(0, 1000));
    wait->declare(command);
    command.add_option("-E,--conflict-exit-code", how->conflict_code, "return this where it was not elected in time [1]")
        ->type_name("CODE")
        ->check(number_within(0, 255));
    add_duration(command, "--ttl", how->ttl, "how long the seat is kept if this machine dies; it steps down after two thirds of that without the server [15s]");
    add_duration(command, "--kill-after", how->kill_after, "from SIGTERM to SIGKILL when the leadership is lost [5s, at most a third of --ttl]");
    command.add_flag("--yield", how->yield, "send SIGTERM to the command when somebody asks for the seat");
    command.add_flag("--record", all.connection.record, "write to the flight recorder, for history and verify");
    command.callback([how, wait, &all] {
        how->wait = wait->time();
        all.action = [how, &all] {
            if (!all.has_words) return lead(all, *how);
            signals from;
            return static_cast<exit_code>(job{all, *how, from}.run());
        };
    });
}

}  // namespace lockstep::cli
