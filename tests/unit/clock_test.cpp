#include "base/clock.hpp"

#include <gtest/gtest.h>

namespace lockstep::base {
namespace {

static_assert(std::chrono::is_clock_v<boot_clock>);

TEST(boot_clock, never_goes_back) {
    auto before = boot_clock::now();
    for (int i = 0; i < 1000; ++i) {
        auto const now = boot_clock::now();
        ASSERT_GE(now, before);
        before = now;
    }
}

// It counts the time asleep as well, so it can never be behind the clock that does not.
TEST(boot_clock, is_not_behind_the_steady_clock) {
    auto const steady = std::chrono::steady_clock::now().time_since_epoch();
    EXPECT_GE(boot_clock::now().time_since_epoch(), steady);
}

}  // namespace
}  // namespace lockstep::base
