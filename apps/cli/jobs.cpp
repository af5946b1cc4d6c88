// lockstep jobs ls|show|enqueue|retry|cancel|move|stats: what is to be done, and what became of it. Schedules: crons.cpp.

#include "cli/job_words.hpp"

#include "cli/commands.hpp"
#include "cli/confirmation.hpp"
#include "cli/duration.hpp"
#include "cli/interruption.hpp"
#include "cli/table.hpp"
#include "cli/view.hpp"
#include "common/job_json.hpp"

#include <lockstep/error.hpp>

#include <boost/json.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <memory>

namespace lockstep::cli {
namespace {

using std::chrono::milliseconds;
using std::chrono::system_clock;

constexpr std::array states{job_state::waiting, job_state::blocked, job_state::running, job_state::failed, job_state::completed, job_state::cancelled};

/// Time enough for a clock that differs a little.
std::string runs_in(job_info const& one) {
    if (!one.delayed_until) return "";
    return cli::show(std::max(std::chrono::floor<milliseconds>(*one.delayed_until - system_clock::now()), milliseconds{0}));
}

exit_code list(context const& all, job_words const& what) {
    auto by = all.connect();
    job_client of{by, what.name};
    auto const types = what.type.empty() ? of.types() : std::vector<std::string>{what.type};
    table shown{{{"ID"}, {"STATE"}, {"SINCE"}, {"RUNS IN"}, {"TRIES", align::right}, {"WORKER", align::left, true}, {"PAYLOAD", align::left, true}}};
    std::size_t listed = 0;
    auto const add = [&](std::vector<job_info> const& some) {
        for (auto const& one : some) {
            std::string const state{one.delayed_until ? "delayed" : to_string(one.state)};
            bool const fits = what.state.empty() || state == what.state || to_string(one.state) == what.state;
            if (!fits) continue;
            ++listed;
            if (all.json) all.print_json(apps::json_of(one));
            else shown.add({one.id, state, show_time(one.since), runs_in(one), std::to_string(one.failures.size()), one.worker, one.payload});
        }
    };
    for (auto const& type : types) {
        if (!what.tag.empty()) {
            add(of.tagged(type, what.tag, what.from, what.count));
            continue;
        }
        if (what.state == "delayed") {
            add(of.delayed(type, what.from, what.count));
            continue;
        }
        for (auto const state : states) {
            if (what.state.empty() ? state == job_state::completed || state == job_state::cancelled : to_string(state) != what.state) continue;
            add(of.list(type, state, what.from, what.count));
        }
    }
    if (listed == 0) throw not_found{fmt::format("jobs {} have none of these", printable(what.name)), "`lockstep jobs stats NAME` counts them all"};
    if (!shown.empty()) all.print(shown.text(all.coloured(), all.width()));
    return exit_code::ok;
}

[[noreturn]] void no_such_job(job_words const& what) { throw not_found{fmt::format("there is no job {}, or it ended long ago", printable(what.id))}; }

exit_code show(context const& all, job_words const& what) {
    auto by = all.connect();
    auto const found = job_client{by, what.name}.find(what.id);
    if (!found) no_such_job(what);
    if (all.json) {
        all.print_json(apps::json_of(*found));
        return exit_code::ok;
    }
    auto const line = [&all](std::string_view name, std::string_view text) {
        if (!text.empty()) all.print(fmt::format("{:<10}{}\n", name, printable(text)));
    };
    line("id", found->id);
    line("state", fmt::format("{} since {}", to_string(found->state), show_time(found->since)));
    if (found->delayed_until) line("delayed", fmt::format("runs in {}", runs_in(*found)));
    line("created", show_time(found->created));
    if (!found->cron.empty()) line("schedule", fmt::format("{}, due {}", found->cron, show_time(found->due)));
    for (auto const& parent : found->parents) line("after", parent);
    line("tags", fmt::format("{}", fmt::join(found->tags, " ")));
    line("worker", found->worker);
    line("progress", found->progress);
    line("payload", found->payload);
    line("result", found->result);
    line("tries", fmt::format("{} of {} failed", found->failures.size(), found->attempts));
    for (auto const& one : found->failures) line("failed", fmt::format("{} {} ({})", show_time(one.when), one.reason, one.worker));
    return exit_code::ok;
}

/// How it ended: its result, or why it failed.
exit_code wait_for(context const& all, job_client& of, std::string const& id, milliseconds time, std::stop_token token) {
    auto const end = of.wait(id, time, std::move(token));
    if (!end) throw failure{exit_code::no, fmt::format("{} has not ended yet", id)};
    if (all.json) {
        all.print_json(boost::json::object{{"id", id}, {"state", to_string(end->state)}, {"result", end->result}, {"reason", end->reason}});
    } else if (!end->result.empty()) {
        all.print_stored(end->result);
    }
    if (end->state == job_state::completed) return exit_code::ok;
    if (!all.json) all.note(fmt::format("{} {}{}{}", id, to_string(end->state), end->reason.empty() ? "" : ": ", printable(end->reason)));
    return exit_code::no;
}

exit_code enqueue(context const& all, job_words const& what) {
    return interruptible([&](std::stop_token token) {
        auto const payload = what.read_payload();
        auto by = all.connect();
        job_client of{by, what.name};
        auto how = what.options();
        how.delay = what.delay.value_or(milliseconds{0});
        auto const made = of.schedule(what.type, payload, how, token);
        if (!made.is_new) all.note(fmt::format("left out: {} has the same key", made.id), boost::json::object{{"event", "left_out"}, {"id", made.id}});
        if (!what.wait) {
            if (all.json) all.print_json(boost::json::object{{"id", made.id}, {"new", made.is_new}});
            else all.print(made.id + "\n");
            return exit_code::ok;
        }
        return wait_for(all, of, made.id, *what.wait, token);
    });
}

/// Says why not, if it was not in a state for that.
exit_code changed(job_client& of, job_words const& what, bool done, char const* when) {
    if (done) return exit_code::ok;
    auto const found = of.find(what.id);
    if (!found) no_such_job(what);
    throw failure{exit_code::no, fmt::format("{} is {}", printable(what.id), to_string(found->state)), when};
}

/// One by its ID, or with --all those that fit.
void require_one_or_all(job_words const& what) {
    if (what.id.empty() != what.of_all) throw failure{exit_code::usage, "give the ID of a job, or --all", "with --all, --type, --tag, --state and --older-than say which"};
    bool const has_filter = !what.type.empty() || !what.tag.empty() || !what.state.empty() || what.older_than;
    if (has_filter && !what.of_all) throw failure{exit_code::usage, "--type, --tag, --state and --older-than are for --all", "leave out the ID, or these"};
}

job_filter filter_of(job_words const& what) {
    job_filter which;
    which.type = what.type;
    which.tag = what.tag;
    which.older_than = what.older_than.value_or(milliseconds{0});
    for (auto const state : states) {
        if (to_string(state) == what.state) which.state = state;
    }
    return which;
}

exit_code changed_all(context const& all, char const* word, std::int64_t count) {
    if (all.json) all.print_json(boost::json::object{{word, count}});
    else all.print(fmt::format("{} {}\n", count, word));
    return count > 0 ? exit_code::ok : exit_code::no;
}

exit_code retry(context const& all, job_words const& what) {
    require_one_or_all(what);
    auto by = all.connect();
    job_client of{by, what.name};
    if (what.of_all) {
        return interruptible([&](std::stop_token token) {
            return changed_all(all, "retried", of.retry_all(filter_of(what), what.delay.value_or(milliseconds{0}), what.priority, token));
        });
    }
    return changed(of, what, of.requeue(what.id, what.delay.value_or(milliseconds{0}), what.priority), "one that has ended can be run again");
}

bool may_cancel_all(context const& all, job_client& of, job_words const& what) {
    if (what.yes) return true;
    std::string question = fmt::format("This cancels {} of {}", what.state.empty() ? "all jobs that have not ended" : "all that are " + what.state, printable(what.name));
    for (auto const& type : what.type.empty() ? of.types() : std::vector<std::string>{what.type}) {
        auto const now = of.counts(type);
        question += fmt::format("\n  {}: {} waiting, {} delayed, {} blocked, {} running", type, now.waiting, now.delayed, now.blocked, now.running);
    }
    if (!what.tag.empty()) question += "\nonly those with the tag " + what.tag;
    if (what.older_than) question += "\nonly those older than " + cli::show(*what.older_than);
    return confirmed(all, question + "\nThose that run are told to stop, and cannot complete.");
}

exit_code cancel(context const& all, job_words const& what) {
    require_one_or_all(what);
    auto by = all.connect();
    job_client of{by, what.name};
    if (what.of_all) {
        if (!may_cancel_all(all, of, what)) return exit_code::no;
        return interruptible([&](std::stop_token token) { return changed_all(all, "cancelled", of.cancel_all(filter_of(what), token)); });
    }
    return changed(of, what, of.cancel(what.id), "one that has not ended can be cancelled");
}

exit_code move(context const& all, job_words const& what) {
    auto by = all.connect();
    job_client of{by, what.name};
    return changed(of, what, of.move(what.id, what.delay.value_or(milliseconds{0}), what.priority), "one that waits can be moved");
}

exit_code stats(context const& all, job_words const& what) {
    auto by = all.connect();
    job_client of{by, what.name};
    auto const types = what.type.empty() ? of.types() : std::vector<std::string>{what.type};
    if (types.empty()) throw not_found{fmt::format("there are no jobs {}", printable(what.name))};
    std::vector<column> columns{{"TYPE"}, {"PAUSED"}};
    for (auto const* const number : {"WAITING", "DELAYED", "BLOCKED", "RUNNING", "FAILED", "EVER ADDED", "EVER COMPLETED", "EVER FAILED", "EVER CANCELLED", "EVER RETRIED"}) {
        columns.push_back({number, align::right});
    }
    table shown{columns};
    for (auto const& type : types) {
        auto const now = of.counts(type);
        if (all.json) {
            all.print_json(apps::json_of(type, now));
        } else {
            auto const text = [](std::int64_t n) { return cell{std::to_string(n)}; };
            shown.add({type, now.paused ? "yes" : "no", text(now.waiting), text(now.delayed), text(now.blocked), text(now.running), text(now.failed),
                       text(now.ever_added), text(now.ever_completed), text(now.ever_failed), text(now.ever_cancelled), text(now.ever_retried)});
        }
    }
    if (!shown.empty()) all.print(shown.text(all.coloured(), all.width()));
    return exit_code::ok;
}

void add_place(CLI::App& to, job_words& what, char const* delay) {
    add_duration(to, "--delay", what.delay, delay);
    to.add_option("--priority", what.priority, "larger ones are run first [0]")->type_name("N")->check(number_within(-1'000'000, 1'000'000));
}

}  // namespace

void add_jobs(CLI::App& command, context& all) {
    command.description("Jobs: work that is scheduled, tried until it succeeds, and remembered. `lockstep worker`, or a program's job_worker, runs them.");
    command.require_subcommand(1);
    auto const what = std::make_shared<job_words>();
    auto const add = [&](char const* name, char const* about, exit_code (*act)(context const&, job_words const&)) {
        auto* const made = add_action(command, name, about);
        add_name(*made, what->name, "the jobs; programs use them with lockstep::job_client");
        made->callback([act, what, &all] { all.action = [act, what, &all] { return act(all, *what); }; });
        return made;
    };
    auto const with_id = [&](CLI::App* to) { to->add_option("ID", what->id, "as enqueue printed it: TYPE/NUMBER")->required()->type_name(""); };
    auto const with_type = [&](CLI::App* to) { to->add_option("--type", what->type, "of this type only")->type_name("TYPE"); };

    auto* const listing = add("ls", "those that wait, run, or have failed", list);
    with_type(listing);
    listing->add_option("--state", what->state, "only waiting (delayed ones included), delayed, blocked, running, failed, completed or cancelled ones")
        ->type_name("STATE")
        ->check(CLI::IsMember({"waiting", "delayed", "blocked", "running", "failed", "completed", "cancelled"}));
    listing->add_option("--tag", what->tag, "only those with this tag, in any state; the youngest first")->type_name("TAG");
    listing->add_option("--from", what->from, "pass over so many, of each type and state")->type_name("N")->check(number_within(0, 1'000'000'000));
    listing->add_option("--count", what->count, "show so many at most, of each type and state [100]")->type_name("N")->check(number_within(1, 1000));
    with_id(add("show", "all that is known of one", show));

    auto* const adding = add("enqueue", "schedule one, and print its id; its payload may come from standard input", enqueue);
    adding->add_option("TYPE", what->type, "says who handles it")->required()->type_name("");
    what->declare_payload(*adding);
    add_place(*adding, *what, "it is not run before this time is over");
    what->declare_options(*adding);
    add_duration(*adding, "-w,--wait", what->wait, "wait so long for its end, and print its result; returns 1 if it failed, or not in time");

    auto const with_id_or_all = [&](CLI::App* to, char const* about, std::vector<std::string> const& of_states) {
        to->add_option("ID", what->id, "as enqueue printed it: TYPE/NUMBER")->type_name("");
        to->add_flag("--all", what->of_all, about);
        with_type(to);
        to->add_option("--tag", what->tag, "with --all: only those with this tag")->type_name("TAG");
        to->add_option("--state", what->state, fmt::format("with --all: only those in this state: {}", fmt::join(of_states, ", ")))->type_name("STATE")->check(CLI::IsMember(of_states));
        add_duration(*to, "--older-than", what->older_than, "with --all: only those that ended this long ago, or were enqueued then if they have not ended");
    };
    auto* const again = add("retry", "run one that has ended again, or all that failed", retry);
    with_id_or_all(again, "all that failed, or as the other options say", {"failed", "cancelled", "completed"});
    add_place(*again, *what, "not before this time is over");
    auto* const cancelling = add("cancel", "do not run one, or any, that has not ended; those that run are told to stop", cancel);
    with_id_or_all(cancelling, "all that have not ended, or as the other options say", {"waiting", "blocked", "running"});
    cancelling->add_flag("-y,--yes", what->yes, "do not ask me first");
    auto* const moving = add("move", "run one that waits at another time, with this priority", move);
    with_id(moving);
    add_place(*moving, *what, "from now on [0]");
    with_type(add("stats", "how many of each type are in which state", stats));
    add_cron_actions(command, all, what);
}

}  // namespace lockstep::cli
