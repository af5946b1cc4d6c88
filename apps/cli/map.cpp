// lockstep map get|set|erase|list: named values that programs share.

#include "cli/commands.hpp"
#include "cli/options.hpp"
#include "cli/table.hpp"

#include <lockstep/shared_map.hpp>

#include <boost/json.hpp>
#include <fmt/format.h>

#include <memory>

namespace lockstep::cli {
namespace {

using text_map = shared_map<std::string>;

struct map_words {
    std::string name, field, value;
    write_terms terms{};
    std::optional<std::chrono::milliseconds> ttl{};

    text_map at(client& by) const { return {by, name, {.ttl = ttl.value_or(std::chrono::milliseconds{0})}}; }
};

void print_field(context const& all, std::string const& field, versioned<std::string> const& found) {
    all.print_json(boost::json::object{{"field", field}, {"value", found.value}, {"version", std::to_string(found.version)}});
}

not_found no_such_field(map_words const& what) { return not_found{fmt::format("{} has no field {}", printable(what.name), printable(what.field))}; }

exit_code get(context const& all, map_words const& what) {
    auto by = all.connect();
    auto const found = what.at(by).get(what.field);
    if (!found) throw no_such_field(what);
    if (all.json) {
        print_field(all, what.field, *found);
    } else {
        all.print_stored(found->value);
    }
    return exit_code::ok;
}

exit_code set(context const& all, map_words const& what) {
    auto by = all.connect();
    auto it = what.at(by);
    std::optional<std::uint64_t> made;
    if (what.terms.version) {
        made = it.compare_and_set(what.field, *what.terms.version, what.value, what.terms.how());
    } else {
        made = it.set(what.field, what.value, what.terms.how());
    }
    if (all.json) all.print_json(boost::json::object{{"field", what.field}, {"set", made.has_value()}, {"version", std::to_string(made.value_or(0))}});
    else if (!made) all.note(fmt::format("{} was not set: its version is not {}", printable(what.field), *what.terms.version));
    return made ? exit_code::ok : exit_code::no;
}

exit_code list(context const& all, map_words const& what) {
    auto by = all.connect();
    table shown{{{"FIELD", align::left, true}, {"VALUE", align::left, true}}};
    auto const fields = what.at(by).all();
    if (fields.empty()) throw not_found{fmt::format("there is nothing in the map {}", printable(what.name))};
    for (auto const& [field, found] : fields) {
        if (all.json) {
            print_field(all, field, found);
        } else {
            shown.add({field, found.value});
        }
    }
    if (!shown.empty()) all.print(shown.text(all.coloured(), all.width()));
    return exit_code::ok;
}

}  // namespace

void add_map(CLI::App& command, context& all) {
    command.description("Maps that programs share: fields with values, as text. Each change gives a field a new version.");
    command.require_subcommand(1);
    auto const what = std::make_shared<map_words>();
    auto const add = named_actions(command, what->name, all);
    auto const add_field = [what](CLI::App& to) { to.add_option("FIELD", what->field, "which of its fields")->required()->type_name(""); };
    auto const add_terms = [what](CLI::App& to) {
        what->terms.declare_fence(to);
        add_duration(to, "--ttl", what->ttl, "the whole map goes when it was not changed for so long; without it, it stays");
    };
    add_field(*add("get", "print a field; returns 1 if there is none", [what, &all] { return get(all, *what); }));
    auto* const setting = add("set", "change a field; returns 1 if --version does not fit", [what, &all] { return set(all, *what); });
    add_field(*setting);
    setting->add_option("VALUE", what->value, "what it shall be")->required()->type_name("");
    what->terms.declare_version(*setting);
    add_terms(*setting);
    auto* const erasing = add("erase", "remove a field; returns 1 if there was none", [what, &all] {
        auto by = all.connect();
        bool const was = what->at(by).erase(what->field, what->terms.how());
        if (!was) throw no_such_field(*what);
        if (all.json) all.print_json(boost::json::object{{"field", what->field}, {"erased", true}});
        return exit_code::ok;
    });
    add_field(*erasing);
    add_terms(*erasing);
    add("list", "all its fields", [what, &all] { return list(all, *what); });
}

}  // namespace lockstep::cli
