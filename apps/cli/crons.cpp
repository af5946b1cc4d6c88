// lockstep jobs schedule|crons|unschedule|pause|resume: jobs by the clock.

#include "cli/job_words.hpp"
#include "cli/table.hpp"
#include "cli/view.hpp"
#include "common/job_json.hpp"

#include <boost/json.hpp>
#include <fmt/format.h>
#include <unistd.h>

#include <ctime>
#include <iostream>
#include <iterator>

namespace lockstep::cli {
namespace {

using system_time = std::chrono::system_clock::time_point;

/// With its date: it may be far away.
std::string show_date(system_time at) {
    auto const seconds = std::chrono::system_clock::to_time_t(at);
    std::tm parts{};
    ::localtime_r(&seconds, &parts);
    return fmt::format("{:04}-{:02}-{:02} {:02}:{:02}:{:02}", parts.tm_year + 1900, parts.tm_mon + 1, parts.tm_mday, parts.tm_hour, parts.tm_min, parts.tm_sec);
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
    for (auto const& one : job_client{by, what.name}.crons()) {
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

exit_code done(job_words const& what, bool is_done, char const* kind) {
    if (is_done) return exit_code::ok;
    throw failure{exit_code::no, fmt::format("there is no {}schedule {}", kind, printable(what.id)), "`lockstep jobs crons NAME` shows what there is"};
}

exit_code unschedule(context const& all, job_words const& what) {
    auto by = all.connect();
    return done(what, job_client{by, what.name}.drop_cron(what.id), "");
}

exit_code pause(context const& all, job_words const& what) {
    auto by = all.connect();
    return done(what, job_client{by, what.name}.pause_cron(what.id), "");
}

exit_code resume(context const& all, job_words const& what) {
    auto by = all.connect();
    return done(what, job_client{by, what.name}.resume_cron(what.id), "paused ");
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
    to.add_option("--attempts", attempts, "how often it may be tried in all [3]")->type_name("N")->check(number_within(1, 1'000'000));
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
    with_id(add("pause", "a schedule makes no jobs until it is resumed", pause));
    with_id(add("resume", "a schedule that was paused goes on", resume));
}

}  // namespace lockstep::cli
