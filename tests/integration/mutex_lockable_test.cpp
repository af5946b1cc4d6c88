// A mutex under the guards of the standard library, for threads.
#include <lockstep/mutex.hpp>

#include "lease_support.hpp"

#include <gtest/gtest.h>

#include <mutex>
#include <thread>

namespace lockstep::test {
namespace {

class mutex_as_lockable : public testing::Test {
protected:
    redis_server server;
    client by{server.url()};
    client other{server.url()};
    mutex here{by, "name"};
    mutex there{other, "name"};
};

TEST_F(mutex_as_lockable, works_with_the_guards_of_the_standard_library) {
    {
        std::scoped_lock const guard{here};
        EXPECT_GT(here.fence(), 0U);
        EXPECT_FALSE(here.stop_token().stop_requested());
        EXPECT_FALSE(there.try_lock());
        EXPECT_FALSE(there.try_lock_for(10ms));
        EXPECT_FALSE(there.try_lock_until(std::chrono::system_clock::now() + 10ms));
    }
    EXPECT_THROW(static_cast<void>(here.fence()), not_held_error);
    std::unique_lock guard{there, std::defer_lock};
    EXPECT_TRUE(guard.try_lock_for(5s));
    guard.unlock();
    mutex second{by, "second"};
    std::scoped_lock const both{here, second};
    EXPECT_FALSE(there.try_lock());
}

TEST_F(mutex_as_lockable, belongs_to_the_thread_that_locked_it) {
    here.lock();
    EXPECT_EQ(ending_of([&] { here.lock(); }).reason, errc::would_deadlock);
    std::thread{[&] {
        here.unlock();  // not its own
        EXPECT_FALSE(here.try_lock());
    }}.join();
    EXPECT_FALSE(there.try_lock());
    here.unlock();
    EXPECT_TRUE(there.try_lock());
    here.unlock();  // nothing
    EXPECT_FALSE(here.try_lock());
    there.unlock();
}

TEST_F(mutex_as_lockable, does_not_unlock_its_successor_after_a_loss) {
    mutex brief{by, "name", {.ttl = 50ms, .renew = false}};
    brief.lock();
    there.lock();
    brief.unlock();
    EXPECT_FALSE(here.try_lock());
    there.unlock();
}

TEST_F(mutex_as_lockable, refuses_to_block_the_io_thread) {
    begun on_io{in_turn_of(by, [&] { return ending_of([&] { here.lock(); }).reason; })};
    EXPECT_EQ(on_io.get(), errc::would_deadlock);
}

}  // namespace
}  // namespace lockstep::test
