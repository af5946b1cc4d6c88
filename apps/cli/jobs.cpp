// lockstep jobs ls|show|enqueue|retry|cancel|move|stats: what is to be done, and what became of it. Schedules: crons.cpp.

#include "cli/job_words.hpp"

#include "cli/commands.hpp"
#include "cli/interruption.hpp"
#include "cli/table.hpp"
#include "cli/view.hpp"
#include "common/job_json.hpp"

#include <lockstep/error.hpp>

#include <boost/json.hpp>
#include <fmt/format.h>

#include <array>
#include <memory>

namespace lockstep::cli {
namespace {

using std::chrono::milliseconds;
using std::chrono::system_clock;

constexpr std::array states{job_state::waiting, job_state::blocked, job_state::running, job_state::failed, job_state::completed, job_state::cancelled};

exit_code list(context const& all, job_words const& what) {
    auto by = all.connect();
    job_client of{by, what.name};
    auto const types = what.type.empty() ? of.types() : std::vector<std::string>{what.type};
    table shown{{{"ID"}, {"STATE"}, {"SINCE"}, {"TRIES", align::right}, {"WORKER", align::left, true}, {"PAYLOAD", align::left, true}}};
    auto const add = [&](std::vector<job_info> const& some) {
        for (auto const& one : some) {
            if (!what.state.empty() && to_string(one.state) != what.state) continue;
            if (all.json) all.print_json(apps::json_of(one));
            else shown.add({one.id, std::string{to_string(one.state)}, show_time(one.since), std::to_string(one.failures.size()), one.worker, one.payload});
        }
    };
    for (auto const& type : types) {
        if (!what.tag.empty()) {
            add(of.tagged(type, what.tag, what.from, what.count));
            continue;
        }
        for (auto const state : states) {
            if (what.state.empty() ? state == job_state::completed || state == job_state::cancelled : to_string(state) != what.state) continue;
            add(of.list(type, state, what.from, what.count));
        }
    }
    if (!shown.empty()) all.print(shown.text(all.coloured(), all.width()));
    return exit_code::ok;
}

[[noreturn]] void no_such_job(job_words const& what) { throw failure{exit_code::no, fmt::format("there is no job {}, or it ended long ago", printable(what.id))}; }

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
        all.print(end->result + "\n");
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

exit_code retry(context const& all, job_words const& what) {
    auto by = all.connect();
    job_client of{by, what.name};
    return changed(of, what, of.requeue(what.id, what.delay.value_or(milliseconds{0}), what.priority), "one that has ended can be run again");
}

exit_code cancel(context const& all, job_words const& what) {
    auto by = all.connect();
    job_client of{by, what.name};
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
    table shown{{{"TYPE"}, {"WAITING", align::right}, {"DELAYED", align::right}, {"BLOCKED", align::right}, {"RUNNING", align::right}, {"COMPLETED", align::right}, {"FAILED", align::right},
                 {"CANCELLED", align::right}, {"RETRIED", align::right}, {"EVER ADDED", align::right}}};
    for (auto const& type : types) {
        auto const now = of.counts(type);
        if (all.json) {
            all.print_json(apps::json_of(type, now));
        } else {
            auto const text = [](std::int64_t n) { return cell{std::to_string(n)}; };
            shown.add({type, text(now.waiting), text(now.delayed), text(now.blocked), text(now.running), text(now.ever_completed), text(now.ever_failed),
                       text(now.ever_cancelled), text(now.ever_retried), text(now.ever_added)});
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
    listing->add_option("--state", what->state, "only waiting, blocked, running, failed, completed or cancelled ones")
        ->type_name("STATE")
        ->check(CLI::IsMember({"waiting", "blocked", "running", "failed", "completed", "cancelled"}));
    listing->add_option("--tag", what->tag, "only those with this tag, in any state; the youngest first")->type_name("TAG");
    listing->add_option("--from", what->from, "pass over so many, of each type and state")->type_name("N")->check(CLI::NonNegativeNumber);
    listing->add_option("--count", what->count, "show so many at most, of each type and state [100]")->type_name("N")->check(number_within(1, 1000));
    with_id(add("show", "all that is known of one", show));

    auto* const adding = add("enqueue", "schedule one, and print its id; its payload may come from standard input", enqueue);
    adding->add_option("TYPE", what->type, "says who handles it")->required()->type_name("");
    what->declare_payload(*adding);
    add_place(*adding, *what, "it is not run before this time is over");
    what->declare_options(*adding);
    add_duration(*adding, "-w,--wait", what->wait, "wait so long for its end, and print its result; returns 1 if it failed, or not in time");

    auto* const again = add("retry", "run one that has ended again", retry);
    with_id(again);
    add_place(*again, *what, "not before this time is over");
    with_id(add("cancel", "do not run it any more; if it runs, it is told to stop", cancel));
    auto* const moving = add("move", "run one that waits at another time, with this priority", move);
    with_id(moving);
    add_place(*moving, *what, "from now on [0]");
    with_type(add("stats", "how many of each type are in which state", stats));
    add_cron_actions(command, all, what);
}

}  // namespace lockstep::cli
