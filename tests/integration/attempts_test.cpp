// Attempts instead of a queue: how many, and with what pauses between them, as the server sees them.
#include <lockstep/mutex.hpp>

#include "lease_support.hpp"
#include "support/contract.hpp"
#include "support/monitor.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

namespace lockstep::test {
namespace {

class attempts_contract : public contract {
protected:
    attempts_contract() { server.must({"SCRIPT", "LOAD", std::string{scripts::lock_acquire.text}}); }

    /// When `b` asked, by the server's clock.
    std::vector<std::chrono::microseconds> tries() {
        return watch.times_of(scripts::lock_acquire.sha1, "lockstep:{name}:lock");
    }
    std::vector<std::chrono::microseconds> pauses() {
        auto const all = tries();
        std::vector<std::chrono::microseconds> between;
        for (std::size_t i = 1; i < all.size(); ++i) between.push_back(all[i] - all[i - 1]);
        return between;
    }

    lease held = mutex{a, "name"}.acquire();
    monitor watch{server};
};
INSTANTIATE_TEST_SUITE_P(standalone, attempts_contract, in_both_forms(topology::standalone), form_name);

TEST_P(attempts_contract, are_as_many_as_it_is_told_to_make) {
    for (unsigned const count : {1U, 2U, 7U}) {
        auto const before = tries().size();
        mutex of_b{b, "name", {.attempts = count, .retry_delay = 5ms, .retry_jitter = 5ms}};
        EXPECT_EQ(ending_of([&] { static_cast<void>(acquire(b, of_b)); }).reason, errc::timeout);
        EXPECT_EQ(tries().size(), before + count);
        EXPECT_FALSE(try_acquire_for(b, of_b, 1h));
        EXPECT_EQ(tries().size(), before + 2 * count);
        EXPECT_FALSE(try_acquire(b, of_b));
        EXPECT_EQ(tries().size(), before + 2 * count + 1) << "always one";
    }
    EXPECT_EQ(waiting_at(server, "name"), 0) << "without a place in the queue";
}

TEST_P(attempts_contract, end_with_the_one_that_gets_it) {
    mutex of_b{b, "name", {.attempts = 1'000'000, .retry_delay = 5ms, .retry_jitter = 0ms}};
    begun next{of_b.async_acquire()};
    ASSERT_TRUE(eventually([&] { return tries().size() >= 3; }));
    held.release();
    EXPECT_TRUE(next.get().valid());
    auto const seen = tries().size();
    b.command("PING");
    EXPECT_EQ(tries().size(), seen);
}

TEST_P(attempts_contract, end_with_the_time_that_there_is) {
    mutex of_b{b, "name", {.wait_limit = 100ms, .attempts = 1'000'000, .retry_delay = 70ms, .retry_jitter = 0ms}};
    EXPECT_FALSE(try_acquire_for(b, of_b, 100ms));
    EXPECT_LE(tries().size(), 3U) << "the second begins before the end; a pause may be a little shorter on a busy machine";
    EXPECT_EQ(ending_of([&] { static_cast<void>(acquire(b, of_b)); }).reason, errc::timeout);
    EXPECT_LE(tries().size(), 6U);
}

TEST_P(attempts_contract, have_a_pause_between_them) {
    mutex of_b{b, "name", {.attempts = 5, .retry_delay = 100ms, .retry_jitter = 0ms}};
    EXPECT_EQ(ending_of([&] { static_cast<void>(acquire(b, of_b)); }).reason, errc::timeout);
    ASSERT_EQ(pauses().size(), 4U);
    for (auto const one : pauses()) EXPECT_GE(one, 99ms);
}

TEST_P(attempts_contract, have_pauses_that_are_drawn) {
    mutex of_b{b, "name", {.attempts = 21, .retry_delay = 100ms, .retry_jitter = 80ms}};
    EXPECT_EQ(ending_of([&] { static_cast<void>(acquire(b, of_b)); }).reason, errc::timeout);
    ASSERT_EQ(pauses().size(), 20U);
    auto const [least, most] = std::ranges::minmax(pauses());
    EXPECT_GE(least, 19ms);
    EXPECT_LT(least, 100ms) << "from both sides of the delay";
    EXPECT_GT(most, 100ms);
}

}  // namespace
}  // namespace lockstep::test
