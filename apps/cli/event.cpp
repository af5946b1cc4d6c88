// lockstep event set|clear|is-set|wait: a signal that wakes one waiter, or with --broadcast a flag that wakes all.

#include "cli/commands.hpp"
#include "cli/interruption.hpp"
#include "cli/options.hpp"

#include <lockstep/broadcast_event.hpp>
#include <lockstep/event.hpp>

#include <boost/json.hpp>
#include <fmt/format.h>

#include <memory>

namespace lockstep::cli {
namespace {

struct event_options {
    std::string name;
    bool broadcast = false;
    patience wait;
};

/// What was found, for machines and for people; people see it in the exit code, too.
exit_code answer(context const& all, event_options const& what, char const* word, bool yes, std::string const& text) {
    if (all.json) {
        all.print_json(boost::json::object{{"name", what.name}, {word, yes}});
    } else if (!text.empty()) {
        all.print(text);
    }
    return yes ? exit_code::ok : exit_code::no;
}

template <class Event>
exit_code wait_for_it(context const& all, event_options const& what) {
    return interruptible([&](std::stop_token token) {
        auto by = all.connect();
        Event it{by, what.name};
        bool set = true;
        if (auto const time = what.wait.time()) {
            set = it.wait_for(*time, token);
        } else {
            it.wait(token);
        }
        if (!set && !all.json) all.note(fmt::format("{} was not set{}", printable(what.name), what.wait.none ? "" : " in time"));
        return answer(all, what, "set", set, {});
    });
}

}  // namespace

void add_event(CLI::App& command, context& all) {
    command.description(
        "Events between programs. Each `set` ends one `wait`, and is kept while nobody waits. With --broadcast it is a flag: `set` ends all\n"
        "waits, and those to come, until `clear`. (The two are different things, also under one name.)");
    command.require_subcommand(1);
    auto const what = std::make_shared<event_options>();
    auto const add = [&](char const* name, char const* about, std::function<exit_code()> const& act) {
        auto* const made = add_action(command, name, about, what->name, all, act);
        made->add_flag("-b,--broadcast", what->broadcast, "the flag that wakes all");
        return made;
    };
    add("set", "wake one that waits, now or later; with -b all", [what, &all] {
        auto by = all.connect();
        if (what->broadcast) {
            broadcast_event{by, what->name}.set();
        } else {
            event{by, what->name}.set();
        }
        return answer(all, *what, "set", true, {});
    });
    add("clear", "forget signals that nobody has taken; with -b take the flag down", [what, &all] {
        auto by = all.connect();
        if (what->broadcast) {
            broadcast_event{by, what->name}.clear();
            return answer(all, *what, "cleared", true, {});
        }
        auto const dropped = event{by, what->name}.clear();
        if (all.json) {
            all.print_json(boost::json::object{{"name", what->name}, {"cleared", true}, {"dropped", dropped}});
        } else if (dropped != 0) {
            all.print(fmt::format("{} forgotten\n", dropped));
        }
        return exit_code::ok;
    });
    add("is-set", "return 0 if it is set, 1 if not", [what, &all] {
        auto by = all.connect();
        bool const set = what->broadcast ? broadcast_event{by, what->name}.is_set() : event{by, what->name}.is_set();
        return answer(all, *what, "set", set, set ? "set\n" : "not set\n");
    });
    auto* const wait = add("wait", "until it is set; returns 1 if it was not in time", [what, &all] {
        return what->broadcast ? wait_for_it<broadcast_event>(all, *what) : wait_for_it<event>(all, *what);
    });
    what->wait.declare(*wait);
}

}  // namespace lockstep::cli
