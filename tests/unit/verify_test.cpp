// verify() on histories that were doctored: it must find what is wrong, and nothing else.
#include <lockstep/monitor.hpp>

#include <gtest/gtest.h>

namespace {

using lockstep::history_entry;
using std::chrono::milliseconds;

history_entry entry(std::string what, std::string hold, std::uint64_t fence, int at_ms, std::string use = "owner", std::string kind = "lock") {
    history_entry one;
    one.what = std::move(what);
    one.kind = std::move(kind);
    one.use = std::move(use);
    one.name = "x";
    one.hold = std::move(hold);
    one.owner = one.hold;
    one.fence = fence;
    one.at = std::chrono::system_clock::time_point{milliseconds{1'000'000 + at_ms}};
    return one;
}

TEST(verify, finds_nothing_where_one_follows_the_other) {
    EXPECT_TRUE(lockstep::verify({}).empty());
    EXPECT_TRUE(lockstep::verify({entry("acquired", "a.1", 10, 0), entry("released", "a.1", 10, 100), entry("acquired", "b.1", 20, 100),
                                  entry("released", "b.1", 20, 200)}).empty());
}

TEST(verify, finds_two_that_had_it_at_once) {
    auto const found = lockstep::verify({entry("acquired", "a.1", 10, 0), entry("acquired", "b.1", 20, 100), entry("released", "a.1", 10, 300),
                                         entry("released", "b.1", 20, 400)});
    ASSERT_EQ(found.size(), 1U);
    EXPECT_EQ(found[0].what, "overlap");
    EXPECT_EQ(found[0].text, "b.1 got it 200 ms before a.1 let go");
}

TEST(verify, finds_one_that_overlaps_with_an_earlier_than_the_last) {
    auto const found = lockstep::verify({entry("acquired", "a.1", 10, 0), entry("acquired", "b.1", 20, 400), entry("released", "b.1", 20, 450),
                                         entry("acquired", "c.1", 30, 500), entry("released", "c.1", 30, 550), entry("released", "a.1", 10, 900)});
    EXPECT_EQ(found.size(), 2U);
}

TEST(verify, finds_a_fence_that_does_not_grow) {
    auto const found = lockstep::verify({entry("acquired", "a.1", 20, 0), entry("released", "a.1", 20, 50), entry("acquired", "b.1", 20, 100),
                                         entry("released", "b.1", 20, 150)});
    ASSERT_EQ(found.size(), 1U);
    EXPECT_EQ(found[0].what, "fence");
}

TEST(verify, lets_readers_and_permits_be_together_but_no_writer_beside_a_reader) {
    auto const pair = [](std::string const& kind, std::string const& first, std::string const& second) {
        return lockstep::verify({entry("acquired", "a.1", 10, 0, first, kind), entry("acquired", "b.1", 20, 100, second, kind),
                                 entry("released", "a.1", 10, 300, first, kind), entry("released", "b.1", 20, 400, second, kind)})
            .size();
    };
    EXPECT_EQ(pair("shared", "reader", "reader"), 0U);
    EXPECT_EQ(pair("semaphore", "permits", "permits"), 0U);
    EXPECT_EQ(pair("shared", "reader", "writer"), 1U);
    EXPECT_EQ(pair("shared", "writer", "reader"), 1U);
    EXPECT_EQ(pair("recursive", "owner", "owner"), 1U);
}

TEST(verify, wants_growing_fences_of_permits_too_and_says_what_is_missing) {
    auto records = std::vector{entry("acquired", "a.1", 20, 0, "permits", "semaphore"), entry("acquired", "b.1", 20, 100, "permits", "semaphore")};
    ASSERT_EQ(lockstep::verify(records).size(), 1U);
    EXPECT_EQ(lockstep::verify(records)[0].what, "fence");
    records.pop_back();
    records[0].missing = 7;
    ASSERT_EQ(lockstep::verify(records).size(), 1U);
    EXPECT_EQ(lockstep::verify(records)[0].what, "missing");
}

TEST(verify, takes_re_entries_for_what_they_are) {
    EXPECT_TRUE(lockstep::verify({entry("acquired", "a.1", 10, 0, "owner", "recursive"), entry("acquired", "a.2", 10, 100, "owner", "recursive"),
                                  entry("released", "a.2", 10, 200, "owner", "recursive"), entry("released", "a.1", 10, 300, "owner", "recursive")})
                    .empty());
}

TEST(verify, does_not_blame_one_that_lost_it_and_learned_that_late) {
    EXPECT_TRUE(lockstep::verify({entry("acquired", "a.1", 10, 0), entry("acquired", "b.1", 20, 500), entry("lost", "a.1", 10, 900),
                                  entry("released", "b.1", 20, 1'000)}).empty());
}

}  // namespace
