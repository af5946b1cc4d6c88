// How the server counts the signals of an event once, however often they are sent, and what it remembers for that.

#include "pool_script_support.hpp"

#include <gtest/gtest.h>

#include <algorithm>

namespace {

using lockstep::test::sessions_in;
using pool_script_counting = lockstep::test::pool_script_fixture;

TEST_F(pool_script_counting, counts_each_of_thousands_of_signals_once_that_are_in_flight_and_sent_again) {
    for (int const signals : {1500, 5000}) {
        for (int i = 0; i < 2 * signals; ++i)
            ASSERT_EQ(pool.add(1, pool.text(signals) + "-" + pool.text(i % signals), 1).word, "added");
        EXPECT_EQ(pool.clear().old, signals);
    }
}

TEST_F(pool_script_counting, forgets_sessions_that_are_idle_for_a_minute) {
    for (int i = 0; i < 1500; ++i) pool.add(1, "s" + pool.text(i), 1);
    pool.pass(20'000);  // real time passes too, and much of it on a busy machine
    for (int i = 0; i < 100; ++i) pool.add(0, "t" + pool.text(i), 1);
    EXPECT_EQ(sessions_in(pool.hash()), 1600) << "all are young";
    pool.add(1, "s300", 2);
    pool.pass(41'000);
    for (int i = 0; i < 900; ++i) pool.add(0, "u", i);
    EXPECT_EQ(sessions_in(pool.hash()), 102) << "not all have to be new for that";
    for (int i = 0; i < 2000; ++i) pool.add(0, "v" + pool.text(i), 1);
    EXPECT_EQ(pool.read().available, 1501);
    pool.add(1, "s300", 2);
    pool.add(1, "t99", 1);
    EXPECT_EQ(pool.read().available, 1501) << "they were in use";
    pool.add(1, "s299", 1);
    pool.add(1, "s1499", 1);
    EXPECT_EQ(pool.read().available, 1503) << "they were not";
}

TEST_F(pool_script_counting, does_not_forget_the_session_that_calls) {
    for (int i = 0; i < 1500; ++i) pool.add(1, "s" + pool.text(i), 1);
    pool.pass(61'000);
    auto fields = pool.hash();
    auto const first = fields["r" + fields["rf"]];  // of those that can go
    for (int i = 0; i < 2; ++i) {
        pool.add(1, first, 2);
        EXPECT_EQ(pool.read().available, 1501);
    }
}

TEST_F(pool_script_counting, remembers_no_more_sessions_than_came_in_two_minutes_and_all_of_the_last_one) {
    int most = 0;
    pool.keep_own_time();
    for (int i = 0; i < 9000; ++i) {
        pool.pass(40);
        pool.add(1, "s" + pool.text(i), 1);
        pool.add(1, "s" + pool.text(std::max(0, i - i % 1400)), 1);
        if (i % 50 == 0) most = std::max(most, sessions_in(pool.hash()));
    }
    EXPECT_EQ(pool.read().available, 9000);
    EXPECT_GE(most, 1500);
    EXPECT_LE(most, 3010);
    pool.pass(60'000);
    for (int i = 0; i < 3000; ++i) pool.add(0, "after", i);
    EXPECT_EQ(sessions_in(pool.hash()), 1);
}

TEST_F(pool_script_counting, counts_once_though_the_clock_is_set_back_and_forgets_all_the_same) {
    auto const send_all = [&] {
        for (int i = 0; i < 1500; ++i) pool.add(1, "s" + pool.text(i), 1);
        return pool.read().available;
    };
    EXPECT_EQ(send_all(), 1500);
    pool.pass(-pool.hour);
    for (int i = 0; i < 1000; ++i) pool.add(0, "t" + pool.text(i), 1);
    EXPECT_EQ(send_all(), 1500);
    pool.pass(61'000);
    for (int i = 0; i < 2000; ++i) pool.add(0, "u", i);
    EXPECT_EQ(sessions_in(pool.hash()), 1);
}

TEST_F(pool_script_counting, knows_sequences_to_the_last_digit) {
    for (std::int64_t const sequence : {100'000'000'000'000, 100'000'000'000'001, 9'007'199'254'740'990, 9'007'199'254'740'991})
        for (int i = 0; i < 2; ++i) pool.add(1, "s", sequence);
    EXPECT_EQ(pool.read().available, 4);
}

TEST_F(pool_script_counting, says_whom_a_signal_was_offered_to) {
    EXPECT_EQ(pool.add(1, "s", 1).offered_to, "");
    for (auto const* const hold : {"a.1", "b.1", "c.1"}) pool.wait(hold);
    EXPECT_EQ(pool.add(2, "s", 2).offered_to, "b.1") << "a.1 has got the first one";
    EXPECT_EQ(pool.add(2, "s", 2).offered_to, "?") << "sent again";
}

}  // namespace
