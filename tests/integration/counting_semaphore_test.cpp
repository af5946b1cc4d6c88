// Permits: counted, queued for, given back by the dead, in both forms.
#include <lockstep/counting_semaphore.hpp>

#include "lease_support.hpp"

namespace lockstep::test {
namespace {

template <class Form>
class semaphore_contract : public testing::Test {
protected:
    counting_semaphore create(client& by, std::int64_t permits, semaphore_options const& options = {}) {
        return Form::run(
            by, [&] { return counting_semaphore::create(by, "name", permits, options); },
            [&] { return counting_semaphore::async_create(by, "name", permits, options); });
    }
    static lease acquire(client& by, counting_semaphore& of, std::int64_t permits = 1) {
        return Form::run(
            by, [&] { return of.acquire(permits); }, [&] { return of.async_acquire(permits); });
    }
    static std::optional<lease> try_acquire(client& by, counting_semaphore& of, std::int64_t permits = 1) {
        return Form::run(
            by, [&] { return of.try_acquire(permits); }, [&] { return of.async_try_acquire(permits); });
    }
    static std::int64_t available(client& by, counting_semaphore& of) {
        return Form::run(
            by, [&] { return of.available(); }, [&] { return of.async_available(); });
    }
    int waiting() { return static_cast<int>(pool_numbers(server, key).waiting); }

    std::string const key = "lockstep:{name}:semaphore";
    redis_server server;
    client a{server.url()};
    client b{server.url()};
};
TYPED_TEST_SUITE(semaphore_contract, forms, form_names);

TYPED_TEST(semaphore_contract, gives_out_as_many_permits_as_it_has) {
    auto of_a = this->create(this->a, 3);
    auto of_b = this->create(this->b, 3);
    auto first = this->acquire(this->a, of_a);
    auto two = this->acquire(this->b, of_b, 2);
    EXPECT_GT(two.fence(), first.fence());
    EXPECT_EQ(this->available(this->a, of_a), 0);
    EXPECT_EQ(of_b.count(), 3);
    EXPECT_FALSE(this->try_acquire(this->a, of_a));
    first.release();
    EXPECT_FALSE(this->try_acquire(this->a, of_a, 2));
    EXPECT_TRUE(this->try_acquire(this->a, of_a));
    two.release();
    EXPECT_EQ(ending_of([&] { two.release(); }).reason, errc::not_held);
}

TYPED_TEST(semaphore_contract, is_created_once_with_one_count) {
    for (auto const by : {semaphore_options::creation::script, semaphore_options::creation::optimistic}) {
        auto made = this->create(this->a, 3, {.created_by = by});
        auto again = this->create(this->b, 3, {.created_by = by});
        EXPECT_EQ(made.count(), 3);
        auto const end = ending_of([&] { static_cast<void>(this->create(this->b, 4, {.created_by = by})); });
        EXPECT_EQ(end.reason, errc::count_mismatch);
        EXPECT_THAT(end.text, testing::HasSubstr("exists with 3 permits, not 4"));
        EXPECT_TRUE(again.try_acquire(3));
        this->server.must({"FLUSHALL"});
    }
    for (std::int64_t const bad : {0, -1, 4097}) {
        EXPECT_EQ(ending_of([&] { static_cast<void>(this->create(this->a, bad)); }).reason, errc::invalid_argument);
    }
    EXPECT_EQ(this->create(this->a, 5000, {.max_permits = 10'000}).count(), 5000);
}

TYPED_TEST(semaphore_contract, is_waited_for_by_those_who_attach) {
    begun attached{counting_semaphore::async_attach(this->b, "name", 20s)};
    ASSERT_TRUE(eventually([&] { return this->waiting() == 1; }));
    EXPECT_FALSE(attached.done());
    auto const late = ending_of([&] { static_cast<void>(counting_semaphore::attach(this->b, "other", 20ms)); });
    EXPECT_EQ(late.reason, errc::timeout);
    auto made = this->create(this->a, 2);
    auto of_b = attached.get();
    EXPECT_EQ(of_b.count(), 2);
    EXPECT_TRUE(eventually([&] { return made.available() == 2; })) << "attaching takes no permit";
    auto at_once = counting_semaphore::attach(this->a, "name", 0ms);
    EXPECT_TRUE(this->try_acquire(this->a, at_once, 2));
}

TYPED_TEST(semaphore_contract, does_not_starve_those_who_want_many) {
    auto of_a = this->create(this->a, 3);
    auto of_b = this->create(this->b, 3);
    auto first = this->acquire(this->a, of_a);
    auto second = this->acquire(this->a, of_a);
    begun many{of_b.async_acquire(3)};
    ASSERT_TRUE(eventually([&] { return this->waiting() == 1; }));
    EXPECT_FALSE(this->try_acquire(this->a, of_a)) << "one is free, but somebody was first";
    begun few{of_a.async_acquire(1)};
    ASSERT_TRUE(eventually([&] { return this->waiting() == 2; }));
    first.release();
    second.release();
    auto all = many.get();
    EXPECT_FALSE(few.done());
    all.release();
    EXPECT_TRUE(few.get().valid());
}

TYPED_TEST(semaphore_contract, can_be_resized_while_it_is_used) {
    auto of_a = this->create(this->a, 2);
    auto first = this->acquire(this->a, of_a, 2);
    begun next{of_a.async_acquire(2)};
    ASSERT_TRUE(eventually([&] { return this->waiting() == 1; }));
    EXPECT_EQ(of_a.resize(4), 2);
    auto second = next.get();
    EXPECT_EQ(of_a.resize(1), 4);
    EXPECT_EQ(of_a.available(), -3);
    first.release();
    second.release();
    EXPECT_EQ(of_a.available(), 1);
    EXPECT_EQ(ending_of([&] { static_cast<void>(of_a.acquire(2)); }).reason, errc::invalid_argument);
}

TYPED_TEST(semaphore_contract, gets_the_permits_of_the_dead_back) {
    auto brief = this->create(this->a, 1, {.lease = {.ttl = 100ms, .renew = false}});
    auto dead = this->acquire(this->a, brief);
    static_cast<void>(dead.detach());  // nobody renews or releases it
    auto of_b = this->create(this->b, 1);
    EXPECT_TRUE(this->acquire(this->b, of_b).valid());
    EXPECT_TRUE(eventually([&] { return of_b.available() == 1; }));
}

TYPED_TEST(semaphore_contract, vanishes_after_its_last_use) {
    auto brief = this->create(this->a, 1, {.lease = {.ttl = 100ms}, .lease_ttl = 1s});
    EXPECT_TRUE(this->acquire(this->a, brief).valid());
    EXPECT_TRUE(eventually([&] { return this->server.must({"EXISTS", this->key}).integer == 0; }));
    EXPECT_EQ(ending_of([&] { brief.count(); }).reason, errc::unavailable);
}

}  // namespace
}  // namespace lockstep::test
