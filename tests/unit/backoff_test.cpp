#include "base/backoff.hpp"

#include <gtest/gtest.h>

#include <set>

namespace lockstep::base {
namespace {

using namespace std::chrono_literals;

TEST(backoff, tries_at_once_then_doubles_up_to_the_longest) {
    for (int round = 0; round < 200; ++round) {
        backoff pause{20ms, 100ms};
        EXPECT_EQ(pause.next(), 0ms);
        for (auto const full : {20ms, 40ms, 80ms, 100ms, 100ms, 100ms}) {
            auto const next = pause.next();
            EXPECT_GE(next, full / 2);
            EXPECT_LE(next, full);
        }
    }
}

TEST(backoff, starts_over_after_a_reset) {
    backoff pause{20ms, 2s};
    for (int i = 0; i < 10; ++i) pause.next();
    pause.reset();
    EXPECT_EQ(pause.next(), 0ms);
    EXPECT_LE(pause.next(), 20ms);
}

TEST(backoff, scatters_its_pauses) {
    std::set<backoff::duration> seen;
    for (int i = 0; i < 100; ++i) {
        backoff pause{1s, 1s};
        pause.next();
        seen.insert(pause.next());
    }
    EXPECT_GT(seen.size(), 90U);
}

TEST(backoff, is_never_a_busy_loop_and_survives_odd_bounds) {
    backoff none{0ms, 0ms};
    none.next();
    for (int i = 0; i < 100; ++i) EXPECT_GE(none.next(), 500us);
    backoff huge{1h, std::chrono::microseconds::max()};
    for (int i = 0; i < 100; ++i) EXPECT_GE(huge.next(), 0h);
    EXPECT_GE(huge.next(), std::chrono::microseconds::max() / 2);
}

}  // namespace
}  // namespace lockstep::base
