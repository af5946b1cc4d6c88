// lockstep acl [USER]: the rules of a user that may do what Lockstep needs, and nothing else.

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
    bool monitor = false, file = false, offline = false, cluster = false;
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

exit_code show_rules(context const& all, acl_options const& how) {
    auto const facts = how.offline ? server_facts{.cluster = how.cluster} : look(all);
    auto rules = observe::acl_rules({.prefix = redis::locate(all.connection).prefix, .cluster = facts.cluster, .looks = how.monitor});
    if (all.json) {
        boost::json::array words;
        for (auto const& one : rules) words.push_back(boost::json::string{one});
        all.print_json(boost::json::object{{"user", how.user}, {"server", facts.product}, {"version", facts.version}, {"cluster", facts.cluster}, {"rules", words}});
        return exit_code::ok;
    }
    if (!facts.version.empty()) all.print(fmt::format("# {} {}{}\n", facts.product, facts.version, facts.cluster ? ", a cluster: on every node" : ""));
    // redis-cli reads quoted words, a file does not.
    auto const quote = [&how](std::string const& word) {
        return how.file || word.find_first_of(" \"'\\") == std::string::npos ? word : fmt::format("'{}'", word);
    };
    std::vector<std::string> words;
    for (auto const& one : rules) words.push_back(quote(one));
    all.print(fmt::format("{} {} on >PASSWORD {}\n", how.file ? "user" : "ACL SETUSER", how.user, fmt::join(words, " ")));
    if (all.on_terminal()) {
        all.print(paint("# Put a password of your own for PASSWORD; then `ACL SAVE` or `CONFIG REWRITE` keeps the user.\n", style::dim, all.coloured()));
    }
    return exit_code::ok;
}

}  // namespace

void add_acl(CLI::App& command, context& all) {
    command.description("Prints the rules of a user of the server that may do what Lockstep needs under this --prefix, and nothing else.");
    auto const how = std::make_shared<acl_options>();
    command.add_option("USER", how->user, "its name [lockstep]")->type_name("");
    command.add_flag("--monitor", how->monitor, "also for ls, who, top and the dashboard (it then sees the names of all keys)");
    command.add_flag("--file", how->file, "as a line of an ACL file instead of a command");
    command.add_flag("--offline", how->offline, "do not ask the server which it is");
    command.add_flag("--cluster", how->cluster, "with --offline: it is a cluster")->needs("--offline");
    command.callback([=, &all] {
        if (how->user.empty() || how->user.find_first_of(" \t\n\"'\\") != std::string::npos) throw CLI::ValidationError("USER", "a name of a user has no spaces and quotes");
        all.action = [=, &all] { return show_rules(all, *how); };
    });
}

}  // namespace lockstep::cli
