// lockstep jobs schedule|crons|unschedule|pause|resume: jobs by the clock.

#include "cli/job_words.hpp"
#include "cli/table.hpp"
#include "cli/view.hpp"
#include "common/job_json.hpp"

#include <boost/json.hpp>
#include <fmt/chrono.h>
#include <fmt/format.h>
#include <unistd.h>

#include <ctime>
#include <iostream>
#include <iterator>

namespace lockstep::cli {
namespace {

using system_time = std::chrono::system_clock::time_point;

/// With its date, as it may be far away, and its zone: this machine's, which need not be the schedule's.
std::string show_date(system_time at) {
    auto const seconds = std::chrono::system_clock::to_time_t(at);
    std::tm parts{};
    ::localtime_r(&seconds, &parts);
    return fmt::format("{:%Y-%m-%d %H:%M:%S %Z}", parts);
}

missed_runs policy_of(std::string const& word) {
    if (word == "once") return missed_runs::once;
    return word == "all" ? missed_runs::all : missed_runs::skip;
}

exit_code schedule(context const& all, job_words const& what) {
    auto const payload = what.read_payload();
    auto by = all.connect();
    cron_options how{.expression = what.expression, .zone = what.zone, .missed = policy_of(what.missed), .job = what.options()};
    if (what.late) how.late = *what.late;
    auto const next = job_client{by, what.name}.cron(what.id, what.type, payload, how);
    bool const is_paused = next == system_time{};
    if (all.json) {
        boost::json::object made{{"id", what.id}, {"paused", is_paused}};
        if (!is_paused) made["next_ms"] = apps::in_ms(next);
        all.print_json(made);
    } else if (is_paused) {
        all.note(fmt::format("{} stays paused", printable(what.id)));
    } else {
        all.print(fmt::format("{}\n", show_date(next)));
    }
    return exit_code::ok;
}

exit_code list(context const& all, job_words const& what) {
    auto by = all.connect();
    table shown{{{"ID"}, {"TYPE"}, {"EXPRESSION"}, {"ZONE"}, {"NEXT"}, {"LAST"}, {"LAST JOB"}, {"PAYLOAD", align::left, true}}};
    auto const crons = job_client{by, what.name}.crons();
    if (crons.empty()) throw not_found{fmt::format("jobs {} have no schedules", printable(what.name))};
    for (auto const& one : crons) {
        if (all.json) {
            all.print_json(apps::json_of(one));
        } else {
            shown.add({one.id, one.type, one.expression, one.zone, one.next ? show_date(*one.next) : "paused", one.last ? show_date(*one.last) : "",
                       one.last_job, one.payload});
        }
    }
    if (!shown.empty()) all.print(shown.text(all.coloured(), all.width()));
    return exit_code::ok;
}

constexpr auto const* show_schedules = "`lockstep jobs crons NAME` shows what there is";
constexpr auto const* show_both = "`lockstep jobs crons NAME` shows the schedules; jobs of a type are meant with --type TYPE";

exit_code done(context const& all, job_words const& what, bool is_done, char const* kind, char const* word, char const* advice) {
    if (!is_done) throw not_found{fmt::format("there is no {}schedule {}", kind, printable(what.id)), advice};
    if (all.json) all.print_json(boost::json::object{{"id", what.id}, {word, true}});
    return exit_code::ok;
}

exit_code unschedule(context const& all, job_words const& what) {
    auto by = all.connect();
    return done(all, what, job_client{by, what.name}.drop_cron(what.id), "", "unscheduled", show_schedules);
}

/// A schedule, or a type.
void require_one(job_words const& what) {
    if (what.id.empty() == what.type.empty()) {
        throw failure{exit_code::usage, "give the ID of a schedule, or --type TYPE", "with --type no worker begins jobs of that type until it is resumed"};
    }
}

exit_code pause(context const& all, job_words const& what) {
    require_one(what);
    auto by = all.connect();
    job_client of{by, what.name};
    if (what.type.empty()) return done(all, what, of.pause_cron(what.id), "", "paused", show_both);
    bool const is_changed = of.pause(what.type);
    auto const found = of.counts(what.type);
    if (all.json) {
        all.print_json(boost::json::object{{"type", what.type}, {"paused", true}, {"changed", is_changed}});
    } else {
        all.print(fmt::format("{} {}: {} waiting, {} delayed, {} running\n", what.type, is_changed ? "is paused" : "was paused already", found.waiting, found.delayed, found.running));
        if (found.ever_added == 0) all.note(fmt::format("there has never been a job of type {}", what.type));
    }
    return exit_code::ok;
}

exit_code resume(context const& all, job_words const& what) {
    require_one(what);
    auto by = all.connect();
    job_client of{by, what.name};
    if (what.type.empty()) return done(all, what, of.resume_cron(what.id), "paused ", "resumed", show_both);
    bool const is_changed = of.resume(what.type);
    if (all.json) all.print_json(boost::json::object{{"type", what.type}, {"paused", false}, {"changed", is_changed}});
    if (is_changed || all.json) return is_changed ? exit_code::ok : exit_code::no;
    throw failure{exit_code::no, fmt::format("jobs of type {} are not paused", what.type), "`lockstep jobs stats NAME` shows which are"};
}

}  // namespace

void job_words::declare_payload(CLI::App& to) {
    auto const take = [this](std::string const& text) {
        payload = text;
        has_payload = true;
    };
    to.add_option_function<std::string>("PAYLOAD", take, "its payload; without it, standard input to its end, unless that is a terminal")->type_name("");
}

void job_words::declare_options(CLI::App& to) {
    to.add_option("--attempts", attempts, "how often it may be tried in all [20]")->type_name("N")->check(number_within(1, 1'000'000));
    add_duration(to, "--timeout", timeout, "a try that takes longer has failed");
    to.add_option("--key", key, "not while one of its type with this key waits or runs")->type_name("KEY");
    to.add_option("--tags", tags, "words by which `jobs ls --tag` finds it, with spaces between them")->type_name("TAGS");
}

std::string job_words::read_payload() const {
    if (has_payload) return payload;
    if (::isatty(STDIN_FILENO) == 1) return {};
    return {std::istreambuf_iterator<char>{std::cin}, std::istreambuf_iterator<char>{}};
}

job_options job_words::options() const {
    return {.priority = priority, .attempts = attempts, .timeout = timeout.value_or(std::chrono::milliseconds{0}), .key = key, .tags = tags};
}

void add_cron_actions(CLI::App& command, context& all, std::shared_ptr<job_words> const& what) {
    auto const add = [&](char const* name, char const* about, exit_code (*act)(context const&, job_words const&)) {
        auto* const made = add_action(command, name, about);
        add_name(*made, what->name, "the jobs");
        made->callback([act, what, &all] { all.action = [act, what, &all] { return act(all, *what); }; });
        return made;
    };
    auto const with_id = [&](CLI::App* to) {
        to->add_option("ID", what->id, "of the schedule")->required()->type_name("");
        return to;
    };
    auto* const putting = with_id(add("schedule", "such a job whenever a cron expression says so; the same ID again replaces it", schedule));
    putting->add_option("EXPRESSION", what->expression, "\"30 2 * * MON-FRI\", @daily; with six fields the first is seconds")->required()->type_name("");
    putting->add_option("TYPE", what->type, "of the jobs")->required()->type_name("");
    what->declare_payload(*putting);
    putting->add_option("--zone", what->zone, "its time zone, as in Europe/Berlin [UTC]")->type_name("ZONE");
    putting->add_option("--missed", what->missed, "what becomes of due times at which no worker was there: skip, once or all [skip]")
        ->type_name("WORD")
        ->check(CLI::IsMember({"skip", "once", "all"}));
    add_duration(*putting, "--late", what->late, "a due time counts as missed when so much time has gone by [1m]");
    putting->add_option("--priority", what->priority, "larger ones are run first [0]")->type_name("N")->check(number_within(-1'000'000, 1'000'000));
    what->declare_options(*putting);

    add("crons", "the schedules, with their next and last runs", list);
    with_id(add("unschedule", "forget a schedule; its jobs stay", unschedule));
    auto const of_either = [&](CLI::App* to) {
        to->add_option("ID", what->id, "of a schedule")->type_name("");
        to->add_option("--type", what->type, "jobs of this type, instead of a schedule")->type_name("TYPE");
    };
    of_either(add("pause", "a schedule makes no jobs, or with --type no worker begins jobs of that type, until it is resumed", pause));
    of_either(add("resume", "a schedule or a type that was paused goes on", resume));
}

}  // namespace lockstep::cli
