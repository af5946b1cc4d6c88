// A mutex whose owner may take it again: by thread, and by a name of one's own in both forms.
#include <lockstep/recursive_mutex.hpp>

#include "lease_support.hpp"

#include <mutex>
#include <thread>

namespace lockstep::test {
namespace {

template <class Form>
class recursive_mutex_contract : public testing::Test {
protected:
    static lease acquire(client& by, recursive_mutex::owner of) {
        return Form::run(
            by, [&] { return of.acquire(); }, [&] { return of.async_acquire(); });
    }
    static std::optional<lease> try_acquire(client& by, recursive_mutex::owner of) {
        return Form::run(
            by, [&] { return of.try_acquire(); }, [&] { return of.async_try_acquire(); });
    }

    redis_server server;
    client a{server.url()};
    client b{server.url()};
    recursive_mutex of_a{a, "name"};
    recursive_mutex of_b{b, "name"};
};
TYPED_TEST_SUITE(recursive_mutex_contract, forms, form_names);

TYPED_TEST(recursive_mutex_contract, lets_its_owner_in_again_with_the_same_fence) {
    auto first = this->acquire(this->a, this->of_a.as("order-7"));
    auto second = this->acquire(this->a, this->of_a.as("order-7"));
    auto third = this->acquire(this->b, this->of_b.as("order-7"));
    EXPECT_EQ(second.fence(), first.fence());
    EXPECT_EQ(third.fence(), first.fence()) << "also in another process";
    EXPECT_FALSE(this->try_acquire(this->b, this->of_b.as("order-8")));
    auto const fence = first.fence();
    first.release();
    second.release();
    EXPECT_FALSE(this->try_acquire(this->b, this->of_b.as("order-8"))) << "one release per acquire";
    third.release();
    auto other = this->try_acquire(this->b, this->of_b.as("order-8"));
    ASSERT_TRUE(other);
    EXPECT_GT(other->fence(), fence);
}

TYPED_TEST(recursive_mutex_contract, goes_to_another_owner_when_the_last_hold_ends) {
    auto first = this->acquire(this->a, this->of_a.as("x"));
    auto second = this->acquire(this->a, this->of_a.as("x"));
    begun next{this->of_b.as("y").async_acquire()};
    ASSERT_TRUE(eventually([&] { return pool_numbers(this->server, "lockstep:{name}:recursive").waiting == 1; }));
    auto again = this->acquire(this->a, this->of_a.as("x"));
    first.release();
    again.release();
    EXPECT_FALSE(next.done());
    second.release();
    EXPECT_TRUE(next.get().valid());
}

TYPED_TEST(recursive_mutex_contract, refuses_bad_owners) {
    for (std::string const& bad : {std::string{}, std::string{"a b"}, std::string(257, 'x'), std::string{"a\nb"}}) {
        EXPECT_EQ(ending_of([&] { static_cast<void>(this->of_a.as(bad)); }).reason, errc::invalid_argument) << bad;
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
