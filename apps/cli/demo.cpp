// lockstep demo, and the workers it starts.

#include "cli/commands.hpp"
#include "cli/interruption.hpp"
#include "cli/options.hpp"
#include "demo/demo.hpp"
#include "demo/worker.hpp"

#include <boost/json/object.hpp>
#include <boost/json/value.hpp>

#include <memory>

#ifdef LOCKSTEP_HAS_DASHBOARD
#include "dashboard/server.hpp"

#include <lockstep/error.hpp>
#endif

namespace lockstep::cli {
namespace {

/// The page of the demo's own server, for as long as the demo runs. On any port: it must not be in the way of one that is used.
class demo_page {
public:
    std::string open(std::string const& url) {
#ifdef LOCKSTEP_HAS_DASHBOARD
        by_.emplace(client_options{.url = url, .name = "dashboard"});
        backend_ = std::make_unique<dashboard::monitor_backend>(*by_);
        server_ = std::make_unique<dashboard::server>(*backend_, dashboard::server_options{.port = 0, .allow_actions = true});
        return server_->url();
#else
        static_cast<void>(url);
        return {};
#endif
    }

#ifdef LOCKSTEP_HAS_DASHBOARD
private:
    std::optional<client> by_;
    std::unique_ptr<dashboard::monitor_backend> backend_;
    std::unique_ptr<dashboard::server> server_;
#endif
};

}  // namespace

void add_demo(CLI::App& command, context& all) {
    struct options {
        double seconds = 60;
        bool no_dashboard = false;
        unsigned seed = 0;
    };
    auto const how = std::make_shared<options>();
    command.description("A private server and a dozen worker processes that contend for locks, permits and a barrier. Every few seconds one of\n"
                        "them is killed, and you see who takes over, how soon, and with which fence. Ends by itself and leaves nothing behind.");
    command.add_option("--seconds", how->seconds, "how long [60]")->type_name("N")->check(CLI::Range(1.0, 86'400.0));
    command.add_flag("--no-dashboard", how->no_dashboard, "only in the terminal");
    command.add_option("--seed", how->seed, "of who is killed")->type_name("N");
    command.callback([how, &all] {
        all.action = [how, &all] {
            return interruptible([&](std::stop_token stop) {
                demo::stage on{.print_json = {},
                               .print = [&all](std::string_view text) { all.print(text); },
                               .on_terminal = all.on_terminal(),
                               .coloured = all.coloured(),
                               .open_dashboard = {}};
                demo_page page;
                if (!how->no_dashboard) on.open_dashboard = [&page](std::string const& url) { return page.open(url); };
                if (all.json) on.print_json = [&all](boost::json::object const& line) { all.print_json(line); };
                demo::demo_options const what{.length = std::chrono::milliseconds{static_cast<std::int64_t>(how->seconds * 1'000)},
                                              .program = "/proc/self/exe",
                                              .seed = how->seed};
                return demo::run_demo(what, on, stop) ? exit_code::ok : exit_code::internal;
            });
        };
    });
}

void add_demo_worker(CLI::App& command, context& all) {
    auto const how = std::make_shared<demo::worker_options>();
    command.group("");  // the demo starts it, nobody else
    command.add_option("--url", how->url)->required();
    command.add_option("--worker", how->name)->required();
    command.add_option("--role", how->role)->required();
    command.callback([how, &all] { all.action = [how] { return static_cast<exit_code>(demo::run_worker(*how)); }; });
}

}  // namespace lockstep::cli
