// lockstep history NAME, lockstep verify: what the flight recorder has.

#include "cli/commands.hpp"
#include "cli/lanes.hpp"
#include "cli/options.hpp"
#include "cli/view.hpp"
#include "common/json.hpp"

#include <fmt/format.h>

#include <memory>

namespace lockstep::cli {
namespace {

constexpr char const* how_to_record = "`lockstep run --record`, or client_options::record in programs, writes to the flight recorder";

style style_of(std::string const& what) {
    if (what == "acquired") return style::green;
    if (what == "lost") return style::red;
    return what == "released" ? style::plain : style::yellow;
}

exit_code show_history(context const& all, std::string const& name, std::size_t most) {
    auto by = all.connect();
    monitor from{by};
    auto const records = from.history(name, most);
    all.note_unreadable(from.notes());
    if (records.empty()) throw not_found{fmt::format("nothing is recorded of {}", printable(name)), how_to_record};
    if (all.json) {
        for (auto const& one : records) all.print_json(apps::as_json(one));
        return exit_code::ok;
    }
    table shown{{{"TIME"}, {"WHAT"}, {"WHO", align::left, true}, {"AS"}, {"FENCE", align::right}, {"AFTER", align::right}, {"TRACE", align::left, true}}};
    for (auto const& one : records) {
        auto const after = one.held.count() != 0 ? "held " + show(one.held) : one.waited.count() != 0 ? "waited " + show(one.waited) : "";
        shown.add({show_time(one.at), {one.what, style_of(one.what)}, one.owner, one.use, one.fence == 0 ? "" : std::to_string(one.fence), after,
                   one.detail.empty() ? one.trace : one.trace + " " + one.detail});
    }
    all.print(shown.text(all.coloured(), all.width()));
    all.print("\n" + lanes(records, all.on_terminal() ? all.width() : 100, all.coloured()));
    return exit_code::ok;
}

exit_code check(context const& all, std::string const& name, std::size_t most) {
    auto by = all.connect();
    monitor from{by};
    auto const records = from.history(name, most);
    all.note_unreadable(from.notes());
    if (records.empty()) throw not_found{"nothing is recorded, so nothing was checked", how_to_record};
    auto const found = verify(records);
    if (all.json) {
        all.print_json(boost::json::object{{"records", records.size()}, {"violations", apps::as_json(found)}});
    } else {
        for (auto const& one : found) all.print(fmt::format("{}: {}\n", paint(one.what, style::red, all.coloured()), printable(one.text)));
        all.print(fmt::format("{} records, {} violation{}\n", records.size(), found.size(), found.size() == 1 ? "" : "s"));
    }
    return found.empty() ? exit_code::ok : exit_code::no;
}

}  // namespace

void add_history(CLI::App& command, context& all) {
    command.description("Draws who held it when, from the flight recorder.");
    auto const name = std::make_shared<std::string>();
    auto const most = std::make_shared<std::size_t>(200);
    add_name(command, *name);
    command.add_option("--most", *most, "the last so many records [200]")->type_name("N")->check(number_within(1, 1'000'000'000));
    command.callback([=, &all] { all.action = [=, &all] { return show_history(all, *name, *most); }; });
}

void add_verify(CLI::App& command, context& all) {
    command.description("Checks what the flight recorder has: no two held what only one may hold, and fences grew. Returns 1 if that is not so.");
    auto const name = std::make_shared<std::string>();
    auto const most = std::make_shared<std::size_t>(100'000);
    command.add_option("NAME", *name, "only this one")->type_name("");
    command.add_option("--most", *most, "the last so many records [100000]")->type_name("N")->check(number_within(1, 1'000'000'000));
    command.callback([=, &all] { all.action = [=, &all] { return check(all, *name, *most); }; });
}

}  // namespace lockstep::cli
