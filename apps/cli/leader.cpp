// lockstep leader NAME, lockstep observe NAME: who leads, and who did.

#include "cli/commands.hpp"
#include "cli/interruption.hpp"
#include "cli/letterbox.hpp"
#include "cli/options.hpp"
#include "cli/view.hpp"
#include "common/json.hpp"

#include <lockstep/election.hpp>

#include <fmt/format.h>

#include <memory>

namespace lockstep::cli {
namespace {

exit_code show_leader(context const& all, std::string const& name) {
    auto by = all.connect();
    auto const found = election{by, name}.leader();
    if (!found) throw not_found{fmt::format("nobody leads {}", printable(name))};
    if (all.json) {
        all.print_json(apps::as_json(*found));
    } else {
        table shown{{{"LEADER", align::left, true}, {"HOST", align::left, true}, {"PID", align::right}, {"TERM", align::right}, {"SINCE"}, {"LEFT", align::right}, {"CANDIDATES", align::right}}};
        shown.add({found->id, found->host, std::to_string(found->pid), std::to_string(found->term), show_time(found->since), show(found->remaining),
                   std::to_string(found->candidates)});
        all.print(shown.text(all.coloured(), all.width()));
    }
    return exit_code::ok;
}

style style_of(leader_change::kind what) {
    if (what == leader_change::kind::elected) return style::green;
    return what == leader_change::kind::resigned ? style::plain : style::red;
}

void print(context const& all, leader_change const& one) {
    if (all.json) return all.print_json(apps::as_json(one));
    auto const what = fmt::format("{:<8}", to_string(one.what));
    all.print(fmt::format("{}  {}  {} ({} {})  term {}\n", show_time(one.at), paint(what, style_of(one.what), all.coloured()), printable(one.id),
                          printable(one.host), one.pid, one.term));
}

exit_code observe(context const& all, std::string const& name, bool from_start, std::size_t most) {
    return interruptible([&](std::stop_token token) {
        letterbox<leader_change> box;
        auto by = all.connect();
        election const of{by, name};
        auto const watching = of.observe([&box](leader_change const& one) { box.put(one); }, {.after = from_start ? "0" : ""});
        for (std::size_t seen = 0; most == 0 || seen < most; ++seen) {
            auto const one = box.next(token);
            if (!one) throw cancelled_error("told to end");
            print(all, *one);
        }
        return exit_code::ok;
    });
}

}  // namespace

void add_leader(CLI::App& command, context& all) {
    command.description("Who leads. Returns 1 if nobody does.");
    auto const name = std::make_shared<std::string>();
    add_name(command, *name, "the election");
    command.callback([name, &all] { all.action = [name, &all] { return show_leader(all, *name); }; });
}

void add_observe(CLI::App& command, context& all) {
    command.description("Prints every change of leadership as it happens, until a signal ends it.");
    auto const name = std::make_shared<std::string>();
    auto const from_start = std::make_shared<bool>(false);
    auto const most = std::make_shared<std::size_t>(0);
    add_name(command, *name, "the election");
    command.add_flag("--from-start", *from_start, "first those that the server still has, about the last 1000");
    command.add_option("--most", *most, "end after so many")->type_name("N")->check(number_within(1, 1'000'000'000));
    command.callback([=, &all] { all.action = [=, &all] { return observe(all, *name, *from_start, *most); }; });
}

}  // namespace lockstep::cli
