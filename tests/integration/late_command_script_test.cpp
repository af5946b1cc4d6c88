// Commands that set something and arrive after others of the same hold or session: they change nothing.

#include "pool_script_support.hpp"

namespace lockstep::test {
namespace {

constexpr std::int64_t all = 1 << 30;

class late_pool_command : public pool_script_fixture {};

TEST_F(late_pool_command, a_downgrade_does_not_make_a_reader_of_a_writer) {
    ASSERT_EQ(pool.acquire("a.1", {.amount = all, .count = std::to_string(all)}).word, "granted");
    EXPECT_EQ(pool.change("a.1", 1, 1).word, "changed");
    auto const upgraded = pool.change("a.1", all, 2);
    EXPECT_EQ(upgraded.word, "changed");
    EXPECT_EQ(pool.change("a.1", 1, 1).word, "older");
    EXPECT_EQ(pool.try_acquire("b.1").word, "busy") << "no reader beside it";
    EXPECT_EQ(pool.change("a.1", all, 2).fence, upgraded.fence) << "the same again is answered alike";
}

TEST_F(late_pool_command, a_change_that_was_refused_is_refused_again_and_a_later_one_is_not) {
    pool.create(2);
    for (auto const* const hold : {"a.1", "b.1"}) ASSERT_EQ(pool.acquire(hold).word, "granted");
    EXPECT_EQ(pool.change("a.1", 2, 1).word, "busy");
    pool.release("b.1");
    EXPECT_EQ(pool.change("a.1", 2, 1).word, "busy") << "it did not get it, whatever came free since";
    EXPECT_EQ(pool.change("a.1", 2, 2).word, "changed");
}

TEST_F(late_pool_command, a_renewal_and_a_change_share_their_numbers) {
    pool.create(3);
    ASSERT_EQ(pool.acquire("a.1").word, "granted");
    EXPECT_EQ(pool.change("a.1", 2, 1).word, "changed");
    EXPECT_EQ(pool.renew("a.1", 600'000, 2).word, "renewed");
    EXPECT_EQ(pool.change("a.1", 2, 1).word, "older") << "or it would shorten what was renewed";
    EXPECT_GT(pool.renew("a.1", 1'000, 2).left, 599'000);
}

TEST_F(late_pool_command, clearing_does_not_swallow_a_signal_that_was_set_afterwards) {
    EXPECT_EQ(pool.add(1, "s", 1).word, "added");
    EXPECT_EQ(pool.clear(pool.ever, 5).old, 1);
    EXPECT_EQ(pool.add(1, "s", 2).word, "added");
    EXPECT_EQ(pool.clear(pool.ever, 5).old, 1) << "the answer is the same";
    EXPECT_EQ(pool.read().available, 1);
    EXPECT_EQ(pool.wait("a.1").word, "granted");
}

TEST_F(late_pool_command, a_resize_does_not_undo_the_one_after_it) {
    pool.create(5);
    EXPECT_EQ(pool.resize_once(1, "", 1).elements.at(1).integer, 5);
    EXPECT_EQ(pool.resize_once(10, "", 2).elements.at(1).integer, 1);
    EXPECT_EQ(pool.resize_once(1, "", 1).elements.at(0).text, "resized");
    EXPECT_EQ(pool.read().count, 10);
}

TEST_F(late_pool_command, one_that_comes_after_its_deadline_says_so) {
    pool.create(1);
    ASSERT_EQ(pool.acquire("a.1").word, "granted");
    EXPECT_EQ(pool.renew("a.1", 1'000, 1, 5).word, "late");
    EXPECT_EQ(pool.change("a.1", 0, 1, 5).word, "late");
    EXPECT_EQ(pool.clear(5).word, "late");
    EXPECT_EQ(pool.resize(3, 5).word, "late");
    EXPECT_EQ(pool.read().count, 1);
}

}  // namespace
}  // namespace lockstep::test
