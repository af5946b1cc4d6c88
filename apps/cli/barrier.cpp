// lockstep barrier NAME --parties N: go on when all have come.

#include "cli/commands.hpp"
#include "cli/interruption.hpp"
#include "cli/options.hpp"

#include <lockstep/barrier.hpp>

#include <boost/json.hpp>

#include <memory>

namespace lockstep::cli {

void add_barrier(CLI::App& command, context& all) {
    struct wishes {
        std::string name, action;
        std::int64_t parties = 0;
        patience wait;
        std::optional<std::chrono::milliseconds> ttl{};
    };
    command.description("Waits until so many have come to the barrier, then all go on, and it begins anew.");
    command.footer("Returns 1 if not all came in time, 75 if another one died or gave up: then all may simply come again.");
    auto const what = std::make_shared<wishes>();
    add_name(command, what->name);
    command.add_option("ACTION", what->action, "`wait`, which may be left out")->type_name("")->check(CLI::IsMember({"wait"}));
    command.add_option("-p,--parties", what->parties, "how many meet")->required()->type_name("N")->check(number_within(1, 2000));
    add_duration(command, "--ttl", what->ttl, "how soon the others hear that this machine died [30s]");
    what->wait.declare(command);
    command.callback([=, &all] {
        all.action = [=, &all] {
            return interruptible([&](std::stop_token token) {
                auto by = all.connect();
                barrier it{by, what->name, what->parties, lease_options{.ttl = what->ttl}};
                bool met = true;
                if (auto const time = what->wait.time()) {
                    met = it.arrive_and_wait_for(*time, token);
                } else {
                    it.arrive_and_wait(token);
                }
                if (all.json) all.print_json(boost::json::object{{"name", what->name}, {"parties", what->parties}, {"met", met}});
                return met ? exit_code::ok : exit_code::no;
            });
        };
    });
}

}  // namespace lockstep::cli
