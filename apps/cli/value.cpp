// lockstep value get|set|erase|watch: a value that programs share.

#include "cli/commands.hpp"
#include "cli/interruption.hpp"
#include "cli/letterbox.hpp"
#include "cli/options.hpp"

#include <lockstep/shared_value.hpp>

#include <boost/json.hpp>
#include <fmt/format.h>

#include <memory>

namespace lockstep::cli {
namespace {

using text_value = shared_value<std::string>;

struct value_words {
    std::string name;
    std::string value;
    write_terms terms{};
    std::optional<std::chrono::milliseconds> ttl{};

    write_options how() const {
        auto made = terms.how();
        if (ttl) made.ttl = *ttl;
        return made;
    }
};

void print(context const& all, std::string const& name, text_value::result const& found) {
    if (all.json) {
        boost::json::object shown{{"name", name}, {"value", nullptr}};
        if (found) shown["value"] = found->value, shown["version"] = std::to_string(found->version);
        all.print_json(shown);
    } else if (found) {
        all.print_stored(found->value);
    }
}

exit_code set(context const& all, value_words const& what) {
    auto by = all.connect();
    text_value it{by, what.name};
    std::optional<std::uint64_t> made;
    if (what.terms.version) {
        made = it.compare_and_set(*what.terms.version, what.value, what.how());
    } else {
        made = it.set(what.value, what.how());
    }
    if (all.json) {
        all.print_json(boost::json::object{{"name", what.name}, {"set", made.has_value()}, {"version", std::to_string(made.value_or(0))}});
    } else if (!made) {
        all.note(fmt::format("{} was not set: its version is not {}", printable(what.name), *what.terms.version));
    }
    return made ? exit_code::ok : exit_code::no;
}

exit_code watch(context const& all, std::string const& name) {
    return interruptible([&](std::stop_token token) -> exit_code {
        letterbox<text_value::result> box;
        auto by = all.connect();
        text_value const it{by, name};
        auto const watching = it.watch([&box](text_value::result const& now) { box.put(now); });
        while (auto const now = box.next(token)) print(all, name, *now);
        throw cancelled_error("told to end");
    });
}

}  // namespace

void add_value(CLI::App& command, context& all) {
    command.description("Values that programs share, as text. Each change gives it a new version.");
    command.require_subcommand(1);
    auto const what = std::make_shared<value_words>();
    auto const add = named_actions(command, what->name, all);
    add("get", "print it; returns 1 if there is none", [what, &all] {
        auto by = all.connect();
        auto const found = text_value{by, what->name}.get();
        if (!found) throw not_found{fmt::format("there is no value {}", printable(what->name))};
        print(all, what->name, found);
        return exit_code::ok;
    });
    auto* const setting = add("set", "change it; returns 1 if --version does not fit", [what, &all] { return set(all, *what); });
    setting->add_option("VALUE", what->value, "what it shall be")->required()->type_name("");
    what->terms.declare_version(*setting);
    what->terms.declare_fence(*setting);
    add_duration(*setting, "--ttl", what->ttl, "it goes after so long");
    auto* const erasing = add("erase", "remove it; returns 1 if there was none", [what, &all] {
        auto by = all.connect();
        bool const was = text_value{by, what->name}.erase(what->terms.how());
        if (!was) throw not_found{fmt::format("there is no value {}", printable(what->name))};
        if (all.json) all.print_json(boost::json::object{{"name", what->name}, {"erased", true}});
        return exit_code::ok;
    });
    what->terms.declare_fence(*erasing);
    add("watch", "print it now and after each change, until a signal ends it", [what, &all] { return watch(all, what->name); });
}

}  // namespace lockstep::cli
