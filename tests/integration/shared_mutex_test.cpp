// Many readers or one writer, in both forms.
#include <lockstep/shared_mutex.hpp>

#include "lease_support.hpp"

#include <shared_mutex>
#include <thread>

namespace lockstep::test {
namespace {

template <class Form>
class shared_mutex_contract : public testing::Test {
protected:
    static lease write(client& by, shared_mutex& of) {
        return Form::run(
            by, [&] { return of.acquire(); }, [&] { return of.async_acquire(); });
    }
    static lease read(client& by, shared_mutex& of) {
        return Form::run(
            by, [&] { return of.acquire_shared(); }, [&] { return of.async_acquire_shared(); });
    }
    static std::optional<lease> try_write(client& by, shared_mutex& of) {
        return Form::run(
            by, [&] { return of.try_acquire(); }, [&] { return of.async_try_acquire(); });
    }
    static std::optional<lease> try_read(client& by, shared_mutex& of, std::chrono::milliseconds time = 0ms) {
        return Form::run(
            by, [&] { return of.try_acquire_shared_for(time); }, [&] { return of.async_try_acquire_shared_for(time); });
    }
    static shared_mutex::upgrade upgrade(client& by, shared_mutex& of, lease held) {
        return Form::run(
            by, [&] { return of.try_upgrade(std::move(held)); }, [&] { return of.async_try_upgrade(std::move(held)); });
    }
    static lease downgrade(client& by, shared_mutex& of, lease held) {
        return Form::run(
            by, [&] { return of.downgrade(std::move(held)); }, [&] { return of.async_downgrade(std::move(held)); });
    }
    int waiting() { return static_cast<int>(pool_numbers(server, "lockstep:{name}:shared").waiting); }

    redis_server server;
    client a{server.url()};
    client b{server.url()};
    shared_mutex of_a{a, "name"};
    shared_mutex of_b{b, "name"};
};
TYPED_TEST_SUITE(shared_mutex_contract, forms, form_names);

TYPED_TEST(shared_mutex_contract, has_many_readers_or_one_writer) {
    auto first = this->read(this->a, this->of_a);
    auto second = this->read(this->b, this->of_b);
    EXPECT_GT(second.fence(), first.fence());
    EXPECT_FALSE(this->try_write(this->b, this->of_b));
    first.release();
    EXPECT_FALSE(this->try_write(this->a, this->of_a));
    second.release();
    auto writer = this->try_write(this->a, this->of_a);
    ASSERT_TRUE(writer);
    EXPECT_FALSE(this->try_read(this->b, this->of_b));
    EXPECT_FALSE(this->try_read(this->a, this->of_a, 20ms));
    writer->release();
    EXPECT_TRUE(this->try_read(this->b, this->of_b));
}

TYPED_TEST(shared_mutex_contract, is_fair_between_readers_and_writers) {
    auto reading = this->read(this->a, this->of_a);
    begun writer{this->of_b.async_acquire()};
    ASSERT_TRUE(eventually([&] { return this->waiting() == 1; }));
    EXPECT_FALSE(this->try_read(this->a, this->of_a)) << "a waiting writer stops new readers";
    begun third{this->of_a.async_acquire_shared()};
    ASSERT_TRUE(eventually([&] { return this->waiting() == 2; }));
    begun fourth{this->of_b.async_acquire_shared()};
    ASSERT_TRUE(eventually([&] { return this->waiting() == 3; }));
    reading.release();
    auto writing = writer.get();
    EXPECT_FALSE(third.done());
    writing.release();
    auto one = third.get();
    auto other = fourth.get();
    EXPECT_TRUE(one.valid() && other.valid()) << "readers behind each other enter together";
}

TYPED_TEST(shared_mutex_contract, turns_a_writer_into_a_reader_with_nobody_in_between) {
    auto writing = this->write(this->a, this->of_a);
    auto const fence = writing.fence();
    begun writer{this->of_b.async_acquire()};
    ASSERT_TRUE(eventually([&] { return this->waiting() == 1; }));
    auto reading = this->downgrade(this->a, this->of_a, std::move(writing));
    EXPECT_EQ(reading.fence(), fence);
    EXPECT_TRUE(reading.valid());
    EXPECT_FALSE(writer.done());
    EXPECT_EQ(pool_numbers(this->server, "lockstep:{name}:shared").available, (1 << 30) - 1);
    reading.release();
    EXPECT_GT(writer.get().fence(), fence);
}

TYPED_TEST(shared_mutex_contract, turns_the_only_reader_into_the_writer_if_it_can) {
    auto reading = this->read(this->a, this->of_a);
    auto const fence = reading.fence();
    auto other = this->read(this->b, this->of_b);
    auto tried = this->upgrade(this->a, this->of_a, std::move(reading));
    EXPECT_FALSE(tried.done);
    EXPECT_TRUE(tried.held.valid()) << "still a reader";
    other.release();
    auto writing = this->upgrade(this->a, this->of_a, std::move(tried.held));
    EXPECT_TRUE(writing.done);
    EXPECT_GT(writing.held.fence(), fence);
    EXPECT_FALSE(this->try_read(this->b, this->of_b));
    shared_mutex another{this->a, "other"};
    EXPECT_EQ(ending_of([&] { static_cast<void>(another.try_upgrade(std::move(writing.held))); }).reason,
              errc::invalid_argument);
}

TYPED_TEST(shared_mutex_contract, frees_a_dead_reader_though_another_lives) {
    shared_mutex brief{this->a, "name", {.ttl = 100ms, .renew = false}};
    auto dead = this->read(this->a, brief);
    auto const token = dead.detach();  // nobody renews or releases it
    auto alive = this->read(this->b, this->of_b);
    begun writer{this->of_a.async_acquire()};
    EXPECT_TRUE(eventually([&] { return pool_numbers(this->server, "lockstep:{name}:shared").waiting == 1; }));
    alive.release();
    EXPECT_TRUE(writer.get().valid());
    EXPECT_EQ(ending_of([&] { static_cast<void>(lease::adopt(this->b, token)); }).reason, errc::lease_lost);
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
