// What a mutex promises, once for the blocking and the coroutine form, on a standalone server.
#include <lockstep/mutex.hpp>

#include "lease_support.hpp"
#include "support/eventually.hpp"
#include "support/failures.hpp"
#include "support/fault_proxy.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <mutex>
#include <thread>

namespace lockstep::test {
namespace {

using namespace std::chrono_literals;

template <class Form>
class mutex_contract : public testing::Test {
protected:
    redis_server server;
    client a{server.url()};
    client b{server.url()};
    mutex of_a{a, "name"};
    mutex of_b{b, "name"};
};
TYPED_TEST_SUITE(mutex_contract, forms, form_names);

TYPED_TEST(mutex_contract, is_held_by_one_at_a_time_with_growing_fences) {
    using on = mutex_in<TypeParam>;
    auto first = on::acquire(this->a, this->of_a);
    EXPECT_TRUE(first.valid());
    EXPECT_GT(first.fence(), 0U);
    EXPECT_EQ(first.name(), "name");
    EXPECT_FALSE(on::try_acquire(this->b, this->of_b));
    EXPECT_FALSE(on::try_acquire(this->a, this->of_a));
    auto const fence = first.fence();
    on::release(this->a, first);
    EXPECT_FALSE(first);
    EXPECT_FALSE(first.valid());
    auto second = on::try_acquire(this->b, this->of_b);
    ASSERT_TRUE(second);
    EXPECT_GT(second->fence(), fence);
}

TYPED_TEST(mutex_contract, is_released_by_destruction_and_by_assignment) {
    using on = mutex_in<TypeParam>;
    { auto const held = on::acquire(this->a, this->of_a); }
    auto held = on::acquire(this->b, this->of_b);
    held = lease{};
    held = on::acquire(this->a, this->of_a);
    auto moved = std::move(held);
    EXPECT_TRUE(moved.valid());
    EXPECT_FALSE(held);
    EXPECT_THROW(held.release(), not_held_error);
}

TYPED_TEST(mutex_contract, goes_to_a_waiter_in_another_process_when_released) {
    using on = mutex_in<TypeParam>;
    auto first = on::acquire(this->a, this->of_a);
    begun next{this->of_b.async_acquire()};
    ASSERT_TRUE(eventually([&] { return waiting_at(this->server, "name") == 1; }));
    EXPECT_FALSE(next.done());
    on::release(this->a, first);
    auto second = next.get();
    EXPECT_TRUE(second.valid());
    EXPECT_GT(second.fence(), first.fence());
}

TYPED_TEST(mutex_contract, gives_up_waiting_in_time_and_leaves_nothing) {
    using on = mutex_in<TypeParam>;
    auto first = on::acquire(this->a, this->of_a);
    EXPECT_FALSE(on::try_acquire_for(this->b, this->of_b, 50ms));
    EXPECT_TRUE(eventually([&] { return waiting_at(this->server, "name") == 0; }));
    mutex impatient{this->b, "name", {.wait_limit = 50ms}};
    EXPECT_EQ(ending_of([&] { static_cast<void>(on::acquire(this->b, impatient)); }).reason, errc::timeout);
    mutex trying{this->b, "name", {.attempts = 3, .retry_delay = 5ms, .retry_jitter = 5ms}};
    EXPECT_EQ(ending_of([&] { static_cast<void>(on::acquire(this->b, trying)); }).reason, errc::timeout);
    EXPECT_TRUE(eventually([&] { return waiting_at(this->server, "name") == 0; }));
    on::release(this->a, first);
    EXPECT_TRUE(on::try_acquire_for(this->b, this->of_b, 5s));
}

TYPED_TEST(mutex_contract, stops_waiting_when_it_is_told_to) {
    using on = mutex_in<TypeParam>;
    auto first = on::acquire(this->a, this->of_a);
    std::stop_source stop;
    begun next{with_stop_token(this->of_b.async_acquire(), stop.get_token())};
    ASSERT_TRUE(eventually([&] { return waiting_at(this->server, "name") == 1; }));
    stop.request_stop();
    EXPECT_EQ(ending_of([&] { static_cast<void>(next.get()); }).reason, errc::cancelled);
    EXPECT_TRUE(eventually([&] { return waiting_at(this->server, "name") == 0; }));
    EXPECT_EQ(ending_of([&] { static_cast<void>(on::acquire(this->b, this->of_b, stop.get_token())); }).reason, errc::cancelled);
    on::release(this->a, first);
    EXPECT_EQ(held_at(this->server, "name"), "");
}

TYPED_TEST(mutex_contract, is_kept_by_renewals_for_longer_than_its_ttl) {
    using on = mutex_in<TypeParam>;
    mutex brief{this->a, "name", {.ttl = 1s}};
    auto held = on::acquire(this->a, brief);
    auto const fence = held.fence();
    auto const token = held.stop_token();
    for (auto const until = std::chrono::steady_clock::now() + 2500ms; std::chrono::steady_clock::now() < until;) {
        EXPECT_TRUE(held.valid());
        EXPECT_LE(held.remaining(), 900ms);
        EXPECT_FALSE(on::try_acquire(this->b, this->of_b));
    }
    EXPECT_FALSE(token.stop_requested());
    EXPECT_EQ(held.fence(), fence);
    on::release(this->a, held);
    EXPECT_FALSE(token.stop_requested()) << "released is not lost";
}

TYPED_TEST(mutex_contract, is_lost_without_renewal_and_says_so) {
    using on = mutex_in<TypeParam>;
    mutex fixed{this->a, "name", {.ttl = 200ms, .renew = false}};
    auto held = on::acquire(this->a, fixed);
    auto const token = held.stop_token();
    auto const risk = held.at_risk_token();
    EXPECT_TRUE(eventually([&] { return risk.stop_requested(); }));
    EXPECT_TRUE(eventually([&] { return token.stop_requested(); }));
    EXPECT_FALSE(held.valid());
    EXPECT_EQ(held.remaining(), 0ms);
    EXPECT_TRUE(held.stop_token().stop_requested()) << "also for who asks late";
    auto other = on::acquire(this->b, this->of_b);
    EXPECT_GT(other.fence(), held.fence());
    EXPECT_EQ(ending_of([&] { on::release(this->a, held); }).reason, errc::lease_lost);
    EXPECT_TRUE(other.valid());
    EXPECT_NE(held_at(this->server, "name"), "") << "the late release took nothing away";
}

TYPED_TEST(mutex_contract, can_be_extended_by_hand) {
    using on = mutex_in<TypeParam>;
    mutex fixed{this->a, "name", {.ttl = 400ms, .renew = false}};
    auto held = on::acquire(this->a, fixed);
    TypeParam::run(
        this->a, [&] { held.extend(60s); return true; }, [&] { return as_true(held.async_extend(60s)); });
    EXPECT_GT(held.remaining(), 50s);
    EXPECT_EQ(ending_of([&] { held.extend(0ms); }).reason, errc::invalid_argument);
    this->server.must({"DEL", "lockstep:{name}:lock"});
    EXPECT_EQ(ending_of([&] { held.extend(60s); }).reason, errc::lease_lost);
    EXPECT_FALSE(held.valid());
}

TYPED_TEST(mutex_contract, does_one_thing_with_a_lease_at_a_time) {
    using on = mutex_in<TypeParam>;
    auto held = on::acquire(this->a, this->of_a);
    this->server.stop();
    begun first{as_true(held.async_extend(60s))};
    on::run_turn(this->a);
    EXPECT_EQ(ending_of([&] { held.extend(60s); }).reason, errc::invalid_argument);
    begun last{as_true(held.async_release())};
    EXPECT_EQ(ending_of([&] { first.get(); }).reason, errc::not_held);
    this->server.cont();
    EXPECT_TRUE(last.get());
    EXPECT_EQ(held_at(this->server, "name"), "");
}

TYPED_TEST(mutex_contract, is_lost_for_good_when_its_token_has_tripped) {
    using on = mutex_in<TypeParam>;
    mutex brief{this->a, "name", {.ttl = 100ms, .renew = false}};
    for (int i = 0; i < 5; ++i) {
        auto held = on::acquire(this->a, brief);
        auto const token = held.stop_token();
        while (!token.stop_requested()) std::this_thread::yield();
        EXPECT_EQ(ending_of([&] { on::release(this->a, held); }).reason, errc::lease_lost);
    }
}

TYPED_TEST(mutex_contract, is_not_renewed_when_it_is_fixed_though_others_are) {
    using on = mutex_in<TypeParam>;
    std::vector<lease> fixed;
    std::vector<std::stop_token> tokens;
    for (int i = 0; i < 20; ++i) {
        mutex one{this->a, "fixed" + std::to_string(i), {.ttl = 300ms + i * 1ms, .renew = false}};
        fixed.push_back(on::acquire(this->a, one));
        tokens.push_back(fixed.back().stop_token());
    }
    auto const renewed = on::acquire(this->a, this->of_a);
    std::vector<std::chrono::milliseconds> left(fixed.size(), 1h);
    EXPECT_TRUE(eventually([&] {
        for (std::size_t i = 0; i < fixed.size(); ++i) {
            auto const now = fixed[i].remaining();
            EXPECT_LE(now, left[i]) << "it was renewed";
            left[i] = now;
        }
        return std::ranges::all_of(tokens, &std::stop_token::stop_requested);
    }));
    EXPECT_TRUE(renewed.valid());
}

TYPED_TEST(mutex_contract, is_kept_when_it_was_extended_to_less_than_its_ttl) {
    using on = mutex_in<TypeParam>;
    auto held = on::acquire(this->a, this->of_a);
    held.extend(300ms);
    EXPECT_LE(held.remaining(), 270ms);
    EXPECT_TRUE(eventually([&] { return held.remaining() > 1s; })) << "renewed in time";
}

TYPED_TEST(mutex_contract, is_held_on_the_terms_of_the_one_who_holds_it) {
    using on = mutex_in<TypeParam>;
    mutex fixed{this->a, "name", {.ttl = 400ms, .renew = false}};
    auto first = on::acquire(this->a, fixed);
    begun second{this->of_a.async_acquire()};
    begun third{fixed.async_acquire()};
    on::run_turn(this->a);
    on::release(this->a, first);
    auto renewed = second.get();
    EXPECT_TRUE(renewed.remaining() > 1s);
    on::release(this->a, renewed);
    auto last = third.get();
    EXPECT_LE(last.remaining(), 400ms);
    EXPECT_TRUE(eventually([&] { return !last.valid(); }, 2s)) << "nobody renews it";
}

TYPED_TEST(mutex_contract, gives_up_its_attempts_in_time_though_the_server_hangs) {
    using on = mutex_in<TypeParam>;
    mutex trying{this->b, "name", {.attempts = 3, .retry_delay = 5ms, .retry_jitter = 0ms}};
    EXPECT_TRUE(on::try_acquire_for(this->b, trying, 5s));
    this->server.stop();
    auto const begin = now_ms();
    EXPECT_FALSE(on::try_acquire_for(this->b, trying, 100ms));
    EXPECT_LT(now_ms() - begin, 5000);
    this->server.cont();
    EXPECT_TRUE(eventually([&] { return held_at(this->server, "name").empty(); }));
}

// The cancellation can't be said while the server is away; it is owed until it can.
TYPED_TEST(mutex_contract, leaves_the_queue_though_it_was_cut_off_when_it_gave_up) {
    using on = mutex_in<TypeParam>;
    fault_proxy proxy{this->server.address()};
    client far{{.url = proxy.url(), .command_timeout = 500ms}};
    mutex there{far, "name"};
    auto held = on::acquire(this->a, this->of_a);
    std::stop_source stop;
    begun next{with_stop_token(there.async_acquire(), stop.get_token())};
    ASSERT_TRUE(eventually([&] { return waiting_at(this->server, "name") == 1; }));
    proxy.refuse();
    proxy.cut();
    stop.request_stop();
    EXPECT_EQ(ending_of([&] { static_cast<void>(next.get()); }).reason, errc::cancelled);
    auto const until = now_ms() + 6'500;  // longer than a cancellation is tried at a time
    EXPECT_TRUE(eventually([&] { return now_ms() > until; }));
    EXPECT_EQ(waiting_at(this->server, "name"), 1);
    proxy.heal();
    EXPECT_TRUE(eventually([&] { return waiting_at(this->server, "name") == 0; }));
}

TYPED_TEST(mutex_contract, ends_with_max_hold_though_it_is_renewed) {
    using on = mutex_in<TypeParam>;
    mutex limited{this->a, "name", {.ttl = 150ms, .max_hold = 400ms}};
    auto held = on::acquire(this->a, limited);
    auto const began = std::chrono::steady_clock::now();
    auto const token = held.stop_token();
    EXPECT_TRUE(eventually([&] { return token.stop_requested(); }));
    EXPECT_GE(std::chrono::steady_clock::now() - began, 350ms);
    EXPECT_TRUE(on::try_acquire_for(this->b, this->of_b, 5s));
}

TYPED_TEST(mutex_contract, is_noticed_to_be_lost_when_the_server_forgot_it) {
    using on = mutex_in<TypeParam>;
    mutex brief{this->a, "name", {.ttl = 900ms}};
    auto held = on::acquire(this->a, brief);
    auto const token = held.stop_token();
    this->server.must({"FLUSHALL"});
    EXPECT_TRUE(eventually([&] { return token.stop_requested(); }));
    EXPECT_FALSE(held.valid());
    EXPECT_EQ(held_at(this->server, "name"), "") << "a lost lease is never made again";
}

TYPED_TEST(mutex_contract, passes_by_a_token_to_whoever_adopts_it) {
    using on = mutex_in<TypeParam>;
    auto held = on::acquire(this->a, this->of_a);
    auto const fence = held.fence();
    auto const token = TypeParam::run(
        this->a, [&] { return held.detach(); }, [&] { return held.async_detach(); });
    EXPECT_FALSE(held);
    EXPECT_FALSE(on::try_acquire(this->a, this->of_a));
    auto adopted = TypeParam::run(
        this->b, [&] { return lease::adopt(this->b, token); }, [&] { return lease::async_adopt(this->b, token); });
    EXPECT_GE(adopted.fence(), fence);
    EXPECT_TRUE(adopted.valid());
    EXPECT_EQ(ending_of([&] { static_cast<void>(lease::adopt(this->a, token)); }).reason, errc::lease_lost) << "a token works once";
    EXPECT_EQ(ending_of([&] { static_cast<void>(lease::adopt(this->a, "x")); }).reason, errc::invalid_argument);
    on::release(this->b, adopted);
    EXPECT_TRUE(on::try_acquire(this->a, this->of_a));
}

TYPED_TEST(mutex_contract, is_passed_on_inside_a_process_with_growing_fences) {
    using on = mutex_in<TypeParam>;
    auto first = on::acquire(this->a, this->of_a);
    std::vector<begun<lease>> others;
    for (int i = 0; i < 20; ++i) others.emplace_back(this->of_a.async_acquire());
    on::run_turn(this->a);
    EXPECT_EQ(waiting_at(this->server, "name"), 0) << "they wait here, behind one that is held here";
    auto fence = first.fence();
    on::release(this->a, first);
    for (auto& one : others) {
        auto held = one.get();
        EXPECT_GT(held.fence(), fence);
        fence = held.fence();
        on::release(this->a, held);
    }
    EXPECT_EQ(held_at(this->server, "name"), "");
}

TYPED_TEST(mutex_contract, lets_other_processes_in_between) {
    using on = mutex_in<TypeParam>;
    mutex strict{this->a, "name", {.cohort_passes = 0}};
    auto first = on::acquire(this->a, strict);
    begun second{this->of_b.async_acquire()};
    ASSERT_TRUE(eventually([&] { return waiting_at(this->server, "name") == 1; }));
    begun third{strict.async_acquire()};
    ASSERT_TRUE(eventually([&] { return waiting_at(this->server, "name") == 2; }));
    on::release(this->a, first);
    auto got = second.get();
    EXPECT_FALSE(third.done());
    on::release(this->b, got);
    EXPECT_TRUE(third.get().valid());
}

TYPED_TEST(mutex_contract, ends_waiting_and_holding_when_the_client_closes) {
    using on = mutex_in<TypeParam>;
    auto held = on::acquire(this->a, this->of_a);
    auto const token = held.stop_token();
    begun local{this->of_a.async_acquire()};
    mutex patient{this->a, "name", {.attempts = 2, .retry_delay = 1h}};
    begun retrying{patient.async_acquire()};
    begun remote{this->of_b.async_acquire()};
    ASSERT_TRUE(eventually([&] { return waiting_at(this->server, "name") == 1; }));
    this->a.close();
    EXPECT_EQ(ending_of([&] { static_cast<void>(local.get()); }).reason, errc::cancelled);
    EXPECT_EQ(ending_of([&] { static_cast<void>(retrying.get()); }).reason, errc::cancelled) << "while it rests";
    EXPECT_TRUE(remote.get().valid()) << "it was given back";
    EXPECT_TRUE(eventually([&] { return token.stop_requested(); }));
    EXPECT_FALSE(held.valid());
    EXPECT_EQ(ending_of([&] { on::release(this->a, held); }).reason, errc::cancelled);
    EXPECT_EQ(ending_of([&] { static_cast<void>(on::acquire(this->a, this->of_a)); }).reason, errc::cancelled);
}

TYPED_TEST(mutex_contract, refuses_bad_names_and_options) {
    EXPECT_EQ(ending_of([&] { mutex{this->a, ""}; }).reason, errc::invalid_argument);
    EXPECT_EQ(ending_of([&] { mutex{this->a, std::string(513, 'x')}; }).reason, errc::invalid_argument);
    EXPECT_EQ(ending_of([&] { mutex{this->a, "x", {.ttl = 0ms}}; }).reason, errc::invalid_argument);
    EXPECT_EQ(ending_of([&] { mutex{this->a, "x", {.ttl = 1s, .renew_every = 1s}}; }).reason, errc::invalid_argument);
    EXPECT_EQ(ending_of([&] { mutex{this->a, "x", {.cohort_passes = 1000}}; }).reason, errc::invalid_argument);
    EXPECT_EQ(ending_of([&] { mutex{this->a, "x", {.max_waiters = 0}}; }).reason, errc::invalid_argument);
}

TYPED_TEST(mutex_contract, refuses_one_waiter_too_many_with_its_own_error) {
    using on = mutex_in<TypeParam>;
    auto held = on::acquire(this->a, this->of_a);
    begun first{this->of_b.async_acquire()};
    ASSERT_TRUE(eventually([&] { return waiting_at(this->server, "name") == 1; }));
    client c{this->server.url()};
    mutex small{c, "name", {.max_waiters = 1}};
    auto const end = ending_of([&] { static_cast<void>(on::acquire(c, small)); });
    EXPECT_EQ(end.reason, errc::server);
    EXPECT_THAT(end.text, testing::StartsWith("LOCKSTEP_WAITERS"));
}

TYPED_TEST(mutex_contract, does_not_touch_a_key_of_another_type) {
    using on = mutex_in<TypeParam>;
    this->server.must({"SET", "lockstep:{name}:lock", "mine"});
    EXPECT_EQ(ending_of([&] { static_cast<void>(on::acquire(this->a, this->of_a)); }).reason, errc::server);
    EXPECT_EQ(this->server.must({"GET", "lockstep:{name}:lock"}).text, "mine");
}

// For people: who a client is, what it holds and what it waits for.
TEST(lease_registration, says_who_a_client_is_and_what_it_holds_and_waits_for) {
    redis_server server;
    auto const field = [&](std::string const& id, std::string const& name) {
        return server.must({"HGET", "lockstep:{clients}:" + id, name}).text;
    };
    auto const clients = [&] { return server.must({"ZRANGE", "lockstep:{clients}:index", "0", "-1"}).elements; };
    {
        client a{{.url = server.url(), .name = "billing"}};
        auto const held = mutex(a, "a name%").acquire();
        ASSERT_TRUE(eventually([&] { return clients().size() == 1; }));
        auto const id = clients().front().text;
        EXPECT_EQ(field(id, "name"), "billing");
        EXPECT_EQ(field(id, "pid"), std::to_string(::getpid()));
        EXPECT_NE(field(id, "host"), "");
        EXPECT_NE(field(id, "version"), "");
        EXPECT_EQ(field(id, "holds"), "lock " + std::to_string(held.fence()) + " a name%25\n");
        EXPECT_EQ(field(id, "waits"), "");
        EXPECT_GT(server.must({"PTTL", "lockstep:{clients}:" + id}).integer, 0);

        client b{{.url = server.url(), .name = "waits"}};
        begun next{mutex(b, "a name%").async_acquire()};
        ASSERT_TRUE(eventually([&] { return clients().size() == 2; }));
        auto const all = clients();
        auto const other = all[0].text == id ? all[1].text : all[0].text;
        EXPECT_EQ(field(other, "waits"), "lock a name%25\n");
        EXPECT_EQ(field(other, "waiting"), "1");
        b.close();
        EXPECT_EQ(clients().size(), 1U) << "it has taken its leave";
    }
    EXPECT_EQ(clients().size(), 0U);
}

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
