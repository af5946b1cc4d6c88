// lockstep breaker show|open|close: a circuit breaker that a fleet shares, by hand.

#include "cli/commands.hpp"
#include "cli/options.hpp"

#include <lockstep/circuit_breaker.hpp>
#include <lockstep/error.hpp>

#include <boost/json.hpp>
#include <fmt/format.h>

#include <memory>

namespace lockstep::cli {
namespace {

struct breaker_words {
    std::string name;
    std::optional<std::chrono::milliseconds> ttl{};
};

/// Nothing is called through it here, so its own rules do not matter; but what it asks for is kept by these, so they are the longest.
circuit_breaker breaker_at(client& by, std::string const& name) {
    using namespace std::chrono_literals;
    return {by, name, {.failure_threshold = 1, .sampling = 24h, .recovery_timeout = 24h, .probe_lease = 24h}};
}

exit_code show_breaker(context const& all, std::string const& name) {
    auto by = all.connect();
    auto const seen = breaker_at(by, name).look();
    if (seen.local) throw unavailable_error(fmt::format("circuit breaker '{}': the server was not heard, or refuses", name));
    bool const is_open = seen.state == circuit::open;
    if (all.json) {
        all.print_json(boost::json::object{{"name", name}, {"state", std::string{to_string(seen.state)}}, {"held", seen.held},
                                           {"retry_after_ms", seen.retry_after.count()}, {"version", std::to_string(seen.version)}});
    } else {
        auto text = std::string{to_string(seen.state)};
        if (seen.held) text += ", until it is closed by hand";
        else if (is_open) text += fmt::format(", probes in {}", show(seen.retry_after));
        all.print(text + "\n");
    }
    return is_open ? exit_code::no : exit_code::ok;
}

}  // namespace

void add_breaker(CLI::App& command, context& all) {
    command.description("Circuit breakers: the state that all programs share. They hear of a change at once.");
    command.require_subcommand(1);
    auto const what = std::make_shared<breaker_words>();
    auto const add = named_actions(command, what->name, all);
    add("show", "print its state; returns 1 if it is open", [what, &all] { return show_breaker(all, what->name); });
    auto* const opening = add("open", "refuse all calls until it is closed by hand", [what, &all] {
        auto by = all.connect();
        breaker_at(by, what->name).open(what->ttl);
        if (all.json) all.print_json(boost::json::object{{"name", what->name}, {"state", "open"}});
        return exit_code::ok;
    });
    add_duration(*opening, "--ttl", what->ttl, "probes may go after so long, and close it");
    add("close", "let all calls pass, with no counts, whatever was before", [what, &all] {
        auto by = all.connect();
        breaker_at(by, what->name).close();
        if (all.json) all.print_json(boost::json::object{{"name", what->name}, {"state", "closed"}});
        return exit_code::ok;
    });
}

}  // namespace lockstep::cli
