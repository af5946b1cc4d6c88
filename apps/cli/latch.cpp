// lockstep latch create|count-down|wait: opens once, when it was counted down so many times.

#include "cli/commands.hpp"
#include "cli/interruption.hpp"
#include "cli/options.hpp"

#include <lockstep/latch.hpp>
#include <lockstep/monitor.hpp>

#include <boost/json.hpp>
#include <fmt/format.h>

#include <memory>

namespace lockstep::cli {
namespace {

struct latch_options {
    std::string name;
    std::optional<std::int64_t> count{};
    std::int64_t by = 1;
    patience wait;
};

/// The library wants the count from all, to find mistakes. Here who does not say it takes what there is.
std::int64_t count_of(client& by, latch_options const& what) {
    if (what.count) return *what.count;
    snapshot_options options{};
    options.name = what.name;
    auto const now = monitor{by}.snapshot(options);
    for (auto const& one : now.objects) {
        if (one.kind == "latch" && one.name == what.name && one.count >= 0) return one.count;
    }
    throw not_found{fmt::format("there is no latch {}", printable(what.name)),
                    "`lockstep latch create NAME COUNT` makes it; --count makes it when it is first used"};
}

exit_code tell(context const& all, latch_options const& what, bool open, bool loud) {
    if (all.json) {
        all.print_json(boost::json::object{{"name", what.name}, {"open", open}});
    } else if (loud) {
        all.print(fmt::format("{} is {}\n", printable(what.name), open ? "open" : "closed"));
    }
    return open ? exit_code::ok : exit_code::no;
}

}  // namespace

void add_latch(CLI::App& command, context& all) {
    command.description("Latches: closed until they were counted down so many times by all programs together, then open. A name is for one occasion.");
    command.require_subcommand(1);
    auto const what = std::make_shared<latch_options>();
    auto const optional_count = [what](CLI::App& of) {
        of.add_option("--count", what->count, "its count, if this may be the first use of it")->type_name("N")->check(number_within(0, 1'000'000'000'000));
    };

    auto* const create = add_action(command, "create", "make it, or find it with the same count");
    add_name(*create, what->name);
    create->add_option("COUNT", what->count, "how often it must be counted down")->required()->type_name("")->check(number_within(0, 1'000'000'000'000));
    create->callback([=, &all] {
        all.action = [=, &all] {
            auto by = all.connect();
            tell(all, *what, latch{by, what->name, *what->count}.try_wait(), true);
            return exit_code::ok;
        };
    });

    auto* const down = add_action(command, "count-down", "count it down");
    add_name(*down, what->name);
    down->add_option("--by", what->by, "by so much [1]")->type_name("N")->check(number_within(1, 1'000'000'000'000));
    optional_count(*down);
    down->callback([=, &all] {
        all.action = [=, &all] {
            auto by = all.connect();
            latch it{by, what->name, count_of(by, *what)};
            it.count_down(what->by);
            tell(all, *what, it.try_wait(), false);
            return exit_code::ok;
        };
    });

    auto* const wait = add_action(command, "wait", "until it is open; returns 1 if it was not in time");
    add_name(*wait, what->name);
    what->wait.declare(*wait);
    optional_count(*wait);
    wait->callback([=, &all] {
        all.action = [=, &all] {
            return interruptible([&](std::stop_token token) {
                auto by = all.connect();
                latch const it{by, what->name, count_of(by, *what)};
                bool open = true;
                if (auto const time = what->wait.time()) {
                    open = it.wait_for(*time, token);
                } else {
                    it.wait(token);
                }
                return tell(all, *what, open, false);
            });
        };
    });
}

}  // namespace lockstep::cli
