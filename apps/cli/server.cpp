// lockstep server start|status|stop: this user's embedded server.

#include "cli/commands.hpp"
#include "cli/options.hpp"

#include <lockstep/embedded_server.hpp>
#include <lockstep/error.hpp>

#include <boost/json.hpp>
#include <fmt/format.h>

#include <cstdlib>
#include <memory>
#include <string_view>

namespace lockstep::cli {
namespace {

exit_code show_status(context const& all, shared_server_state const& now) {
    using std::chrono::duration_cast, std::chrono::milliseconds, std::chrono::microseconds;
    if (all.json) {
        boost::json::object shown{{"running", now.running}, {"socket", now.socket}, {"data_directory", now.data_directory}};
        shown["pid"] = now.running ? boost::json::value(now.pid) : nullptr;
        shown["url"] = now.running ? boost::json::value("unix://" + now.socket) : nullptr;
        shown["since_ms"] = now.running ? boost::json::value(duration_cast<milliseconds>(now.since.time_since_epoch()).count()) : nullptr;
        all.print_json(shown);
    } else if (now.running) {
        auto const age = duration_cast<microseconds>(std::chrono::system_clock::now() - now.since);
        all.print(fmt::format("{}: process {}, for {}\nurl   unix://{}\ndata  {}\n", paint("running", style::green, all.coloured()), now.pid,
                              show(age), printable(now.socket), printable(now.data_directory)));
    } else {
        all.print(fmt::format("{}: it would be at {}\nThe first that needs it starts it; `lockstep server start` does so now.\n",
                              paint("not running", style::yellow, all.coloured()), printable(now.socket)));
    }
    return now.running ? exit_code::ok : exit_code::no;
}

/// With LOCKSTEP_URL=none: this process is to have no server, and "the same" lock at another one excludes nobody.
void refuse_without_server() {
    auto const* const url = std::getenv("LOCKSTEP_URL");
    if (url == nullptr || std::string_view{url} != "none:") return;
    throw invalid_argument_error("LOCKSTEP_URL is none:, so no server is started in place of the one that was withheld; unset LOCKSTEP_URL to have a server of your own");
}

}  // namespace

void add_server(CLI::App& command, context& all) {
    command.description("The small server of your own on this machine, which is used where no URL is set.");
    command.require_subcommand(1);
    auto const options = std::make_shared<shared_server_options>();
    options->announce = false;
    auto const idle = std::make_shared<std::optional<std::chrono::milliseconds>>();

    auto* const start = add_action(command, "start", "start it, unless it runs, and print its URL");
    add_duration(*start, "--idle", *idle, "it ends after so long without a connection; 0: never [15m]");
    start->callback([=, &all] {
        all.action = [=, &all] {
            refuse_without_server();
            options->idle = *idle;
            auto const url = ensure_shared_server(*options);
            if (all.json) {
                all.print_json(boost::json::object{{"url", url}});
            } else {
                all.print(url + "\n");
            }
            return exit_code::ok;
        };
    });
    add_action(command, "status", "whether it runs, and where; returns 1 if not")->callback([=, &all] {
        all.action = [=, &all] { return show_status(all, shared_server_status(*options)); };
    });
    add_action(command, "stop", "end it, whoever uses it; its data stays")->callback([=, &all] {
        all.action = [=, &all] {
            bool const ran = stop_shared_server(*options);
            if (all.json) {
                all.print_json(boost::json::object{{"stopped", ran}});
            } else {
                all.print(ran ? "stopped\n" : "it was not running\n");
            }
            return exit_code::ok;
        };
    });
}

}  // namespace lockstep::cli
