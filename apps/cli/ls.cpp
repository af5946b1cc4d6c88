// lockstep ls [PATTERN]: what there is, and who has it.

#include "cli/commands.hpp"
#include "cli/options.hpp"
#include "cli/view.hpp"
#include "common/json.hpp"

#include <lockstep/embedded_server.hpp>

#include <fmt/format.h>

#include <cstdlib>
#include <memory>
#include <set>

namespace lockstep::cli {
namespace {

struct ls_options {
    std::string pattern;
    bool all = false, names = false, scan = false;
    order by = order::name;
};

/// There is no server of ours yet. Looking, as a shell does to complete a name, must not start one.
bool nothing_runs(context const& all) {
    auto const set = [](char const* name) {
        auto const* const value = std::getenv(name);
        return value != nullptr && *value != '\0';
    };
    return all.connection.url.empty() && !set("LOCKSTEP_URL") && !set("REDIS_URL") && !shared_server_status().running;
}

exit_code list(context const& all, ls_options const& how) {
    if (how.names && nothing_runs(all)) return exit_code::ok;
    auto by = all.connect();
    snapshot_options wanted{};
    wanted.pattern = how.pattern;
    wanted.waiters = 0;
    wanted.scan = how.scan;
    auto now = monitor{by}.snapshot(wanted);
    if (!how.names) all.note_unreadable(now.notes);
    if (how.names) {
        std::set<std::string> names;
        for (auto const& one : now.objects) names.insert(one.name);
        std::string lines;
        for (auto const& one : names) lines += printable(one) + "\n";
        all.print(lines);
        return exit_code::ok;
    }
    if (all.json) {
        if (!how.all) std::erase_if(now.objects, [](auto const& one) { return !in_use(one); });
        all.print_json(boost::json::object{{"at_ms", apps::as_json(now.at)}, {"objects", apps::as_json(now.objects)}, {"holds", apps::as_json(now.holds)}, {"left_out", now.left_out}});
        return now.objects.empty() ? exit_code::no : exit_code::ok;
    }
    auto const shown = table_of(now, how.by, how.all);
    if (!shown.empty()) all.print(shown.text(all.coloured(), all.width()));
    auto const unused = static_cast<std::size_t>(std::ranges::count_if(now.objects, [](auto const& one) { return !in_use(one); }));
    if (!how.all && unused != 0) all.note(fmt::format("{} unused not shown (--all)", unused));
    if (shown.empty() && unused == 0) all.note("nothing is there" + std::string{how.scan ? "" : " (--scan looks through all keys)"});
    if (now.left_out != 0) all.note(fmt::format("{} more not shown: give a pattern", now.left_out));
    return shown.empty() && now.left_out == 0 ? exit_code::no : exit_code::ok;
}

}  // namespace

void add_ls(CLI::App& command, context& all) {
    command.description("Lists what is in use, locks and whatever else has a name, who holds it and what is in it.");
    auto const how = std::make_shared<ls_options>();
    command.add_option("PATTERN", how->pattern, "only names that fit, with * and ?")->type_name("");
    command.add_flag("-a,--all", how->all, "also those that nobody uses now");
    command.add_flag("--names", how->names, "only names, of all, one on a line");
    command.add_flag("--scan", how->scan, "look through all keys of the server: counts sessions and keys of limiters, finds what older clients use; slow where there are many");
    command.add_option("--sort", how->by, "name, held (longest first) or queue (longest first)")
        ->type_name("BY")
        ->transform(CLI::CheckedTransformer(std::map<std::string, order>{{"name", order::name}, {"held", order::held}, {"queue", order::queue}}));
    command.callback([=, &all] { all.action = [=, &all] { return list(all, *how); }; });
}

}  // namespace lockstep::cli
