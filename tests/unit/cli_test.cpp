// The small parts of the `lockstep` program.

#include "cli/duration.hpp"
#include "cli/table.hpp"
#include "cli/terminal.hpp"

#include <gtest/gtest.h>

#include <chrono>

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

TEST(cli_terminal, lets_nothing_through_that_a_terminal_obeys) {
    EXPECT_EQ(printable("plain, \u00e4 and \u4e2d"), "plain, \u00e4 and \u4e2d");
    EXPECT_EQ(printable("\033[31m\n\x7f"), "\\x1B[31m\\x0A\\x7F");
    EXPECT_EQ(printable("\xff\xc3"), "\\xFF\\xC3");
    EXPECT_EQ(printable("a\u202eb"), "a\\xE2\\x80\\xAEb") << "turns the direction of writing";
    EXPECT_EQ(printable("\u009b31m"), "\\xC2\\x9B31m") << "a terminal's other escape";
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

}  // namespace
}  // namespace lockstep::cli
