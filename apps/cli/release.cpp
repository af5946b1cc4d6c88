// lockstep release NAME: end a hold that nobody will end.

#include "cli/commands.hpp"
#include "cli/confirmation.hpp"
#include "cli/options.hpp"
#include "cli/view.hpp"
#include "common/json.hpp"

#include <lockstep/error.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <memory>

namespace lockstep::cli {
namespace {

struct wishes {
    std::string name, hold, reason;
    bool force = false, ask = false, yes = false, all = false;
};

/// Those that are meant. Throws `failure` where that is not clear.
std::vector<hold_info> choose(context const& all, monitor& from, wishes const& what) {
    auto holds = from.active(what.name);
    if (!what.hold.empty()) std::erase_if(holds, [&](auto const& one) { return one.id != what.hold; });
    if (holds.empty()) {
        throw not_found{fmt::format("nobody holds {}{}", printable(what.name), what.hold.empty() ? "" : " with that id"), "`lockstep who NAME` shows who does"};
    }
    bool const one_owner = std::ranges::all_of(holds, [&](auto const& one) { return one.owner.id == holds.front().owner.id; });
    if (!one_owner && !what.all) {
        all.note("\n" + table_of(holds).text(false));
        throw failure{exit_code::usage, fmt::format("{} has more than one holder", printable(what.name)), "choose one with --hold ID, or take --all"};
    }
    return holds;
}

bool confirmed(context const& all, std::vector<hold_info> const& holds, wishes const& what) {
    if (what.yes || what.ask) return true;
    auto const shown = table_of(holds).text(all.coloured(), all.width());
    return confirmed(all, fmt::format("{}{} loses {}. Its command may still be running.", shown, holds.size() == 1 ? "This one" : "Each of these", printable(what.name)));
}

bool end_hold(monitor& from, hold_info const& one, release_options const& options) {
    try {
        return from.release(one, options);
    } catch (error const& refused) {
        if (options.force || (refused.reason() != errc::invalid_argument && refused.reason() != errc::not_held)) throw;
        throw failure{exit_code::no, printable(refused.what()), "--ask asks its owner, --force ends it all the same"};
    }
}

exit_code release(context const& all, wishes const& what) {
    auto by = all.connect();
    monitor from{by};
    auto const holds = choose(all, from, what);
    if (!confirmed(all, holds, what)) return exit_code::no;
    release_options options{};
    options.force = what.force;
    options.reason = what.reason;
    bool any = false;
    boost::json::array done;
    for (auto const& one : holds) {
        bool const worked = what.ask ? from.ask(one, options) : end_hold(from, one, options);
        any = any || worked;
        if (all.json) {
            done.push_back(boost::json::object{{"hold", one.id}, {"kind", one.kind}, {"owner", show(one.owner)}, {what.ask ? "reached" : "released", worked}});
            continue;
        }
        auto const* const outcome = what.ask ? (worked ? "was asked" : "could not be reached: it is gone, or does not listen") : (worked ? "was released" : "was over already");
        all.print(fmt::format("{} of {} ({}) {}\n", one.kind, printable(show(one.owner)), one.id, outcome));
    }
    if (all.json) all.print_json(boost::json::object{{"name", what.name}, {what.ask ? "asked" : "released", done}});
    return any ? exit_code::ok : exit_code::no;
}

}  // namespace

void add_release(CLI::App& command, context& all) {
    command.description(
        "Ends a hold whose owner is gone before its time is over; with --force any. The next in line gets it with a larger fence, its\n"
        "owner hears that it is lost, and it is written to the audit stream.");
    auto const what = std::make_shared<wishes>();
    add_name(command, what->name);
    auto* const force = command.add_flag("--force", what->force, "also one whose owner is there");
    command.add_flag("--ask", what->ask, "only ask its owner to let go (`lockstep run --yield` obeys)")->excludes(force);
    auto* const hold = command.add_option("--hold", what->hold, "only this one, as `lockstep who` shows it")->type_name("ID");
    command.add_flag("--all", what->all, "all holders, where there are several")->excludes(hold);
    command.add_option("--reason", what->reason, "why, for the audit stream")->type_name("TEXT");
    command.add_flag("-y,--yes", what->yes, "do not ask me first");
    command.callback([=, &all] { all.action = [=, &all] { return release(all, *what); }; });
}

}  // namespace lockstep::cli
