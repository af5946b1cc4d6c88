// lockstep acl [USER]: the rules of a user that may do what a use of Lockstep needs, and nothing else.

#include "cli/commands.hpp"
#include "cli/options.hpp"

#include "observe/acl.hpp"
#include "redis/url.hpp"

#include <boost/json.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <memory>

namespace lockstep::cli {
namespace {

struct acl_options {
    std::string user = "lockstep";
    std::vector<std::string> uses;
    bool scan = false, file = false, offline = false, cluster = false;
};

struct server_facts {
    std::string product, version;
    bool cluster = false;
};

std::string field(std::string const& info, std::string const& name) {
    auto const at = info.find("\n" + name + ":");
    if (at == std::string::npos) return {};
    auto const begin = at + name.size() + 2;
    return info.substr(begin, info.find_first_of("\r\n", begin) - begin);
}

server_facts look(context const& all) {
    auto by = all.connect();
    auto const info = by.command<std::string>("INFO", "server");
    auto const valkey = field(info, "valkey_version");
    return {valkey.empty() ? "Redis" : "Valkey", valkey.empty() ? field(info, "redis_version") : valkey,
            (field(info, "redis_mode") + field(info, "server_mode")).find("cluster") != std::string::npos};
}

std::vector<observe::acl_use> uses_of(std::vector<std::string> const& names) {
    std::vector<observe::acl_use> uses;
    for (std::size_t i = 0; i < observe::acl_use_names.size(); ++i) {
        if (std::ranges::find(names, observe::acl_use_names[i]) != names.end()) uses.push_back(static_cast<observe::acl_use>(i));
    }
    if (names.empty()) uses.assign(observe::acl_program_uses.begin(), observe::acl_program_uses.end());
    return uses;
}

/// What this user can do or learn beyond the prefix, and what is not prevented within it.
std::vector<std::string> warnings(observe::acl_needs const& needs) {
    auto const has = [&](observe::acl_use use) { return std::ranges::find(needs.uses, use) != needs.uses.end(); };
    std::vector<std::string> all;
    if (has(observe::acl_use::near_cache)) all.emplace_back("near-cache: the user learns the names of all keys that anybody changes on this server (CLIENT TRACKING)");
    if (needs.scan) all.emplace_back("scan: the user learns the names of all keys and channels of this server");
    if (has(observe::acl_use::act)) all.emplace_back("act: the user can write false entries to the audit log, but cannot change or delete any");
    return all;
}

exit_code show_rules(context const& all, acl_options const& how) {
    auto const location = redis::locate(all.connection);
    auto const facts = how.offline ? server_facts{.cluster = how.cluster} : look(all);
    observe::acl_needs const needs{.prefix = location.prefix, .uses = uses_of(how.uses), .cluster = facts.cluster, .database = location.database != 0, .scan = how.scan};
    auto const rules = observe::acl_rules(needs);
    if (all.json) {
        boost::json::array uses, words;
        for (auto const use : needs.uses) uses.emplace_back(observe::acl_use_names[static_cast<std::size_t>(use)]);
        for (auto const& one : rules) words.push_back(boost::json::string{one});
        all.print_json(boost::json::object{
            {"user", how.user}, {"uses", uses}, {"server", facts.product}, {"version", facts.version}, {"cluster", facts.cluster}, {"rules", words}});
        return exit_code::ok;
    }
    if (!facts.version.empty()) all.print(fmt::format("# {} {}{}\n", facts.product, facts.version, facts.cluster ? ", a cluster: on every node" : ""));
    for (auto const& one : warnings(needs)) all.print(fmt::format("# {}\n", one));
    // redis-cli reads quoted words, a file does not.
    auto const quote = [&how](std::string const& word) {
        return how.file || word.find_first_of(" \\") == std::string::npos ? word : fmt::format("'{}'", word);
    };
    std::vector<std::string> words;
    for (auto const& one : rules) words.push_back(quote(one));
    all.print(fmt::format("{} {} {} on >PASSWORD\n", how.file ? "user" : "ACL SETUSER", how.user, fmt::join(words, " ")));
    if (all.on_terminal()) {
        all.print(paint("# Put a password of your own for PASSWORD; then `ACL SAVE` or `CONFIG REWRITE` keeps the user.\n", style::dim, all.coloured()));
    }
    return exit_code::ok;
}

}  // namespace

void add_acl(CLI::App& command, context& all) {
    command.description("Prints the rules of a user of the server that may do what a use of Lockstep needs under this --prefix, and nothing else.");
    auto const how = std::make_shared<acl_options>();
    command.add_option("USER", how->user, "its name [lockstep]")->type_name("");
    command.add_option("--for", how->uses, "locks, messaging, jobs, state, near-cache, look, act; several with commas [locks,messaging,jobs,state]")
        ->type_name("USE")
        ->delimiter(',')
        ->allow_extra_args(false)
        ->check(CLI::IsMember(std::vector<std::string>(observe::acl_use_names.begin(), observe::acl_use_names.end())));
    auto* const scan = command.add_flag("--scan", how->scan, "with look or act: also for `ls --scan` and for event buses (it then sees the names of all keys and channels)");
    command.add_flag("--file", how->file, "as a line of an ACL file instead of a command");
    command.add_flag("--offline", how->offline, "do not ask the server which it is");
    command.add_flag("--cluster", how->cluster, "with --offline: it is a cluster")->needs("--offline");
    command.callback([=, &all] {
        if (scan->count() != 0 && std::ranges::none_of(how->uses, [](auto const& use) { return use == "look" || use == "act"; })) {
            throw CLI::ValidationError("--scan", "goes with --for look or --for act");
        }
        if (how->user.empty() || how->user.find_first_of(" \t\n\v\f\r\"'\\()") != std::string::npos) throw CLI::ValidationError("USER", "a name of a user has no spaces and quotes");
        all.action = [=, &all] { return show_rules(all, *how); };
    });
}

}  // namespace lockstep::cli
