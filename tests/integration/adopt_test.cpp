// What a process detaches and another adopts: permits, readers, writers and re-entered locks, in both forms on every topology. A mutex's
// lease: mutex_test.cpp.
#include <lockstep/counting_semaphore.hpp>
#include <lockstep/recursive_mutex.hpp>
#include <lockstep/shared_mutex.hpp>

#include "lease_support.hpp"
#include "support/contract.hpp"

#include <gtest/gtest.h>

namespace lockstep::test {
namespace {

class adopt_contract : public contract {
protected:
    /// From `a` to `b`, where it is a lease like any, once.
    lease pass(lease& held) {
        auto const fence = held.fence();
        auto const token = run(
            a, [&] { return held.detach(); }, [&] { return held.async_detach(); });
        EXPECT_FALSE(held);
        auto adopted = run(
            b, [&] { return lease::adopt(b, token); }, [&] { return lease::async_adopt(b, token); });
        EXPECT_TRUE(adopted.valid());
        EXPECT_EQ(adopted.name(), "name");
        EXPECT_GE(adopted.fence(), fence);
        EXPECT_EQ(ending_of([&] { static_cast<void>(lease::adopt(a, token)); }).reason, errc::lease_lost)
            << "a token works once";
        adopted.extend(60s);
        EXPECT_GT(adopted.remaining(), 30s);
        return adopted;
    }
};
LOCKSTEP_CONTRACT(adopt_contract);

TEST_P(adopt_contract, permits) {
    auto of_a = counting_semaphore::create(a, "name", 3);
    auto two = acquire(a, of_a, 2);
    auto adopted = pass(two);
    EXPECT_EQ(of_a.available(), 1) << "both are there";
    EXPECT_FALSE(try_acquire(a, of_a, 2));
    release(b, adopted);
    EXPECT_EQ(of_a.available(), 3);
}

TEST_P(adopt_contract, a_reader) {
    shared_mutex of_a{a, "name"};
    auto reading = of_a.acquire_shared();
    auto other = of_a.acquire_shared();
    auto adopted = pass(reading);
    release(a, other);
    EXPECT_FALSE(try_acquire(a, of_a)) << "it reads there";
    auto more = of_a.try_acquire_shared();
    ASSERT_TRUE(more);
    release(a, *more);
    auto tried = shared_mutex{b, "name"}.try_upgrade(std::move(adopted));
    EXPECT_TRUE(tried.done) << "the only reader";
    EXPECT_FALSE(of_a.try_acquire_shared());
    release(b, tried.held);
    EXPECT_TRUE(try_acquire(a, of_a));
}

TEST_P(adopt_contract, a_writer) {
    shared_mutex of_a{a, "name"};
    auto writing = acquire(a, of_a);
    auto adopted = pass(writing);
    EXPECT_FALSE(of_a.try_acquire_shared()) << "it writes there";
    auto reading = shared_mutex{b, "name"}.downgrade(std::move(adopted));
    EXPECT_TRUE(of_a.try_acquire_shared());
    EXPECT_FALSE(try_acquire(a, of_a));
    release(b, reading);
    EXPECT_TRUE(try_acquire(a, of_a));
}

TEST_P(adopt_contract, what_its_owner_has_taken_again) {
    recursive_mutex of_a{a, "name"};
    auto first = acquire(a, of_a.as("x"));
    auto second = acquire(a, of_a.as("x"));
    auto adopted = pass(second);
    release(a, first);
    EXPECT_FALSE(try_acquire(a, of_a.as("y"))) << "held there";
    auto again = acquire(a, of_a.as("x"));
    EXPECT_EQ(again.fence(), adopted.fence()) << "by the same owner";
    release(a, again);
    release(b, adopted);
    EXPECT_TRUE(try_acquire(a, of_a.as("y")));
}

// Nobody renews it meanwhile, and nobody adopts it.
TEST_P(adopt_contract, what_has_run_out_is_refused) {
    auto of_a = counting_semaphore::create(a, "name", 1, {.lease = {.ttl = 200ms}});
    auto const token = acquire(a, of_a).detach();
    EXPECT_TRUE(try_acquire_for(a, of_a, 5s)) << "it comes back";
    EXPECT_EQ(ending_of([&] { static_cast<void>(lease::adopt(b, token)); }).reason, errc::lease_lost);
}

}  // namespace
}  // namespace lockstep::test
