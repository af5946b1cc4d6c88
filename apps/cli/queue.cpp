// lockstep queue push|pop|count|pause|resume|dead: work that goes from one program to another.

#include "cli/commands.hpp"
#include "cli/interruption.hpp"
#include "cli/options.hpp"
#include "cli/table.hpp"
#include "cli/view.hpp"

#include <lockstep/queue.hpp>

#include <boost/json.hpp>
#include <fmt/format.h>

#include <iostream>
#include <memory>

namespace lockstep::cli {
namespace {

struct queue_words {
    std::string name;
    std::vector<std::string> values;
    std::optional<std::chrono::milliseconds> delay{};
    std::int32_t priority = 0;
    std::string key;
    bool lines = false;
    std::int64_t most = 1;
    patience wait;
    bool requeue = false, drop = false;
    std::string id;
    std::optional<std::chrono::milliseconds> older_than{};
};

using text_queue = queue<std::string>;
constexpr std::size_t max_shown = 1'000;  // dead letters, in a table

void show_enqueued(context const& all, enqueued const& one) {
    if (all.json) {
        all.print_json(boost::json::object{{"id", one.id}, {"new", one.is_new}});
    } else if (!one.is_new) {
        all.note(fmt::format("left out: {} has the same key", one.id));
    }
}

exit_code push(context const& all, queue_words const& what) {
    if (what.values.empty() == !what.lines) {
        throw failure{exit_code::usage, "give either VALUEs or --lines", "--lines reads one from each line of standard input"};
    }
    auto by = all.connect();
    text_queue to{by, what.name};
    enqueue_options how;
    how.delay = what.delay.value_or(std::chrono::milliseconds{0});
    how.priority = what.priority;
    how.key = what.key;
    if (!what.key.empty()) {
        if (what.lines || what.values.size() != 1) throw failure{exit_code::usage, "--key is for one VALUE", "push the others by themselves"};
        show_enqueued(all, to.enqueue(what.values.front(), how));
        return exit_code::ok;
    }
    constexpr std::size_t at_once = 1000;
    auto values = what.values;
    std::string line;
    while (!values.empty() || what.lines) {
        while (what.lines && values.size() < at_once && std::getline(std::cin, line)) values.push_back(line);
        if (values.empty()) break;
        for (auto const& one : to.enqueue_many(values, how)) show_enqueued(all, one);
        values.clear();
    }
    return exit_code::ok;
}

/// An item is done when it was printed: what nobody reads is given back.
exit_code pop(context const& all, queue_words const& what) {
    return interruptible([&](std::stop_token token) {
        auto by = all.connect();
        text_queue from{by, what.name};
        for (std::int64_t n = 0; what.most == 0 || n < what.most; ++n) {
            std::optional<queue_item<std::string>> item;
            if (auto const time = what.wait.time()) {
                item = from.dequeue(*time, token);
            } else {
                item = from.dequeue(token);
            }
            if (!item && n == 0) throw not_found{fmt::format("nothing is to be taken from {}{}", printable(what.name), what.wait.none ? "" : ", and nothing came in time")};
            if (!item) return exit_code::ok;
            if (all.json) {
                all.print_json(boost::json::object{{"id", item->id()}, {"deliveries", item->deliveries()}, {"value", item->value()}});
            } else {
                all.print_stored(item->value());
            }
            item->ack();
        }
        return exit_code::ok;
    });
}

exit_code count(context const& all, std::string const& name) {
    auto by = all.connect();
    auto const found = text_queue{by, name}.counts();
    if (all.json) {
        all.print_json(boost::json::object{{"name", name}, {"ready", found.ready}, {"delayed", found.delayed}, {"held", found.held}, {"dead", found.dead}, {"dropped", found.dropped}, {"paused", found.paused}});
    } else {
        table shown{{{"READY", align::right}, {"DELAYED", align::right}, {"HELD", align::right}, {"DEAD", align::right}, {"PAUSED"}}};
        shown.add({std::to_string(found.ready), std::to_string(found.delayed), std::to_string(found.held), std::to_string(found.dead), found.paused ? "yes" : "no"});
        all.print(shown.text(all.coloured(), all.width()));
    }
    return exit_code::ok;
}

exit_code pause(context const& all, std::string const& name) {
    auto by = all.connect();
    text_queue of{by, name};
    bool const is_changed = of.pause();
    auto const found = of.counts();
    if (all.json) {
        all.print_json(boost::json::object{{"name", name}, {"paused", true}, {"changed", is_changed}});
    } else {
        all.print(fmt::format("{} {}: {} ready, {} delayed, {} held\n", printable(name), is_changed ? "is paused" : "was paused already", found.ready, found.delayed, found.held));
    }
    return exit_code::ok;
}

exit_code resume(context const& all, std::string const& name) {
    auto by = all.connect();
    bool const is_changed = text_queue{by, name}.resume();
    if (all.json) all.print_json(boost::json::object{{"name", name}, {"paused", false}, {"changed", is_changed}});
    if (is_changed || all.json) return is_changed ? exit_code::ok : exit_code::no;
    throw failure{exit_code::no, fmt::format("{} is not paused", printable(name)), "`lockstep queue count NAME` shows whether a queue is"};
}

exit_code dead(context const& all, queue_words const& what) {
    auto by = all.connect();
    text_queue of{by, what.name};
    if (what.requeue || what.drop) {
        bool const is_all = what.id == "all";
        if (what.older_than && !is_all) throw failure{exit_code::usage, "--older-than is for --requeue all and --drop all", "leave it out for one letter"};
        auto const age = what.older_than.value_or(std::chrono::milliseconds{0});
        auto const done = what.requeue ? (is_all ? of.requeue_dead_older_than(age) : of.requeue_dead(what.id)) : (is_all ? of.drop_dead_older_than(age) : of.drop_dead(what.id));
        auto const* const word = what.requeue ? "requeued" : "dropped";
        if (all.json) {
            all.print_json(boost::json::object{{"name", what.name}, {word, done}});
        } else {
            all.print(fmt::format("{} {}\n", done, word));
        }
        return done > 0 ? exit_code::ok : exit_code::no;
    }
    table shown{{{"ID"}, {"DIED"}, {"DELIVERIES", align::right}, {"REASON", align::left, true}, {"VALUE", align::left, true}}};
    auto letters = of.dead_letters(max_shown);
    if (letters.empty()) throw not_found{fmt::format("{} has no dead letters", printable(what.name))};
    for (std::size_t count = 0; !letters.empty(); letters = of.dead_letters(max_shown, letters.back().id)) {
        for (auto const& one : letters) {
            if (all.json) {
                all.print_json(boost::json::object{{"id", one.id}, {"item", one.item}, {"deliveries", one.deliveries}, {"reason", one.reason}, {"value", one.bytes}});
            } else {
                shown.add({one.id, show_time(one.died), std::to_string(one.deliveries), one.reason, one.bytes});
            }
        }
        count += letters.size();
        if (!all.json && count >= max_shown) break;
    }
    if (!all.json) all.print(shown.text(all.coloured(), all.width()));
    return exit_code::ok;
}

}  // namespace

void add_queue(CLI::App& command, context& all) {
    command.description("Queues of text between programs. What was pushed is kept until somebody has taken it and is done with it.");
    command.require_subcommand(1);
    auto const what = std::make_shared<queue_words>();
    auto const add = named_actions(command, what->name, all);
    auto* const pushing = add("push", "put values into it, in order", [what, &all] { return push(all, *what); });
    pushing->add_option("VALUE", what->values, "what to put there")->type_name("");
    pushing->add_flag("--lines", what->lines, "one value from each line of standard input");
    add_duration(*pushing, "--delay", what->delay, "nobody gets them before this time is over");
    pushing->add_option("--priority", what->priority, "larger ones are taken first [0]")->type_name("N")->check(number_within(-1'000'000, 1'000'000));
    pushing->add_option("--key", what->key, "not if one with this key is there already")->type_name("KEY");

    auto* const popping = add("pop", "take one, print it, and be done with it; returns 1 if none came in time", [what, &all] { return pop(all, *what); });
    what->wait.declare(*popping);
    popping->add_option("--most", what->most, "end after so many; 0: never [1]")->type_name("N")->check(number_within(0, 1'000'000'000));

    add("count", "how many are ready, delayed, held and dead, and whether it is paused", [what, &all] { return count(all, what->name); });
    add("pause", "deliver nothing to anybody until it is resumed; what is pushed waits", [what, &all] { return pause(all, what->name); });
    add("resume", "deliver what waits again", [what, &all] { return resume(all, what->name); });

    auto* const letters = add("dead", "what nobody could handle, with the reason", [what, &all] { return dead(all, *what); });
    auto* const requeue = letters->add_option("--requeue", what->id, "put this one back, or all")->type_name("ID|all");
    auto* const drop = letters->add_option("--drop", what->id, "forget this one, or all")->type_name("ID|all")->excludes(requeue);
    add_duration(*letters, "--older-than", what->older_than, "of all only those that died this long ago");
    letters->callback([=, &all] {
        what->requeue = requeue->count() > 0;
        what->drop = drop->count() > 0;
        all.action = [what, &all] { return dead(all, *what); };
    });
}

}  // namespace lockstep::cli
