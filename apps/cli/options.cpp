#include "cli/options.hpp"

#include <utility>

namespace lockstep::cli {

CLI::Option* add_duration(CLI::App& to, std::string const& names, std::optional<std::chrono::milliseconds>& into, std::string const& about) {
    auto const read = [&into, names](std::string const& text) {
        into = parse_duration(text);
        if (!into) throw CLI::ValidationError(names, "'" + text + "' is no time; write 10s, 500ms, 2m, 1h30m, or seconds as a number");
    };
    return to.add_option_function<std::string>(names, read, about)->type_name("TIME");
}

CLI::Option* add_name(CLI::App& to, std::string& into, std::string const& about) {
    return to.add_option("NAME", into, about)->required()->type_name("");
}

void patience::declare(CLI::App& to) {
    auto* const wait = add_duration(to, "-w,--wait,--timeout", limit, "wait so long at most, then return 1; without it, for ever");
    to.add_flag("-n,--no-wait,--nonblock", none, "do not wait: return 1 at once")->excludes(wait);
}

CLI::App* add_action(CLI::App& to, std::string const& name, std::string const& about) {
    auto* const made = to.add_subcommand(name, about);
    made->fallthrough();
    return made;
}

CLI::App* add_action(CLI::App& to, std::string const& name, std::string const& about, std::string& into, context& all, std::function<exit_code()> act) {
    auto* const made = add_action(to, name, about);
    add_name(*made, into);
    made->callback([act = std::move(act), &all] { all.action = act; });
    return made;
}

}  // namespace lockstep::cli
