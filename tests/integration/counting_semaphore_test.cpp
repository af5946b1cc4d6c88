// Permits: counted, queued for, given back by the dead, in both forms on every topology.
#include <lockstep/counting_semaphore.hpp>

#include "lease_support.hpp"
#include "support/contract.hpp"

#include <functional>
#include <optional>
#include <thread>

namespace lockstep::test {
namespace {

class semaphore_contract : public contract {
protected:
    counting_semaphore create(client& by, std::int64_t permits, semaphore_options const& options = {}) {
        return run(
            by, [&] { return counting_semaphore::create(by, "name", permits, options); },
            [&] { return counting_semaphore::async_create(by, "name", permits, options); });
    }
    std::int64_t available(client& by, counting_semaphore& of) {
        return run(
            by, [&] { return of.available(); }, [&] { return of.async_available(); });
    }
    int waiting() { return static_cast<int>(pool_numbers(server, key).waiting); }
    bool is_listened_to() {
        return !server.must({"PUBSUB", GetParam().where == topology::cluster ? "SHARDCHANNELS" : "CHANNELS"}).elements.empty();
    }

    std::string const key = "lockstep:{name}:semaphore";
};
LOCKSTEP_CONTRACT(semaphore_contract);

TEST_P(semaphore_contract, gives_out_as_many_permits_as_it_has) {
    auto of_a = create(a, 3);
    auto of_b = create(b, 3);
    auto first = acquire(a, of_a);
    auto two = acquire(b, of_b, 2);
    EXPECT_GT(two.fence(), first.fence());
    EXPECT_EQ(available(a, of_a), 0);
    EXPECT_EQ(of_b.count(), 3);
    EXPECT_FALSE(try_acquire(a, of_a));
    first.release();
    EXPECT_FALSE(try_acquire(a, of_a, 2));
    EXPECT_TRUE(try_acquire(a, of_a));
    two.release();
    EXPECT_EQ(ending_of([&] { two.release(); }).reason, errc::not_held);
}

TEST_P(semaphore_contract, is_created_once_with_one_count) {
    for (auto const by : {semaphore_options::creation::script, semaphore_options::creation::optimistic}) {
        auto made = create(a, 3, {.created_by = by});
        auto again = create(b, 3, {.created_by = by});
        EXPECT_EQ(made.count(), 3);
        auto const end = ending_of([&] { static_cast<void>(create(b, 4, {.created_by = by})); });
        EXPECT_EQ(end.reason, errc::count_mismatch);
        EXPECT_THAT(end.text, testing::HasSubstr("exists with 3 permits, not 4"));
        EXPECT_TRUE(again.try_acquire(3));
        server.must({"FLUSHALL"});
    }
    for (std::int64_t const bad : {0, -1, 4097}) {
        EXPECT_EQ(ending_of([&] { static_cast<void>(create(a, bad)); }).reason, errc::invalid_argument);
    }
    EXPECT_EQ(create(a, 5000, {.max_permits = 10'000}).count(), 5000);
}

TEST_P(semaphore_contract, is_waited_for_by_push_also_where_others_would_try_a_few_times) {
    begun attached{counting_semaphore::async_attach(b, "name", 20s, {.lease = {.attempts = 1}})};
    ASSERT_TRUE(eventually([&] { return waiting() == 1; }));
    EXPECT_FALSE(attached.done());
    create(a, 2);
    EXPECT_EQ(attached.get().count(), 2);
}

// Whoever creates it and finds it has used it: it stays for lease_ttl from then on.
TEST_P(semaphore_contract, stays_longer_for_those_who_find_it) {
    for (auto const by : {semaphore_options::creation::script, semaphore_options::creation::optimistic}) {
        auto const made = create(a, 3, {.created_by = by});
        server.must({"HSET", key, "x", "1"});  // as if that were long ago
        server.must({"PEXPIRE", key, "20000"});
        auto const again = create(b, 3, {.created_by = by});
        EXPECT_GT(server.must({"PTTL", key}).integer, 300'000);
        server.must({"FLUSHALL"});
    }
}

TEST_P(semaphore_contract, is_waited_for_by_those_who_attach) {
    begun attached{counting_semaphore::async_attach(b, "name", 20s)};
    ASSERT_TRUE(eventually([&] { return waiting() == 1; }));
    EXPECT_FALSE(attached.done());
    auto const late = ending_of([&] { static_cast<void>(counting_semaphore::attach(b, "other", 20ms)); });
    EXPECT_EQ(late.reason, errc::timeout);
    auto made = create(a, 2);
    auto of_b = attached.get();
    EXPECT_EQ(of_b.count(), 2);
    EXPECT_TRUE(eventually([&] { return made.available() == 2; })) << "attaching takes no permit";
    auto at_once = counting_semaphore::attach(a, "name", 0ms);
    EXPECT_TRUE(try_acquire(a, at_once, 2));
}

TEST_P(semaphore_contract, does_not_starve_those_who_want_many) {
    auto of_a = create(a, 3);
    auto of_b = create(b, 3);
    auto first = acquire(a, of_a);
    auto second = acquire(a, of_a);
    begun many{of_b.async_acquire(3)};
    ASSERT_TRUE(eventually([&] { return waiting() == 1 && is_listened_to(); })) << "who does not listen yet is passed over";
    EXPECT_FALSE(try_acquire(a, of_a)) << "one is free, but somebody was first";
    begun few{of_a.async_acquire(1)};
    ASSERT_TRUE(eventually([&] { return waiting() == 2; }));
    first.release();
    second.release();
    auto all = many.get();
    EXPECT_FALSE(few.done());
    all.release();
    EXPECT_TRUE(few.get().valid());
}

TEST_P(semaphore_contract, can_be_resized_while_it_is_used) {
    auto of_a = create(a, 2);
    auto first = acquire(a, of_a, 2);
    begun next{of_a.async_acquire(2)};
    ASSERT_TRUE(eventually([&] { return waiting() == 1; }));
    EXPECT_EQ(of_a.resize(4), 2);
    auto second = next.get();
    EXPECT_EQ(of_a.resize(1), 4);
    EXPECT_EQ(of_a.available(), -3);
    first.release();
    second.release();
    EXPECT_EQ(of_a.available(), 1);
    EXPECT_EQ(ending_of([&] { static_cast<void>(of_a.acquire(2)); }).reason, errc::invalid_argument);
}

TEST_P(semaphore_contract, gets_the_permits_of_the_dead_back) {
    auto brief = create(a, 1, {.lease = {.ttl = 100ms, .renew = false}});
    auto dead = acquire(a, brief);
    static_cast<void>(dead.detach());  // nobody renews or releases it
    auto of_b = create(b, 1);
    EXPECT_TRUE(acquire(b, of_b).valid());
    EXPECT_TRUE(eventually([&] { return of_b.available() == 1; }));
}

// By itself it stays for twice lease_ttl at most.
TEST_P(semaphore_contract, lives_as_long_as_a_client_that_created_or_attached_it) {
    semaphore_options const brief{.lease = {.ttl = 500ms}, .lease_ttl = 1s};
    auto made = create(a, 2, brief);
    std::optional attached{run(
        b, [&] { return counting_semaphore::attach(b, "name", 10s, brief); },
        [&] { return counting_semaphore::async_attach(b, "name", 10s, brief); })};
    std::this_thread::sleep_for(3s);
    EXPECT_EQ(available(a, made), 2);
    { auto const gone = std::move(made); }
    std::this_thread::sleep_for(3s);
    EXPECT_TRUE(acquire(b, *attached).valid()) << "one is enough";
    attached.reset();
    EXPECT_TRUE(eventually([&] { return server.must({"EXISTS", key}).integer == 0; })) << "and without them it goes";
}

TEST_P(semaphore_contract, goes_when_its_client_is_closed_though_the_object_is_there) {
    auto const made = create(a, 1, {.lease_ttl = 1s});
    std::this_thread::sleep_for(3s);
    EXPECT_EQ(server.must({"EXISTS", key}).integer, 1);
    a.close();
    EXPECT_TRUE(eventually([&] { return server.must({"EXISTS", key}).integer == 0; }));
}

TEST_P(semaphore_contract, that_does_not_exist_any_more_is_refused_by_every_call) {
    auto lost = create(a, 2);
    auto of_b = create(b, 2);
    server.must({"DEL", key});
    std::function<void()> const calls[] = {
        [&] { static_cast<void>(acquire(a, lost)); }, [&] { static_cast<void>(acquire(b, of_b, 2)); },
        [&] { static_cast<void>(try_acquire(a, lost)); }, [&] { static_cast<void>(try_acquire_for(a, lost, 20s)); },
        [&] { static_cast<void>(available(a, lost)); }, [&] { static_cast<void>(lost.count()); }, [&] { lost.resize(3); }};
    for (auto const& call : calls) {
        auto const end = ending_of(call);
        EXPECT_EQ(end.reason, errc::not_found);
        EXPECT_THAT(end.text, testing::AllOf(testing::HasSubstr("semaphore 'name'"), testing::HasSubstr("does not exist: create it first")));
    }
    EXPECT_EQ(server.must({"EXISTS", key}).integer, 0) << "nobody makes it again unasked";
    auto again = create(a, 3);
    EXPECT_TRUE(acquire(b, of_b, 3).valid());
}

TEST_P(semaphore_contract, ends_those_who_wait_when_it_vanishes) {
    auto made = create(a, 1, {.lease = {.ttl = 500ms}});
    auto held = acquire(a, made);
    begun waits{made.async_acquire()};
    ASSERT_TRUE(eventually([&] { return waiting() == 1; }));
    server.must({"DEL", key});
    EXPECT_EQ(ending_of([&] { static_cast<void>(waits.get()); }).reason, errc::not_found) << "it looks again";
}

}  // namespace
}  // namespace lockstep::test
