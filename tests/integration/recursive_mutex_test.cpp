// A mutex whose owner may take it again: by thread, and by a name of one's own in both forms.
#include <lockstep/recursive_mutex.hpp>

#include "lease_support.hpp"
#include "support/contract.hpp"

#include <mutex>
#include <thread>

namespace lockstep::test {
namespace {

class recursive_mutex_contract : public contract {
protected:
    int waiting() { return static_cast<int>(pool_numbers(server, "lockstep:{name}:recursive").waiting); }

    recursive_mutex of_a{a, "name"};
    recursive_mutex of_b{b, "name"};
};
LOCKSTEP_CONTRACT(recursive_mutex_contract);

TEST_P(recursive_mutex_contract, lets_its_owner_in_again_with_the_same_fence) {
    auto first = acquire(a, of_a.as("order-7"));
    auto second = acquire(a, of_a.as("order-7"));
    auto third = acquire(b, of_b.as("order-7"));
    EXPECT_EQ(second.fence(), first.fence());
    EXPECT_EQ(third.fence(), first.fence()) << "also in another process";
    EXPECT_FALSE(try_acquire(b, of_b.as("order-8")));
    auto const fence = first.fence();
    first.release();
    second.release();
    EXPECT_FALSE(try_acquire(b, of_b.as("order-8"))) << "one release per acquire";
    third.release();
    auto other = try_acquire(b, of_b.as("order-8"));
    ASSERT_TRUE(other);
    EXPECT_GT(other->fence(), fence);
}

TEST_P(recursive_mutex_contract, goes_to_another_owner_when_the_last_hold_ends) {
    auto first = acquire(a, of_a.as("x"));
    auto second = acquire(a, of_a.as("x"));
    begun next{of_b.as("y").async_acquire()};
    ASSERT_TRUE(eventually([&] { return waiting() == 1; }));
    auto again = acquire(a, of_a.as("x"));
    first.release();
    again.release();
    EXPECT_FALSE(next.done());
    second.release();
    EXPECT_TRUE(next.get().valid());
}

TEST_P(recursive_mutex_contract, refuses_bad_owners) {
    for (std::string const& bad : {std::string{}, std::string{"a b"}, std::string(257, 'x'), std::string{"a\nb"}}) {
        EXPECT_EQ(ending_of([&] { static_cast<void>(of_a.as(bad)); }).reason, errc::invalid_argument) << bad;
    }
}

TEST(recursive_mutex_by_thread, counts_locks_and_unlocks_of_a_thread) {
    redis_server server;
    client by{server.url()};
    recursive_mutex mutex{by, "name"};
    std::scoped_lock const outer{mutex};
    auto const fence = mutex.fence();
    {
        std::scoped_lock const inner{mutex};
        EXPECT_EQ(mutex.fence(), fence);
        auto const deeper = mutex.acquire();
        EXPECT_EQ(deeper.fence(), fence);
    }
    std::thread{[&] {
        EXPECT_FALSE(mutex.try_lock());
        mutex.unlock();  // not its own
        EXPECT_FALSE(mutex.try_acquire());
        EXPECT_FALSE(mutex.try_lock_for(10ms));
    }}.join();
    mutex.unlock();
    std::thread{[&] {
        EXPECT_TRUE(mutex.try_lock_for(5s));
        mutex.unlock();
    }}.join();
    mutex.lock();  // for the guard
}

}  // namespace
}  // namespace lockstep::test
