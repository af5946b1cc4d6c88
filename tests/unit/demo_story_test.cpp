// The demo's judge on lines that were made up: it must see what is wrong, in whatever order they come.
#include "demo/guide.hpp"
#include "demo/story.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>
#include <string>
#include <vector>

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

TEST(demo_story, explains_in_plain_english_what_a_kill_means) {
    story told;
    told.started("ada", "x", at(0));
    told.started("bob", "x", at(0));
    told.said("bob", line(5, "queued", 0));
    told.said("ada", line(10, "acquired", 6));
    told.killed("ada", at(100));
    told.said("bob", line(2'050, "acquired", 9));
    told.killed("bob", at(2'060));
    told.started("ada", "x", at(3'000));
    std::vector<std::string> texts;
    for (auto const& event : told.events()) texts.push_back(event.text);
    EXPECT_THAT(texts, testing::ElementsAre("ada started, and uses 'x'", "bob started, and uses 'x'",
                                            "ada was killed holding the lock 'x': free within its ttl, 2 s",
                                            "bob took over the lock 'x' 1.9 s after ada was killed; fencing token 9",
                                            "bob was killed holding the lock 'x': free within its ttl, 2 s", "ada was started again"));
}

TEST(demo_story, says_that_a_killed_worker_waited_or_held_nothing) {
    story told;
    told.said("ada", line(10, "queued", 0));
    told.killed("ada", at(20));
    told.killed("bob", at(30));
    EXPECT_EQ(told.events().at(0).text, "ada was killed waiting for the lock 'x'");
    EXPECT_EQ(told.events().at(1).text, "bob was killed holding nothing");
}

TEST(demo_story, forgets_that_a_worker_waits_at_a_barrier_that_it_has_passed_or_found_broken) {
    auto const at_barrier = [](int ms, std::string const& what) {
        return fmt::format(R"({}000000 {{"what":"{}","kind":"barrier","name":"round"}})", ms, what);
    };
    story told;
    for (auto const* const result : {"met", "broken"}) {
        told.said("ada", at_barrier(1, "queued"));
        EXPECT_EQ(told.names().at("round").waiting.size(), 1U);
        told.said("ada", at_barrier(2, result));
        EXPECT_TRUE(told.names().at("round").waiting.empty()) << result;
    }
}

TEST(demo_guide, introduces_the_demo_in_lines_that_fit_a_terminal) {
    using namespace lockstep::demo;
    for (auto const& text : introduction(12, std::chrono::seconds{5})) EXPECT_LE(text.size(), 80U) << text;
    page_access const access{"http://127.0.0.1:65535/#code=" + std::string(32, 'c'), std::string(32, 't'), std::chrono::minutes{5}};
    auto const served = page_lines(web_page::served, access);
    for (auto const& text : served) EXPECT_LE(text.size(), 80U) << text;
    EXPECT_THAT(served, testing::ElementsAre("Web page: " + access.link, testing::AllOf(testing::HasSubstr("5 min"), testing::EndsWith(": " + access.token))));
    EXPECT_THAT(page_lines(web_page::not_built, {}), testing::ElementsAre(testing::HasSubstr("built without it")));
    EXPECT_THAT(page_lines(web_page::declined, {}), testing::ElementsAre(testing::HasSubstr("--no-dashboard")));
}

TEST(demo_guide, ends_with_commands_that_can_be_pasted) {
    auto const text = lockstep::demo::next_steps("./bin/lockstep", lockstep::demo::web_page::served);
    for (auto const* const command : {"run report -- sleep 30 ", "ls ", "why report ", "dashboard "})
        EXPECT_THAT(text, testing::HasSubstr(std::string{"\n  ./bin/lockstep "} + command));
    auto const without_page = lockstep::demo::next_steps("build/release/bin/lockstep", lockstep::demo::web_page::not_built);
    EXPECT_THAT(without_page, testing::Not(testing::HasSubstr("dashboard")));
    std::istringstream lines{without_page};
    for (std::string written; std::getline(lines, written);) EXPECT_LE(written.size(), 80U) << written;
}

}  // namespace
