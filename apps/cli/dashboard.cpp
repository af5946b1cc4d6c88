// lockstep dashboard: the page that shows who holds what, who waits and why, until it is interrupted.

#include "cli/commands.hpp"
#include "cli/hosted_dashboard.hpp"
#include "cli/interruption.hpp"
#include "cli/options.hpp"
#include "dashboard/assets.hpp"
#include "dashboard/credentials.hpp"
#include "dashboard/server.hpp"

#include <lockstep/error.hpp>

#include <boost/json.hpp>
#include <fmt/format.h>

#include <sys/stat.h>

#include <cerrno>
#include <condition_variable>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <mutex>
#include <stop_token>
#include <system_error>
#include <vector>

namespace lockstep::cli {

namespace {

constexpr std::chrono::minutes link_lifetime{2};

// A secret in a file is one only while others can't read it.
void warn_if_shared(context const& all, std::string const& path) {
    struct stat status {};
    if (::stat(path.c_str(), &status) != 0 || (status.st_mode & (S_IRGRP | S_IROTH)) == 0) return;
    all.note(fmt::format("warning: others can read {} (mode {:04o}); chmod 600 {}", path, status.st_mode & 07777U, path));
}

struct dashboard_options {
    std::string address = "127.0.0.1";
    std::optional<std::uint16_t> port;
    std::optional<std::string> token_file;
    std::optional<std::string> metrics_token_file;
    std::string certificate_file, key_file;
    std::vector<std::string> hosts;
    bool no_token = false;
    bool allow_actions = false;
};

// From a file: what stands on a command line, everybody on the machine can read.
std::string secret_in(context const& all, std::string_view option, std::string const& path) {
    if (path.empty()) throw failure{exit_code::usage, fmt::format("{} needs the name of a file", option)};
    std::ifstream file{path};
    if (!file) throw failure{exit_code::usage, fmt::format("{} {}: {}", option, path, std::generic_category().message(errno))};
    std::string secret;
    std::getline(file, secret);
    while (secret.ends_with('\r') || secret.ends_with(' ')) secret.pop_back();  // as editors elsewhere leave it
    if (secret.empty())
        throw failure{exit_code::usage, fmt::format("there is no token in {}", path), fmt::format("write one there: openssl rand -hex 24 > {}", path)};
    warn_if_shared(all, path);
    return secret;
}

struct token_choice {
    std::string token{};
    bool generated = false;
};

token_choice token_for(context const& all, dashboard_options const& options) {
    if (options.no_token) {
        if (options.allow_actions)
            throw failure{exit_code::usage, "--no-token and --allow-actions exclude each other: everybody who can connect could end holds",
                          "leave out --no-token; the link that is printed logs in"};
        if (options.token_file) throw failure{exit_code::usage, "--no-token and --token-file exclude each other", "give one of them"};
        return {};
    }
    if (options.token_file) return {secret_in(all, "--token-file", *options.token_file)};
    auto const* const set = std::getenv("LOCKSTEP_DASHBOARD_TOKEN");
    if (set != nullptr && *set != '\0') return {set};
    return {dashboard::random_secret(), true};
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

// Where to click. A token that was made here nobody knows yet, so it is told; one that was given is never shown.
void announce(context const& all, dashboard::server& server, dashboard_options const& options, token_choice const& choice) {
    auto const link = choice.generated ? server.login_link(link_lifetime) : server.url();
    if (all.json) {
        boost::json::object told{{"url", server.url()}, {"actions", options.allow_actions}};
        if (choice.generated) {
            told["link"] = link;
            told["token"] = choice.token;
        }
        all.print_json(told);
    } else {
        all.print(fmt::format("{}\n", link));
    }
    for (auto const& warning : server.warnings()) all.note("warning: " + warning);
    if (all.json) return;
    if (choice.generated) all.note(fmt::format("the link logs in once, within {} minutes; after that, the token does: {}", link_lifetime.count(), choice.token));
    all.note(options.allow_actions ? "holds can be ended there, and jobs run again or cancelled; Ctrl-C ends it"
                                   : "it only shows (--allow-actions lets it act); Ctrl-C ends it");
}

exit_code serve(context const& all, dashboard_options const& how, std::stop_token const& stop) {
    require_page(dashboard::missing_page_reason());
    auto const choice = token_for(all, how);
    if (!how.key_file.empty()) warn_if_shared(all, how.key_file);
    auto mine = all;
    mine.connection.command_timeout = std::chrono::seconds{3};  // people look: better to say soon that nothing answers
    auto by = mine.connect("dashboard");
    dashboard::monitor_backend backend{by};
    dashboard::server_options options{.address = how.address,
                                      .port = how.port.value_or(dashboard::usual_port),
                                      .token = choice.token,
                                      .metrics_token = how.metrics_token_file ? secret_in(all, "--metrics-token-file", *how.metrics_token_file) : "",
                                      .certificate_file = how.certificate_file,
                                      .key_file = how.key_file,
                                      .allowed_hosts = how.hosts,
                                      .allow_actions = how.allow_actions};
    auto const server = start(backend, std::move(options), !how.port);
    announce(all, *server, how, choice);
    std::mutex mutex;
    std::condition_variable_any ended;
    std::unique_lock lock{mutex};
    ended.wait(lock, stop, [] { return false; });
    return exit_code::ok;
}

}  // namespace

struct hosted_dashboard::parts {
    explicit parts(std::string const& url) : by({.url = url, .name = "dashboard", .command_timeout = std::chrono::seconds{3}}), link(page->login_link(hosted_dashboard::link_lifetime)) {}
    ~parts() { by.close(); }  // what it waits for ends first: the server may be gone already

    client by;
    dashboard::monitor_backend backend{by};
    std::string token = dashboard::random_secret();
    std::unique_ptr<dashboard::server> page = start(backend, {.token = token}, true);
    std::string link;
};

hosted_dashboard::hosted_dashboard(std::string const& url) {
    if (dashboard::missing_page_reason().empty()) parts_ = std::make_unique<parts>(url);
}
hosted_dashboard::~hosted_dashboard() = default;
std::string hosted_dashboard::link() const { return parts_ ? parts_->link : std::string{}; }
std::string hosted_dashboard::token() const { return parts_ ? parts_->token : std::string{}; }
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
    command.add_option("--listen", how->address, "IP address to listen on; on any but loopback, use TLS")
        ->type_name("ADDRESS")
        ->capture_default_str();
    command
        .add_option("--port", how->port,
                    "port; 0: one that is free. Without it 7717, or one that is free when that is taken")
        ->type_name("N");
    command
        .add_option("--token-file", how->token_file,
                    "file with the token that logs in (or LOCKSTEP_DASHBOARD_TOKEN); without either one is made and a link that logs in once is printed")
        ->type_name("FILE");
    command.add_flag("--no-token", how->no_token, "let everybody on this machine see it; on loopback only, and not with --allow-actions");
    command.add_option("--metrics-token-file", how->metrics_token_file, "file with a further bearer token, for /metrics alone")->type_name("FILE");
    command.add_option("--tls-cert", how->certificate_file, "certificate chain (PEM), for HTTPS; with --tls-key")->type_name("FILE");
    command.add_option("--tls-key", how->key_file, "its key (PEM), without a pass phrase")->type_name("FILE");
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
