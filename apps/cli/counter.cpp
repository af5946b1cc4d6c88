// lockstep counter get|add|set: a number that programs count with.

#include "cli/commands.hpp"
#include "cli/options.hpp"

#include <lockstep/atomic_counter.hpp>

#include <boost/json.hpp>
#include <fmt/format.h>

#include <memory>

namespace lockstep::cli {
namespace {

struct counter_words {
    std::string name;
    std::int64_t number = 1;
    std::optional<std::int64_t> expected{};
    std::optional<std::chrono::milliseconds> ttl{};

    atomic_counter at(client& by) const { return {by, name, {.ttl = ttl.value_or(std::chrono::milliseconds{0})}}; }
};

exit_code tell(context const& all, std::string const& name, std::int64_t number) {
    if (all.json) {
        all.print_json(boost::json::object{{"name", name}, {"number", std::to_string(number)}});
    } else {
        all.print(std::to_string(number) + "\n");
    }
    return exit_code::ok;
}

exit_code set(context const& all, counter_words const& what) {
    auto by = all.connect();
    auto it = what.at(by);
    auto before = what.expected.value_or(0);
    bool made = true;
    if (what.expected) {
        made = it.compare_exchange(before, what.number);
    } else {
        before = it.set(what.number);
    }
    if (all.json) all.print_json(boost::json::object{{"name", what.name}, {"set", made}, {"before", std::to_string(before)}});
    else if (!made) all.note(fmt::format("{} was not set: it is {}", printable(what.name), before));
    return made ? exit_code::ok : exit_code::no;
}

}  // namespace

void add_counter(CLI::App& command, context& all) {
    command.description("Numbers of 64 bits that programs count with. Each is 0 before its first use.");
    command.require_subcommand(1);
    auto const what = std::make_shared<counter_words>();
    auto const add = named_actions(command, what->name, all);
    auto const add_ttl = [what](CLI::App& to) { add_duration(to, "--ttl", what->ttl, "it is 0 again when it was not changed for so long; without it, it stays"); };
    add("get", "print it", [what, &all] {
        auto by = all.connect();
        return tell(all, what->name, what->at(by).get());
    });
    auto* const adding = add("add", "add to it, and print what it is then", [what, &all] {
        auto by = all.connect();
        return tell(all, what->name, what->at(by).add(what->number));
    });
    add_number(*adding, "N", what->number, "so much, also less than 0 [1]");
    add_ttl(*adding);
    auto* const setting = add("set", "change it; returns 1 if it is not as --expected", [what, &all] { return set(all, *what); });
    add_number(*setting, "N", what->number, "what it shall be")->required();
    add_number(*setting, "--expected", what->expected, "only if it is this");
    add_ttl(*setting);
}

}  // namespace lockstep::cli
