#include "messaging/failure_throttle.hpp"
#include "messaging/repeated_log.hpp"

#include <gtest/gtest.h>

namespace lockstep::detail {
namespace {

using namespace std::chrono_literals;
using time_point = failure_throttle::time_point;

time_point const start = time_point{} + 1h;

/// Runs a worker whose handlers take no time and end as `succeeds(n)` says, for so long. How many items it took.
template <class Outcome>
int items_taken(failure_throttle& throttle, std::chrono::milliseconds time, Outcome succeeds, time_point from = start) {
    int taken = 0;
    for (auto now = from; now < from + time; now += 1ms) {
        if (throttle.delay(now) > 0ms) continue;
        if (succeeds(taken++)) throttle.succeeded(now);
        else throttle.failed(now);
    }
    return taken;
}

TEST(failure_throttle, does_not_delay_a_worker_that_succeeds) {
    failure_throttle throttle;
    EXPECT_EQ(items_taken(throttle, 10s, [](int) { return true; }), 10'000);
    EXPECT_FALSE(throttle.is_slow(start + 10s));
}

TEST(failure_throttle, lets_a_worker_that_always_fails_take_few_items) {
    failure_throttle throttle;
    EXPECT_LT(items_taken(throttle, 20s, [](int) { return false; }), 25);
    EXPECT_TRUE(throttle.is_slow(start + 20s));
    EXPECT_LE(throttle.delay(start + 20s), failure_throttle::max_delay);
}

TEST(failure_throttle, does_not_delay_a_worker_with_a_few_bad_items_among_good_ones) {
    failure_throttle throttle;
    EXPECT_EQ(items_taken(throttle, 10s, [](int item) { return item % 2 == 0; }), 10'000) << "every second one fails";
    throttle.succeeded(start + 10s);
    for (int n = 0; n < 5; ++n) throttle.failed(start + 10s);
    EXPECT_EQ(throttle.delay(start + 10s), 0ms) << "five in a row";
}

TEST(failure_throttle, delays_a_worker_of_whose_items_nine_of_ten_fail) {
    failure_throttle throttle;
    EXPECT_LT(items_taken(throttle, 60s, [](int item) { return item % 10 == 0; }), 200);
}

TEST(failure_throttle, recovers_after_a_few_successes) {
    failure_throttle throttle;
    items_taken(throttle, 60s, [](int) { return false; });
    auto const repaired = start + 60s;
    EXPECT_TRUE(throttle.is_slow(repaired));
    EXPECT_GT(items_taken(throttle, 10s, [](int) { return true; }, repaired), 4'000) << "of 10,000, so it lost less than 6 s";
    EXPECT_FALSE(throttle.is_slow(repaired + 10s));
}

TEST(failure_throttle, counts_failures_of_handlers_that_ran_at_the_same_time_as_one) {
    failure_throttle throttle;
    for (int n = 0; n < 1'000; ++n) throttle.failed(start);
    EXPECT_EQ(throttle.delay(start), failure_throttle::min_delay);
    EXPECT_EQ(throttle.delay(start + failure_throttle::min_delay), 0ms);
}

TEST(failure_throttle, forgets_failures_of_long_ago) {
    failure_throttle throttle;
    items_taken(throttle, 60s, [](int) { return false; });
    EXPECT_FALSE(throttle.is_slow(start + 60s + failure_throttle::memory));
    throttle.failed(start + 60s + failure_throttle::memory);
    EXPECT_EQ(throttle.delay(start + 60s + failure_throttle::memory), 0ms);
}

TEST(repeated_log, writes_the_first_event_and_then_one_line_for_all_of_an_interval) {
    repeated_log failures{20s};
    EXPECT_EQ(failures.add(start), 1U);
    EXPECT_EQ(failures.add(start + 1s), 0U);
    EXPECT_EQ(failures.add(start + 2s, 7), 0U);
    EXPECT_EQ(failures.add(start + 20s), 9U);
    EXPECT_EQ(failures.add(start + 21s), 0U);
    EXPECT_EQ(failures.add(start + 60s, 0), 1U) << "one is left to be told of";
    EXPECT_EQ(failures.add(start + 90s, 0), 0U);
}

}  // namespace
}  // namespace lockstep::detail
