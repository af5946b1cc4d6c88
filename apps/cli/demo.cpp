// lockstep demo, and the workers it starts.

#include "cli/commands.hpp"
#include "cli/hosted_dashboard.hpp"
#include "cli/interruption.hpp"
#include "cli/options.hpp"
#include "demo/demo.hpp"
#include "demo/worker.hpp"

#include <boost/json/object.hpp>
#include <boost/json/value.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstring>
#include <memory>
#include <string>

namespace lockstep::cli {
namespace {

/// How this program was called, where a shell takes that as it stands.
std::string name_to_paste() {
    std::string const name = program_invocation_name;
    auto const is_plain = [](unsigned char letter) { return std::isalnum(letter) != 0 || std::strchr("/._-+", letter) != nullptr; };
    return !name.empty() && std::all_of(name.begin(), name.end(), is_plain) ? name : "lockstep";
}

}  // namespace

void add_demo(CLI::App& command, context& all) {
    struct options {
        double seconds = 60;
        bool no_dashboard = false;
        unsigned seed = 0;
    };
    auto const how = std::make_shared<options>();
    command.description("A private server and a dozen worker processes that compete for a lock, a semaphore, a readers-writer lock and a barrier.\n"
                        "Every few seconds one of them is killed, and you see which one takes over, how soon, and with which fencing token.\n"
                        "Ends by itself and leaves nothing behind.");
    command.add_option("--seconds", how->seconds, "how long it runs [60]")->type_name("N")->check(number_within(1, 86'400));
    command.add_flag("--no-dashboard", how->no_dashboard, "without the web page");
    command.add_option("--seed", how->seed, "choose the same victims again")->type_name("N");
    command.callback([how, &all] {
        all.action = [how, &all] {
            return interruptible([&](std::stop_token stop) {
                demo::stage on{.print_json = {},
                               .print = [&all](std::string_view text) { all.print(text); },
                               .on_terminal = all.on_terminal(),
                               .coloured = all.coloured(),
                               .open_dashboard = {}};
                std::unique_ptr<hosted_dashboard> page;
                std::chrono::milliseconds const length{static_cast<std::int64_t>(how->seconds * 1'000)};
                if (!how->no_dashboard) {
                    on.open_dashboard = [&page, &all](std::string const& url) {
                        page = std::make_unique<hosted_dashboard>(url);
                        if (page->link().empty())
                            all.note(fmt::format("the dashboard's page is not part of this build: {}", hosted_dashboard::missing_reason()));
                        return demo::page_access{page->link(), page->token(), hosted_dashboard::link_lifetime};
                    };
                }
                if (all.json) on.print_json = [&all](boost::json::object const& line) { all.print_json(line); };
                demo::demo_options const what{.length = length,
                                              .program = "/proc/self/exe",
                                              .program_name = name_to_paste(),
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
