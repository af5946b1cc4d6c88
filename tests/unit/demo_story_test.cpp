// The demo's judge on lines that were made up: it must see what is wrong, in whatever order they come.
#include "demo/story.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace {

using lockstep::demo::story;

std::string line(int ms, std::string const& what, int fence, std::string const& use = "owner") {
    return fmt::format(R"({}000000 {{"what":"{}","kind":"lock","use":"{}","name":"x","hold":"h.{}","fence":"{}"}})", ms, what, use, fence, fence);
}

story::clock::time_point at(int ms) { return story::clock::time_point{std::chrono::milliseconds{ms}}; }

TEST(demo_story, is_content_when_turns_follow_one_another_in_whatever_order_they_are_told) {
    story what;
    EXPECT_TRUE(what.said("cyd", line(30, "acquired", 8)));
    EXPECT_TRUE(what.said("ada", line(10, "acquired", 6)));
    EXPECT_TRUE(what.said("cyd", line(39, "released", 8)));
    EXPECT_TRUE(what.said("bob", line(20, "acquired", 7)));
    EXPECT_TRUE(what.said("ada", line(19, "released", 6)));
    EXPECT_TRUE(what.said("bob", line(29, "released", 7)));
    EXPECT_EQ(what.violations(), 0U);
    EXPECT_EQ(what.names().at("x").acquisitions, 3U);
}

TEST(demo_story, sees_two_that_had_it_at_once) {
    story what;
    what.said("ada", line(10, "acquired", 6));
    what.said("bob", line(20, "acquired", 7));
    EXPECT_EQ(what.violations(), 0U) << "nothing is known yet";
    what.said("ada", line(25, "released", 6));
    EXPECT_EQ(what.violations(), 1U);
}

TEST(demo_story, sees_a_fence_that_does_not_grow) {
    story what;
    what.said("ada", line(10, "acquired", 7));
    what.said("ada", line(15, "released", 7));
    what.said("bob", line(20, "acquired", 6));
    EXPECT_EQ(what.violations(), 1U);
    what.said("cyd", line(30, "acquired", 6));
    EXPECT_GE(what.violations(), 2U) << "nor one that is given twice";
}

TEST(demo_story, lets_readers_be_together) {
    story what;
    what.said("ada", line(10, "acquired", 6, "reader"));
    what.said("bob", line(11, "acquired", 7, "reader"));
    what.said("ada", line(25, "released", 6, "reader"));
    EXPECT_EQ(what.violations(), 0U);
}

TEST(demo_story, tells_who_took_over_from_the_dead_and_after_how_long) {
    story what;
    what.said("ada", line(10, "acquired", 6));
    what.killed("ada", at(100));
    what.said("bob", line(2'050, "acquired", 9));
    ASSERT_EQ(what.takeovers().size(), 1U);
    EXPECT_EQ(what.takeovers()[0].by, "bob");
    EXPECT_EQ(what.takeovers()[0].after, std::chrono::milliseconds{1'950});
    EXPECT_EQ(what.kills(), 1U);
    EXPECT_EQ(what.violations(), 0U);
}

TEST(demo_story, ignores_what_is_no_line_of_a_worker) {
    story what;
    for (auto const* const text : {"", "hello", "12", "12 ", "12 {}", "12 []", "x {\"what\":\"acquired\",\"name\":\"x\"}"}) EXPECT_FALSE(what.said("ada", text)) << text;
}

}  // namespace
