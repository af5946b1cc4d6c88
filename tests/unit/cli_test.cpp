// The small parts of the `lockstep` program.

#include "cli/commands.hpp"
#include "cli/context.hpp"
#include "cli/duration.hpp"
#include "cli/hosted_dashboard.hpp"
#include "cli/program.hpp"
#include "cli/table.hpp"
#include "cli/terminal.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <set>
#include <sstream>
#include <string>
#include <vector>

namespace lockstep::cli {
namespace {

using namespace std::chrono_literals;

TEST(cli_duration, reads_what_people_write) {
    EXPECT_EQ(parse_duration("10s"), 10s);
    EXPECT_EQ(parse_duration("500ms"), 500ms);
    EXPECT_EQ(parse_duration("2m"), 2min);
    EXPECT_EQ(parse_duration("1h30m"), 90min);
    EXPECT_EQ(parse_duration("1d"), 24h);
    EXPECT_EQ(parse_duration("5"), 5s);
    EXPECT_EQ(parse_duration("1.5"), 1500ms);
    EXPECT_EQ(parse_duration("0"), 0s);
    EXPECT_EQ(parse_duration("0.0001"), 1ms) << "not nothing";
}

TEST(cli_duration, refuses_what_is_no_time) {
    for (auto const* const text : {"", "s", "soon", "-1", "-0", "1x", "1 s", " 1", "1e3", "inf", "nan", "10s-5s", "9999999d"}) {
        EXPECT_EQ(parse_duration(text), std::nullopt) << text;
    }
}

TEST(cli_duration, shows_times_shortly) {
    EXPECT_EQ(show(400us), "0.4 ms");
    EXPECT_EQ(show(350ms), "350 ms");
    EXPECT_EQ(show(4200ms), "4.2 s");
    EXPECT_EQ(show(200s), "3m 20s");
    EXPECT_EQ(show(125min), "2h 5m");
    EXPECT_EQ(show(76h), "3d 4h");
}

TEST(cli_dashboard, explains_why_a_build_has_no_page_and_what_to_do) {
    EXPECT_NO_THROW(require_page(""));
    try {
        require_page("npm could not install the packages (ECONNREFUSED)");
        FAIL() << "it went on";
    } catch (failure const& explained) {
        EXPECT_EQ(explained.code, exit_code::usage);
        EXPECT_EQ(explained.message, "this program was built without the dashboard's page: npm could not install the packages (ECONNREFUSED)");
        EXPECT_NE(explained.hint.find("build again"), std::string::npos);
        EXPECT_NE(explained.hint.find("lockstep top"), std::string::npos);
    }
}

TEST(cli_terminal, lets_nothing_through_that_a_terminal_obeys) {
    EXPECT_EQ(printable("plain, \u00e4 and \u4e2d"), "plain, \u00e4 and \u4e2d");
    EXPECT_EQ(printable("\033[31m\n\x7f"), "\\x1B[31m\\x0A\\x7F");
    EXPECT_EQ(printable("\xff\xc3"), "\\xFF\\xC3");
    EXPECT_EQ(printable("a\u202eb"), "a\\xE2\\x80\\xAEb") << "turns the direction of writing";
    EXPECT_EQ(printable("\u009b31m"), "\\xC2\\x9B31m") << "a terminal's other escape";
    EXPECT_EQ(printable_lines("a\tb\r\n\033]0;x\007"), "a\tb\\x0D\n\\x1B]0;x\\x07");
    EXPECT_EQ(printable_json("{\"\u00e4\":\"\u009b\u202e\x7f\"}"), "{\"\u00e4\":\"\\u009b\\u202e\\u007f\"}");
}

TEST(cli_terminal, cuts_by_columns_and_not_by_bytes) {
    EXPECT_EQ(width_of("a\u00e4\u4e2d"), 4U);
    EXPECT_EQ(cut_to("abcdef", 4), "abc\u2026");
    EXPECT_EQ(cut_to("\u4e2d\u4e2d\u4e2d", 4), "\u4e2d\u2026");
    EXPECT_EQ(cut_to("abc", 3), "abc");
}

TEST(cli_table, aligns_columns_and_cuts_those_that_give) {
    table shown{{{"NAME", align::left, true}, {"N", align::right}}};
    shown.add({"short", "1"});
    shown.add({"a very long name of a lock", "22"});
    EXPECT_EQ(shown.text(false), "NAME                         N\nshort                        1\na very long name of a lock  22\n");
    EXPECT_EQ(shown.text(false, 14), "NAME         N\nshort        1\na very lo\u2026  22\n");
}

// The standard output of `lockstep` with these arguments, which ends with this code and writes no error.
std::string output_of(std::vector<std::string> arguments, exit_code expected) {
    testing::internal::CaptureStdout();
    testing::internal::CaptureStderr();
    auto const code = run_program(std::move(arguments));
    std::fflush(stdout);
    EXPECT_EQ(code, expected);
    EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
    return testing::internal::GetCapturedStdout();
}

bool is_command(std::string const& word) {
    auto const all = sub_commands();
    return std::any_of(all.begin(), all.end(), [&](sub_command const& command) { return word == command.name; });
}

TEST(cli_program, shows_five_commands_that_exist_when_called_without_arguments) {
    std::istringstream lines{output_of({}, exit_code::usage)};
    std::set<std::string> shown;
    std::string text;
    for (std::string line; std::getline(lines, line);) {
        text += line + "\n";
        EXPECT_LE(line.size(), 80U) << line;
        std::istringstream words{line};
        std::string program, command;
        if (!line.starts_with("  ") || !(words >> program >> command)) continue;
        EXPECT_EQ(program, "lockstep") << line;
        EXPECT_TRUE(is_command(command)) << line;
        shown.insert(command);
    }
    EXPECT_EQ(shown.size(), 5U) << text;
    EXPECT_NE(text.find("lockstep --help"), std::string::npos) << "where all the others are";
    EXPECT_LE(std::count(text.begin(), text.end(), '\n'), 14) << "a few lines, not the whole help";
}

TEST(cli_program, lists_every_command_under_its_area_in_the_help) {
    std::istringstream lines{output_of({"--help"}, exit_code::ok)};
    std::string heading;
    std::set<std::string> listed, headings;
    for (std::string line; std::getline(lines, line);) {
        if (line.ends_with(':') && !line.starts_with(' ')) heading = line;
        if (line.size() < 3 || !line.starts_with("  ") || line[2] < 'a' || line[2] > 'z') continue;
        std::string name;
        std::istringstream{line} >> name;
        EXPECT_TRUE(is_command(name)) << line;
        EXPECT_TRUE(listed.insert(name).second) << name << " twice";
        headings.insert(heading);
    }
    EXPECT_EQ(listed.size() + 1, sub_commands().size()) << "all but demo-worker, which only the demo starts";
    EXPECT_FALSE(listed.contains("demo-worker"));
    EXPECT_GE(headings.size(), 5U);
    EXPECT_FALSE(headings.contains("Subcommands:")) << "each command has an area";
}

}  // namespace
}  // namespace lockstep::cli
