// Command lines of `lockstep`: an argument on each line. They are only parsed. Whatever they are:

#include "cli/commands.hpp"
#include "cli/context.hpp"
#include "cli/duration.hpp"
#include "cli/program.hpp"

#include "support/fuzz.hpp"

#include <CLI/CLI.hpp>

#include <vector>

namespace {

using namespace lockstep;
using fuzz::require;

void check_duration(std::string_view text) {
    auto const time = cli::parse_duration(text);
    if (!time) return;
    require(time->count() >= 0, "a duration is not negative", text);
    require(!cli::show(*time).empty(), "a duration has a text", text);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
    std::vector<std::string> arguments;
    for (auto input = fuzz::text_of(data, size); !input.empty();) arguments.emplace_back(fuzz::take_line(input));
    for (auto const& one : arguments) check_duration(one);
    cli::context all;
    CLI::App app{"", "lockstep"};
    try {
        auto const code = cli::parse_arguments(app, std::move(arguments), all);
        require(!code || *code == cli::exit_code::ok || *code == cli::exit_code::usage, "arguments are understood, or wrong usage");
        require(code.has_value() != static_cast<bool>(all.action), "what is understood is an action");
    } catch (cli::failure const& problem) {
        require(problem.code == cli::exit_code::usage, "arguments are refused as wrong usage", problem.message);
    } catch (invalid_argument_error const&) {
    }
    return 0;
}
