// lockstep stats [NAME]: what was counted.

#include "cli/commands.hpp"
#include "cli/options.hpp"
#include "cli/view.hpp"
#include "common/json.hpp"

#include <fmt/format.h>

#include <memory>

namespace lockstep::cli {
namespace {

exit_code show_statistics(context const& all, std::string const& name, std::size_t most) {
    auto by = all.connect();
    monitor from{by};
    auto counted = from.statistics(name);
    all.note_unreadable(from.notes());
    if (!name.empty()) counted.erase(counted.begin());  // the sum of all names is not what was asked for
    if (counted.empty() || (counted.size() == 1 && counted.front().name.empty() && counted.front().acquisitions + counted.front().timeouts == 0)) {
        throw not_found{name.empty() ? "nothing was counted yet" : fmt::format("nothing was counted of {}", printable(name)), "clients write what they counted every 10 s"};
    }
    if (all.json) {
        for (auto const& one : counted) all.print_json(apps::as_json(one));
        return exit_code::ok;
    }
    auto const left_out = counted.size() > most + 1 ? counted.size() - most - 1 : 0;
    if (left_out != 0) counted.resize(most + 1);
    table shown{{{"NAME", align::left, true}, {"KIND"}, {"TAKEN", align::right}, {"WAITED", align::right}, {"GAVE UP", align::right}, {"LOST", align::right},
                 {"HELD p50", align::right}, {"p99", align::right}, {"max", align::right}, {"WAIT p50", align::right}, {"p99", align::right}, {"max", align::right}}};
    for (auto const& one : counted) {
        auto const times = [](timing const& of, std::chrono::microseconds part) { return of.count == 0 ? std::string{} : show(part); };
        shown.add({{one.name.empty() ? "(all)" : one.name, style::bold}, one.kind, std::to_string(one.acquisitions), std::to_string(one.waits),
                   {std::to_string(one.timeouts), one.timeouts == 0 ? style::plain : style::yellow}, {std::to_string(one.losses), one.losses == 0 ? style::plain : style::red},
                   times(one.held, one.held.p50), times(one.held, one.held.p99), times(one.held, one.held.max), times(one.waited, one.waited.p50),
                   times(one.waited, one.waited.p99), times(one.waited, one.waited.max)});
    }
    all.print(shown.text(all.coloured(), all.width()));
    if (left_out != 0) all.note(fmt::format("{} more not shown (--most)", left_out));
    return exit_code::ok;
}

}  // namespace

void add_stats(CLI::App& command, context& all) {
    command.description("What clients counted, the most used names first: how often taken, waited for, given up and lost; how long held and waited.");
    auto const name = std::make_shared<std::string>();
    auto const most = std::make_shared<std::size_t>(40);
    command.add_option("NAME", *name, "only this one")->type_name("");
    command.add_option("--most", *most, "show so many names [40]")->type_name("N");
    command.callback([=, &all] { all.action = [=, &all] { return show_statistics(all, *name, *most); }; });
}

}  // namespace lockstep::cli
