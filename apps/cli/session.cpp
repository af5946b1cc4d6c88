// lockstep session count|destroy: the sessions of a user. Their ids are secrets, which open them to whoever has them: no command shows one, nor takes
// one from a command line that others see.

#include "cli/commands.hpp"
#include "cli/options.hpp"

#include <lockstep/session_store.hpp>

#include <boost/json.hpp>
#include <fmt/format.h>

#include <chrono>
#include <memory>

namespace lockstep::cli {
namespace {

struct session_words {
    std::string name, user;
};

/// A person may wait for a server that is slow.
session_store store(client& by, session_words const& what) { return {by, what.name, {.command_timeout = std::chrono::seconds{10}}}; }

exit_code tell(context const& all, session_words const& what, char const* word, std::size_t count) {
    if (all.json) {
        all.print_json(boost::json::object{{"name", what.name}, {"user", what.user}, {word, count}});
    } else {
        all.print(fmt::format("{}\n", count));
    }
    return count != 0 ? exit_code::ok : exit_code::no;
}

}  // namespace

void add_session(CLI::App& command, context& all) {
    command.description("Sessions of users, without their ids: those are secrets.");
    command.require_subcommand(1);
    auto const what = std::make_shared<session_words>();
    auto const add = [&](char const* name, char const* about, std::function<exit_code()> const& act) {
        auto* const made = add_action(command, name, about, what->name, all, act);
        made->add_option("USER", what->user, "whose sessions")->required()->type_name("");
    };
    add("count", "print how many a user has; returns 1 if none", [what, &all] {
        auto by = all.connect();
        return tell(all, *what, "sessions", store(by, *what).list(what->user).size());
    });
    add("destroy", "end all of a user, who must log in again; prints how many there were, returns 1 if none", [what, &all] {
        auto by = all.connect();
        return tell(all, *what, "destroyed", store(by, *what).destroy_all(what->user));
    });
}

}  // namespace lockstep::cli
