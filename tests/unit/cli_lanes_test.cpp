// The drawing of `lockstep history`.
#include "cli/lanes.hpp"

#include <gtest/gtest.h>

#include <algorithm>

namespace {

using lockstep::history_entry;
using std::chrono::milliseconds;

history_entry entry(std::string what, std::string owner, std::uint64_t fence, int at_ms) {
    history_entry one;
    one.what = std::move(what);
    one.kind = "lock";
    one.use = "owner";
    one.name = "x";
    one.hold = owner + ".1";
    one.owner = std::move(owner);
    one.fence = fence;
    one.at = std::chrono::system_clock::time_point{milliseconds{1'000'000 + at_ms}};
    return one;
}

std::string lane(std::string const& text, char owner) {
    auto const begin = text.find(std::string{owner} + "    ");
    return text.substr(begin, text.find('\n', begin) - begin);
}

TEST(cli_lanes, end_where_another_has_it_alone_when_the_owner_died_without_a_word) {
    auto const text = lockstep::cli::lanes({entry("acquired", "a", 1, 0), entry("acquired", "b", 2, 500), entry("released", "b", 2, 1000)}, 60, false);
    EXPECT_NEAR(static_cast<double>(std::ranges::count(lane(text, 'a'), '#')), 24, 2) << text;
    EXPECT_EQ(std::ranges::count(lane(text, 'a'), '!'), 1) << text;
    EXPECT_EQ(std::ranges::count(lane(text, 'b'), '!'), 0) << text;
}

TEST(cli_lanes, show_an_overlap_that_was_recorded) {
    auto const text = lockstep::cli::lanes({entry("acquired", "a", 1, 0), entry("acquired", "b", 2, 500), entry("released", "a", 1, 750), entry("released", "b", 2, 1000)}, 60, false);
    EXPECT_NEAR(static_cast<double>(std::ranges::count(lane(text, 'a'), '#')), 38, 2) << text;
    EXPECT_EQ(std::ranges::count(lane(text, 'a'), '!'), 0) << text;
}

}  // namespace
