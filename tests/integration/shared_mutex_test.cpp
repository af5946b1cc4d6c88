// Many readers or one writer, in both forms on every topology.
#include <lockstep/shared_mutex.hpp>

#include "lease_support.hpp"
#include "support/contract.hpp"

#include <shared_mutex>
#include <thread>

namespace lockstep::test {
namespace {

class shared_mutex_contract : public contract {
protected:
    lease write(client& by, shared_mutex& of) {
        return run(
            by, [&] { return of.acquire(); }, [&] { return of.async_acquire(); });
    }
    lease read(client& by, shared_mutex& of) {
        return run(
            by, [&] { return of.acquire_shared(); }, [&] { return of.async_acquire_shared(); });
    }
    std::optional<lease> try_write(client& by, shared_mutex& of) {
        return run(
            by, [&] { return of.try_acquire(); }, [&] { return of.async_try_acquire(); });
    }
    std::optional<lease> try_read(client& by, shared_mutex& of, std::chrono::milliseconds time = 0ms) {
        return run(
            by, [&] { return of.try_acquire_shared_for(time); }, [&] { return of.async_try_acquire_shared_for(time); });
    }
    shared_mutex::upgrade upgrade(client& by, shared_mutex& of, lease held) {
        return run(
            by, [&] { return of.try_upgrade(std::move(held)); }, [&] { return of.async_try_upgrade(std::move(held)); });
    }
    lease downgrade(client& by, shared_mutex& of, lease held) {
        return run(
            by, [&] { return of.downgrade(std::move(held)); }, [&] { return of.async_downgrade(std::move(held)); });
    }
    int waiting() { return static_cast<int>(pool_numbers(server, "lockstep:{name}:shared").waiting); }

    shared_mutex of_a{a, "name"};
    shared_mutex of_b{b, "name"};
};
LOCKSTEP_CONTRACT(shared_mutex_contract);

TEST_P(shared_mutex_contract, has_many_readers_or_one_writer) {
    auto first = read(a, of_a);
    auto second = read(b, of_b);
    EXPECT_GT(second.fence(), first.fence());
    EXPECT_FALSE(try_write(b, of_b));
    first.release();
    EXPECT_FALSE(try_write(a, of_a));
    second.release();
    auto writer = try_write(a, of_a);
    ASSERT_TRUE(writer);
    EXPECT_FALSE(try_read(b, of_b));
    EXPECT_FALSE(try_read(a, of_a, 20ms));
    writer->release();
    EXPECT_TRUE(try_read(b, of_b));
}

TEST_P(shared_mutex_contract, is_fair_between_readers_and_writers) {
    auto reading = read(a, of_a);
    begun writer{of_b.async_acquire()};
    ASSERT_TRUE(eventually([&] { return waiting() == 1; }));
    EXPECT_TRUE(eventually([&] { return !try_read(a, of_a); })) << "a waiting writer that can be told stops new readers";
    begun third{of_a.async_acquire_shared()};
    ASSERT_TRUE(eventually([&] { return waiting() == 2; }));
    begun fourth{of_b.async_acquire_shared()};
    ASSERT_TRUE(eventually([&] { return waiting() == 3; }));
    reading.release();
    auto writing = writer.get();
    EXPECT_FALSE(third.done());
    writing.release();
    auto one = third.get();
    auto other = fourth.get();
    EXPECT_TRUE(one.valid() && other.valid()) << "readers behind each other enter together";
}

TEST_P(shared_mutex_contract, turns_a_writer_into_a_reader_with_nobody_in_between) {
    auto writing = write(a, of_a);
    auto const fence = writing.fence();
    begun writer{of_b.async_acquire()};
    ASSERT_TRUE(eventually([&] { return waiting() == 1; }));
    auto reading = downgrade(a, of_a, std::move(writing));
    EXPECT_EQ(reading.fence(), fence);
    EXPECT_TRUE(reading.valid());
    EXPECT_FALSE(writer.done());
    EXPECT_EQ(pool_numbers(server, "lockstep:{name}:shared").available, (1 << 30) - 1);
    reading.release();
    EXPECT_GT(writer.get().fence(), fence);
}

TEST_P(shared_mutex_contract, turns_the_only_reader_into_the_writer_if_it_can) {
    auto reading = read(a, of_a);
    auto const fence = reading.fence();
    auto other = read(b, of_b);
    auto tried = upgrade(a, of_a, std::move(reading));
    EXPECT_FALSE(tried.done);
    EXPECT_TRUE(tried.held.valid()) << "still a reader";
    other.release();
    auto writing = upgrade(a, of_a, std::move(tried.held));
    EXPECT_TRUE(writing.done);
    EXPECT_GT(writing.held.fence(), fence);
    EXPECT_FALSE(try_read(b, of_b));
    shared_mutex another{a, "other"};
    EXPECT_EQ(ending_of([&] { static_cast<void>(another.try_upgrade(std::move(writing.held))); }).reason,
              errc::invalid_argument);
}

TEST_P(shared_mutex_contract, frees_a_dead_reader_though_another_lives) {
    shared_mutex brief{a, "name", {.ttl = 100ms, .renew = false}};
    auto dead = read(a, brief);
    auto const token = dead.detach();  // nobody renews or releases it
    auto alive = read(b, of_b);
    begun writer{of_a.async_acquire()};
    EXPECT_TRUE(eventually([&] { return waiting() == 1; }));
    alive.release();
    EXPECT_TRUE(writer.get().valid());
    EXPECT_EQ(ending_of([&] { static_cast<void>(lease::adopt(b, token)); }).reason, errc::lease_lost);
}

TEST(shared_mutex_as_lockable, works_with_the_guards_of_the_standard_library) {
    redis_server server;
    client by{server.url()};
    shared_mutex mutex{by, "name"};
    {
        std::shared_lock const reading{mutex};
        std::thread{[&] {
            std::shared_lock const too{mutex, 5s};
            EXPECT_TRUE(too.owns_lock());
            EXPECT_FALSE(mutex.try_lock_for(10ms));
        }}.join();
    }
    std::unique_lock const writing{mutex};
    EXPECT_GT(mutex.fence(), 0U);
    std::thread{[&] { EXPECT_FALSE(mutex.try_lock_shared()); }}.join();
}

}  // namespace
}  // namespace lockstep::test
