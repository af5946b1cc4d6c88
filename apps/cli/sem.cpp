// lockstep sem create|resize|show: semaphores. `lockstep run -c N` takes a permit.

#include "cli/commands.hpp"
#include "cli/options.hpp"

#include <lockstep/counting_semaphore.hpp>
#include <lockstep/error.hpp>

#include <boost/json.hpp>
#include <fmt/format.h>

#include <memory>

namespace lockstep::cli {
namespace {

struct sem_options {
    std::string name;
    std::int64_t permits = 1;
    std::optional<std::chrono::milliseconds> keep{};

    semaphore_options how() const {
        semaphore_options made{.max_permits = 1'000'000'000};
        if (keep) made.lease_ttl = *keep;
        return made;
    }
};

counting_semaphore find(client& by, sem_options const& wanted) {
    try {
        return counting_semaphore::attach(by, wanted.name, std::chrono::milliseconds{0}, wanted.how());
    } catch (timeout_error const&) {
        throw not_found{fmt::format("there is no semaphore {}", printable(wanted.name)),
                        "`lockstep sem create NAME N` makes it, and so does `lockstep run -c N NAME -- command`"};
    }
}

exit_code show_it(context const& all, sem_options const& wanted, counting_semaphore const& it) {
    auto const count = it.count();
    auto const available = it.available();
    if (all.json) {
        all.print_json(boost::json::object{{"name", wanted.name}, {"count", count}, {"available", available}});
    } else {
        all.print(fmt::format("{} of {} permits of {} are free\n", available, count, printable(wanted.name)));
    }
    return exit_code::ok;
}

}  // namespace

void add_sem(CLI::App& command, context& all) {
    command.description("Semaphores: a number of permits. `lockstep run -c N NAME -- command` takes one of them while a command runs.");
    command.require_subcommand(1);
    auto const wanted = std::make_shared<sem_options>();
    auto const number = [wanted](CLI::App& of) {
        of.add_option("PERMITS", wanted->permits, "how many there are")->required()->type_name("")->check(number_within(1, 1'000'000'000));
    };

    auto* const create = add_action(command, "create", "make it, or find it with the same number");
    add_name(*create, wanted->name);
    number(*create);
    add_duration(*create, "--keep", wanted->keep, "how long it stays after its last use [5m]");
    create->callback([=, &all] {
        all.action = [=, &all] {
            auto by = all.connect();
            return show_it(all, *wanted, counting_semaphore::create(by, wanted->name, wanted->permits, wanted->how()));
        };
    });

    auto* const resize = add_action(command, "resize", "change how many there are; nobody loses a permit");
    add_name(*resize, wanted->name);
    number(*resize);
    resize->callback([=, &all] {
        all.action = [=, &all] {
            auto by = all.connect();
            auto it = find(by, *wanted);
            it.resize(wanted->permits);
            return show_it(all, *wanted, it);
        };
    });

    auto* const show_command = add_action(command, "show", "how many there are, and how many are free");
    add_name(*show_command, wanted->name);
    show_command->callback([=, &all] {
        all.action = [=, &all] {
            auto by = all.connect();
            return show_it(all, *wanted, find(by, *wanted));
        };
    });
}

}  // namespace lockstep::cli
