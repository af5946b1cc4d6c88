// lockstep dashboard: the page that shows who holds what, who waits and why, until it is interrupted.

#include "cli/commands.hpp"
#include "cli/hosted_dashboard.hpp"
#include "cli/interruption.hpp"
#include "cli/options.hpp"
#include "dashboard/assets.hpp"
#include "dashboard/server.hpp"

#include <lockstep/error.hpp>

#include <boost/json.hpp>
#include <fmt/format.h>

#include <condition_variable>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <mutex>
#include <stop_token>
#include <vector>

namespace lockstep::cli {

namespace {

struct dashboard_options {
    std::string address = "127.0.0.1";
    std::optional<std::uint16_t> port;
    std::optional<std::string> token_file;
    std::vector<std::string> hosts;
    bool allow_actions = false;
};

// From a file or the environment: what stands on a command line, everybody on the machine can read.
std::string token_of(dashboard_options const& how) {
    if (!how.token_file) {
        auto const* const set = std::getenv("LOCKSTEP_DASHBOARD_TOKEN");
        return set == nullptr ? "" : set;
    }
    if (how.token_file->empty())
        throw failure{exit_code::usage, "--token-file needs the name of a file",
                      "leave it out to serve this machine only, without a token"};
    std::ifstream file{*how.token_file};
    std::string token;
    std::getline(file, token);
    while (token.ends_with('\r') || token.ends_with(' ')) token.pop_back();  // as editors elsewhere leave it
    if (token.empty())
        throw failure{exit_code::usage, fmt::format("there is no token in {}", *how.token_file),
                      fmt::format("write one there: openssl rand -hex 24 > {}", *how.token_file)};
    return token;
}

std::unique_ptr<dashboard::server> start(dashboard::backend& from, dashboard::server_options options, bool any_port) {
    try {
        return std::make_unique<dashboard::server>(from, options);
    } catch (unavailable_error const&) {
        if (!any_port) throw;  // this one was asked for
        options.port = 0;
        return std::make_unique<dashboard::server>(from, options);
    }
}

exit_code serve(context const& all, dashboard_options const& how, std::stop_token const& stop) {
    require_page(dashboard::missing_page_reason());
    auto mine = all;
    mine.connection.command_timeout = std::chrono::seconds{3};  // people look: better to say soon that nothing answers
    auto by = mine.connect("dashboard");
    dashboard::monitor_backend backend{by};
    dashboard::server_options options{.address = how.address,
                                      .port = how.port.value_or(dashboard::usual_port),
                                      .token = token_of(how),
                                      .allowed_hosts = how.hosts,
                                      .allow_actions = how.allow_actions};
    auto const server = start(backend, std::move(options), !how.port);
    if (all.json) {
        all.print_json(boost::json::object{{"url", server->url()}, {"actions", how.allow_actions}});
    } else {
        all.print(fmt::format("{}\n", server->url()));
        all.note(how.allow_actions ? "holds can be ended there, and jobs run again or cancelled; Ctrl-C ends it"
                                   : "it only shows (--allow-actions lets it act); Ctrl-C ends it");
    }
    std::mutex mutex;
    std::condition_variable_any ended;
    std::unique_lock lock{mutex};
    ended.wait(lock, stop, [] { return false; });
    return exit_code::ok;
}

}  // namespace

struct hosted_dashboard::parts {
    explicit parts(std::string const& url) : by({.url = url, .name = "dashboard", .command_timeout = std::chrono::seconds{3}}) {}
    ~parts() { by.close(); }  // what it waits for ends first: the server may be gone already

    client by;
    dashboard::monitor_backend backend{by};
    std::unique_ptr<dashboard::server> page = start(backend, {}, true);
};

hosted_dashboard::hosted_dashboard(std::string const& url) {
    if (dashboard::missing_page_reason().empty()) parts_ = std::make_unique<parts>(url);
}
hosted_dashboard::~hosted_dashboard() = default;
std::string hosted_dashboard::address() const { return parts_ ? parts_->page->url() : std::string{}; }
std::string hosted_dashboard::missing_reason() { return std::string{dashboard::missing_page_reason()}; }

void require_page(std::string_view missing_reason) {
    if (missing_reason.empty()) return;
    throw failure{exit_code::usage, fmt::format("this program was built without the dashboard's page: {}", missing_reason),
                  "with Node.js 18 or newer, npm and access to its registry, build again; `lockstep top` shows the same in the terminal"};
}

void add_dashboard(CLI::App& command, context& all) {
    command.description(
        "Serves a page that shows who holds what, who waits and why, live. On this machine only, unless told "
        "otherwise.");
    auto const how = std::make_shared<dashboard_options>();
    command.add_option("--listen", how->address, "IP address to listen on; any but loopback needs a token")
        ->type_name("ADDRESS")
        ->capture_default_str();
    command
        .add_option("--port", how->port,
                    "port; 0: one that is free. Without it 7717, or one that is free when that is taken")
        ->type_name("N");
    command
        .add_option("--token-file", how->token_file,
                    "file with the token that the page asks for (or LOCKSTEP_DASHBOARD_TOKEN)")
        ->type_name("FILE");
    command.add_option("--allow-host", how->hosts, "a further name under which it is reached, beside localhost and its address")->type_name("NAME");
    command.add_flag("--allow-actions", how->allow_actions,
                     "allow asking for holds and ending them, running jobs again and cancelling them; otherwise it only shows");
    command.callback([&all, how] {
        all.action = [&all, how] {
            return interruptible([&](std::stop_token const& stop) { return serve(all, *how, stop); });
        };
    });
}

}  // namespace lockstep::cli
