#include "cli/program.hpp"

#include "cli/commands.hpp"
#include "cli/options.hpp"

#include <lockstep/log.hpp>
#include <lockstep/version.hpp>

#include <boost/json.hpp>
#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <string_view>
#include <utility>

namespace lockstep::cli {
namespace {

constexpr char const* about =
    "Distributed locks, leader election, queues, jobs and shared state for programs on one machine or many, on Redis or Valkey.\n"
    "Without --redis, LOCKSTEP_URL or REDIS_URL it uses a small server of your own on this machine.";

constexpr std::string_view first_steps =
    "Distributed locks, leader election, queues and jobs on Redis or Valkey.\n"
    "\n"
    "Start with these:\n"
    "  lockstep demo                       processes compete, crash and take over\n"
    "  lockstep run NAME -- ./backup.sh    run a command while holding the lock NAME\n"
    "  lockstep ls                         list what is held, and by which process\n"
    "  lockstep why NAME                   explain why NAME is not free\n"
    "  lockstep dashboard                  the same and more in a browser\n"
    "\n"
    "Uses the server of LOCKSTEP_URL or REDIS_URL, else starts one of your own.\n"
    "All commands and options: lockstep --help. Those of one: lockstep run --help.\n";

constexpr char const* closing =
    "Exit codes: 0 done, 1 no (not obtained, not in time), 64 wrong usage, 69 no server, 70 a bug, 71 the system refused,\n"
    "75 lost, 76 the server's error, 77 not allowed, 78 unsuitable server; `run` passes on those of its command.\n"
    "See lockstep(1) for more.";

/// Options with what they take, and nothing about ranges, variables and what excludes what: the text says what matters. Commands come first.
class brief : public CLI::Formatter {
public:
    std::string make_help(CLI::App const* app, std::string name, CLI::AppFormatMode mode) const override {
        return make_description(app) + make_usage(app, std::move(name)) + make_positionals(app) + make_subcommands(app, mode) +
               make_groups(app, mode) + "\n" + make_footer(app);
    }
    std::string make_option_opts(CLI::Option const* one) const override {
        auto name = one->get_type_name();
        name = name.substr(0, name.find(':'));
        return name.empty() ? "" : " " + name;
    }
};

void add_common(CLI::App& app, context& all) {
    auto& to = all.connection;
    app.option_defaults()->group("Common options (of all sub-commands)");
    app.add_option("--redis", to.url, "the server: redis://, rediss://, unix://, redis+sentinel://, redis+cluster://")->type_name("URL");
    auto const prefix = [&to](std::string const& text) {
        if (text.empty()) throw CLI::ValidationError("--prefix", "it needs at least one character");
        to.prefix = text;
    };
    app.add_option_function<std::string>("--prefix", prefix, "first part of every key [the URL's, $LOCKSTEP_PREFIX, lockstep]")->type_name("WORD");
    app.add_option("--user", to.user, "log in as this user")->type_name("NAME");
    app.add_option("--password-file", to.password_file, "file with the password")->type_name("FILE");
    app.add_option("--tls-ca", to.tls.ca_file, "authorities to trust, for rediss://")->type_name("FILE");
    app.add_option("--tls-cert", to.tls.certificate_file, "client certificate")->type_name("FILE");
    app.add_option("--tls-key", to.tls.key_file, "its private key")->type_name("FILE");
    app.add_option("--tls-server-name", to.tls.server_name, "name to verify instead of the URL's host")->type_name("HOST");
    app.add_option("--name", to.name, "how monitors show this process")->type_name("WORD");
    auto const wait = [&to](std::string const& text) {
        auto const time = parse_duration(text);
        if (!time || time->count() == 0) throw CLI::ValidationError("--server-wait", "invalid duration '" + text + "'; write 10s, 500ms or 2m");
        to.command_timeout = *time;
    };
    app.add_option_function<std::string>("--server-wait", wait, "how long to try to reach the server [10s]")->type_name("TIME");
    app.add_flag("--allow-eviction", to.allow_eviction, "go on although the server may evict keys");
    app.add_flag("--json", all.json, "JSON instead of text");
    app.add_flag("-v,--verbose", all.verbose, "say what is going on, on standard error");
    app.option_defaults()->group("Options");
}

exit_code refuse(context const& all, CLI::App const& app, CLI::ParseError const& problem) {
    auto const* chosen = &app;
    std::string line = "lockstep";
    while (!chosen->get_subcommands().empty()) {
        chosen = chosen->get_subcommands().front();
        line += " " + chosen->get_name();
    }
    std::string text = problem.what();
    if (dynamic_cast<CLI::ExtrasError const*>(&problem) != nullptr) {
        auto words = app.remaining(true);
        if (line == "lockstep" && !words.empty() && !words.front().starts_with('-')) {
            text = fmt::format("there is no sub-command {}", words.front());
        } else {
            text = fmt::format("not expected: {}", fmt::join(words, " "));
        }
        if (line == "lockstep run") text += ": put -- before the command, as in `lockstep run NAME -- command`";
    }
    return explain(all, std::make_exception_ptr(failure{exit_code::usage, printable(text), fmt::format("see `{} --help`", line)}));
}

}  // namespace

std::optional<exit_code> parse_arguments(CLI::App& app, std::vector<std::string> arguments, context& all) {
    app.description(about);
    app.require_subcommand(0, 1);
    app.set_version_flag("-V,--version", "lockstep " LOCKSTEP_VERSION_STRING);
    app.footer(closing);
    auto const form = std::make_shared<brief>();
    form->column_width(34);
    app.formatter(form);
    add_common(app, all);
    for (auto const& one : sub_commands()) {
        auto* const made = app.add_subcommand(one.name, one.about);
        made->fallthrough();
        // What the others take is declared only when somebody looks: it would be a part of each start.
        if (arguments.end() != std::find(arguments.begin(), arguments.end(), one.name)) one.add(*made, all);
        made->group(one.area);  // not earlier: its own sub-commands would inherit it
    }
    try {
        std::reverse(arguments.begin(), arguments.end());
        app.parse(std::move(arguments));
    } catch (CLI::Success const& wanted) {  // --help, --version
        return app.exit(wanted) == 0 ? exit_code::ok : exit_code::usage;
    } catch (CLI::ParseError const& problem) {
        return refuse(all, app, problem);
    }
    for (CLI::App const* at = &app; at != nullptr; at = at->get_subcommands().empty() ? nullptr : at->get_subcommands().front()) {
        for (auto const* const option : {"--wait", "--no-wait"}) all.has_limit = all.has_limit || (at->get_option_no_throw(option) != nullptr && at->count(option) > 0);
    }
    if (all.action) return std::nullopt;
    auto const chosen = app.get_subcommands();
    if (chosen.empty()) {
        all.print(first_steps);
    } else {
        std::fputs(chosen.front()->help().c_str(), stderr);
    }
    return exit_code::usage;  // as git has it: a script whose command came out empty must not go on as if it had run
}

namespace {

exit_code parse_and_run(std::vector<std::string> arguments, context& all) {
    CLI::App app{"", "lockstep"};  // actions refer to it
    auto const end = parse_arguments(app, std::move(arguments), all);
    return end ? *end : all.action();
}

/// Where standard input, output or error was closed (`<&-`), what is opened next would take its number, and what others read and write there would
/// be ours. As before, reading from it or writing to it fails, and a command finds it closed.
void occupy_closed_descriptors() noexcept {
    for (int const one : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
        if (::fcntl(one, F_GETFD) >= 0) continue;
        [[maybe_unused]] int const taken = ::open("/dev/null", (one == STDIN_FILENO ? O_WRONLY : O_RDONLY) | O_CLOEXEC);
    }
}

/// Is a sub-command named that takes one of somebody else's? (Which one is called is known only to who knows what the options take.)
bool takes_command(std::vector<std::string>::const_iterator from, std::vector<std::string>::const_iterator to) {
    return std::any_of(sub_commands().begin(), sub_commands().end(), [&](auto const& one) { return one.takes_command && std::find(from, to, one.name) != to; });
}

}  // namespace

void hide_passwords(int argc, char** argv) noexcept {
    constexpr std::string_view option = "--redis";
    for (int i = 1; i < argc && std::string_view{argv[i]} != "--"; ++i) {
        std::string_view const argument{argv[i]};
        if (!argument.starts_with(option)) continue;
        char* url = nullptr;
        if (argument == option && i + 1 < argc) url = argv[++i];
        if (argument.substr(option.size()).starts_with('=')) url = argv[i] + option.size() + 1;
        if (url == nullptr) continue;
        auto const size = std::strlen(url);
        auto shown = redact_url(url);
        shown.resize(size);  // the rest with zeros, which ps leaves out
        std::memcpy(url, shown.data(), size);
    }
}

exit_code run_program(std::vector<std::string> arguments) {
    occupy_closed_descriptors();
    context all;
    try {
        // A command's words are cut here and not by CLI11, which may take some for its own. For all others it knows what -- means.
        auto const dashes = std::find(arguments.begin(), arguments.end(), "--");
        if (dashes != arguments.end() && takes_command(arguments.begin(), dashes)) {
            all.has_words = true;
            all.words.assign(dashes + 1, arguments.end());
            arguments.erase(dashes, arguments.end());
        }
        set_log_hook([&all](log_level level, std::string_view text) {
            static constexpr char const* words[] = {"debug", "info", "warning", "error"};
            if (!all.verbose && !text.starts_with("security: ")) return;  // as of a password file that everybody can read
            auto const* const word = words[static_cast<int>(level)];
            all.note(fmt::format("{}: {}", word, printable(text)), boost::json::object{{"event", "log"}, {"level", word}, {"message", text}});  // who logs renews leases, too
        });
        auto const code = parse_and_run(std::move(arguments), all);
        set_log_hook({});
        return code;
    } catch (...) {
        set_log_hook({});
        return explain(all, std::current_exception());
    }
}

}  // namespace lockstep::cli
