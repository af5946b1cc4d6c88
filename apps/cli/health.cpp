// lockstep health, lockstep doctor: is it well, and what to change.

#include "cli/commands.hpp"
#include "cli/options.hpp"
#include "common/json.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <memory>

namespace lockstep::cli {
namespace {

struct wishes {
    std::optional<std::chrono::milliseconds> within{}, slow{};

    health_options options() const {
        health_options made{};
        if (within) made.within = *within;
        if (slow) made.slow = *slow;
        return made;
    }
};

style style_of(health_state state) {
    if (state == health_state::healthy) return style::green;
    return state == health_state::degraded ? style::yellow : style::red;
}

exit_code show_report(context const& all, health_report const& report) {
    // Degraded is still a yes: a probe must not restart what works.
    auto const code = report.state == health_state::unhealthy ? exit_code::no : exit_code::ok;
    if (all.json) {
        all.print_json(apps::as_json(report));
        return code;
    }
    auto const state = [&](health_state of) { return paint(to_string(of), style_of(of), all.coloured()); };
    std::string lines = fmt::format("{}{}{}\n", state(report.state), report.server.empty() ? "" : ": ", printable(report.server));
    for (auto const& one : report.findings) {
        auto const mark = one.state == health_state::healthy ? "ok  " : one.state == health_state::degraded ? "warn" : "BAD ";
        lines += fmt::format("{}  {:<18} {}\n", paint(mark, style_of(one.state), all.coloured()), printable(one.check), printable(one.found));
        if (!one.advice.empty()) lines += fmt::format("{:25}{}\n", "", paint("-> " + printable(one.advice), style::cyan, all.coloured()));
    }
    all.print(lines);
    return code;
}

void add(CLI::App& command, context& all, health_report (*look)(client&, health_options)) {
    auto const how = std::make_shared<wishes>();
    add_duration(command, "--within", how->within, "as long as it may take [5s]");
    add_duration(command, "--slow", how->slow, "what takes longer is degraded [100ms]");
    command.callback([=, &all] {
        all.action = [=, &all] {
            auto by = all.connect("lockstep-health");
            auto options = how->options();
            if (!how->within) options.within = std::min<std::chrono::milliseconds>(options.within, all.connection.command_timeout);  // --server-wait
            return show_report(all, look(by, options));
        };
    });
}

}  // namespace

void add_health(CLI::App& command, context& all) {
    command.description("Tries what locks need: takes and gives back a probe lock, sends itself a push. Returns 1 if it is unhealthy.");
    add(command, all, &check_health);
}

void add_doctor(CLI::App& command, context& all) {
    command.description("Looks at the whole deployment and says what to change. Returns 1 if something is bad.");
    add(command, all, &diagnose);
}

}  // namespace lockstep::cli
