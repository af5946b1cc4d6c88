#include "cli/options.hpp"

#include <fmt/format.h>

#include <charconv>
#include <concepts>
#include <utility>

namespace lockstep::cli {
namespace {

constexpr auto largest_fence = 9'000'000'000'000'000L;  // fence or version, as the scripts have it

bool read_number(std::string const& text, auto& into) {
    auto const* const last = text.data() + text.size();
    auto const [end, problem] = std::from_chars(text.data(), last, into);
    return problem == std::errc{} && end == last;
}
bool read_number(std::string const& text, std::optional<std::int64_t>& into) { return read_number(text, into.emplace()); }

}  // namespace

CLI::Option* add_duration(CLI::App& to, std::string const& names, std::optional<std::chrono::milliseconds>& into, std::string const& about) {
    auto const read = [&into, names](std::string const& text) {
        into = parse_duration(text);
        if (!into) throw CLI::ValidationError(names, "invalid duration '" + text + "'; write 10s, 500ms, 2m, 1h30m, or seconds as a number");
    };
    return to.add_option_function<std::string>(names, read, about)->type_name("TIME");
}

CLI::Option* add_name(CLI::App& to, std::string& into, std::string const& about) {
    return to.add_option("NAME", into, about)->required()->type_name("");
}

CLI::Validator number_within(std::int64_t smallest, std::int64_t largest) {
    auto const check = [smallest, largest](std::string const& text) -> std::string {
        double number = 0;
        if (read_number(text, number) && number >= static_cast<double>(smallest) && number <= static_cast<double>(largest)) return {};
        return fmt::format("must be {} to {}, not '{}'", smallest, largest, text);
    };
    return CLI::Validator{check, ""};
}

template <class Number>
CLI::Option* add_number(CLI::App& to, std::string const& names, Number& into, std::string const& about) {
    auto const read = [&into, names](std::string const& text) {
        constexpr auto* allowed =
            std::same_as<Number, double> ? "a number such as 10, -3 or 4.5" : "a whole number from -9223372036854775808 to 9223372036854775807";
        if (!read_number(text, into)) throw CLI::ValidationError(names, "'" + text + "' is not " + allowed);
    };
    return to.add_option_function<std::string>(names, read, about)->type_name(names.starts_with('-') ? "N" : "");
}
template CLI::Option* add_number(CLI::App&, std::string const&, std::int64_t&, std::string const&);
template CLI::Option* add_number(CLI::App&, std::string const&, std::optional<std::int64_t>&, std::string const&);
template CLI::Option* add_number(CLI::App&, std::string const&, double&, std::string const&);

void write_terms::declare_version(CLI::App& to) {
    to.add_option("--version", version, "only if this is its version; 0: only if there is none")->type_name("N")->check(number_within(0, largest_fence));
}
void write_terms::declare_fence(CLI::App& to) {
    to.add_option("--fence", fence, "refused if somebody with a larger fence has written, as LOCKSTEP_FENCE of `lockstep run`")
        ->type_name("N")
        ->check(number_within(0, largest_fence));
}

void patience::declare(CLI::App& to) {
    auto* const wait = add_duration(to, "-w,--wait,--timeout", limit, "wait so long at most, then return 1; without it, for ever");
    to.add_flag("-n,--no-wait,--nonblock", none, "do not wait: return 1 at once")->excludes(wait);
}

CLI::App* add_action(CLI::App& to, std::string const& name, std::string const& about) {
    auto* const made = to.add_subcommand(name, about);
    made->fallthrough();
    return made;
}

CLI::App* add_action(CLI::App& to, std::string const& name, std::string const& about, std::string& into, context& all, std::function<exit_code()> act) {
    auto* const made = add_action(to, name, about);
    add_name(*made, into);
    made->callback([act = std::move(act), &all] { all.action = act; });
    return made;
}

}  // namespace lockstep::cli
