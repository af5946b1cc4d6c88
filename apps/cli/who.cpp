// lockstep who NAME, lockstep why NAME: who holds it, who waits for it, and what for.

#include "cli/commands.hpp"
#include "cli/options.hpp"
#include "cli/view.hpp"
#include "common/json.hpp"

#include <fmt/format.h>

#include <memory>

namespace lockstep::cli {
namespace {

exit_code show_who(context const& all, std::string const& name, std::size_t most) {
    auto by = all.connect();
    snapshot_options wanted{};
    wanted.name = name;
    wanted.waiters = most;
    auto const now = monitor{by}.snapshot(wanted);
    all.note_unreadable(now.notes);
    auto const code = now.holds.empty() ? exit_code::no : exit_code::ok;
    if (all.json) {
        all.print_json(boost::json::object{{"name", name}, {"objects", apps::as_json(now.objects)}, {"holds", apps::as_json(now.holds)}, {"waits", apps::as_json(now.waits)}});
        return code;
    }
    for (auto const& one : now.objects) {
        if (one.kind != "lock" && one.kind != "shared" && one.kind != "recursive") all.print(fmt::format("{} {}: {}\n", one.kind, printable(one.name), state_of(one)));
    }
    if (!now.holds.empty()) all.print(table_of(now.holds).text(all.coloured(), all.width()));
    if (now.holds.empty()) all.print(fmt::format("nobody holds {}\n", printable(name)));
    if (!now.waits.empty()) all.print("\n" + table_of(now.waits).text(all.coloured(), all.width()));
    std::size_t queued = 0;
    for (auto const& one : now.objects) queued += one.queue;
    if (queued > now.waits.size()) all.note(fmt::format("{} more wait (--most)", queued - now.waits.size()));
    return code;
}

exit_code show_why(context const& all, std::string const& name) {
    auto by = all.connect();
    auto const found = monitor{by}.why(name);
    if (all.json) {
        all.print_json(apps::as_json(found));
    } else if (found.holds.empty() && found.waits.empty()) {
        all.note_unreadable(found.notes);
        all.print(fmt::format("nobody holds {}, and nobody waits for it\n", printable(name)));
    } else {
        std::string lines;  // of printable text, line by line
        auto const text = found.text();
        for (std::size_t at = 0; at < text.size();) {
            auto const end = std::min(text.find('\n', at), text.size());
            lines += printable(std::string_view{text}.substr(at, end - at)) + "\n";
            at = end + 1;
        }
        all.print(lines);
    }
    return found.holds.empty() && found.waits.empty() ? exit_code::no : exit_code::ok;
}

}  // namespace

void add_who(CLI::App& command, context& all) {
    command.description("Who holds it, and who waits. Returns 1 if nobody holds it.");
    auto const name = std::make_shared<std::string>();
    auto const most = std::make_shared<std::size_t>(100);
    add_name(command, *name);
    command.add_option("--most", *most, "show so many that wait [100]")->type_name("N");
    command.callback([=, &all] { all.action = [=, &all] { return show_who(all, *name, *most); }; });
}

void add_why(CLI::App& command, context& all) {
    command.description("Why it is not free: who holds it, what the holder waits for itself, and whether they wait for each other (a deadlock).");
    auto const name = std::make_shared<std::string>();
    add_name(command, *name);
    command.callback([=, &all] { all.action = [=, &all] { return show_why(all, *name); }; });
}

}  // namespace lockstep::cli
