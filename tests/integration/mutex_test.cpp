// What a mutex promises, in both forms on every topology. As a Lockable: mutex_lockable_test.cpp.
#include <lockstep/mutex.hpp>

#include "lease_support.hpp"
#include "support/contract.hpp"
#include "support/eventually.hpp"
#include "support/failures.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <thread>

namespace lockstep::test {
namespace {

using namespace std::chrono_literals;

class mutex_contract : public contract {
protected:
    mutex of_a{a, "name"};
    mutex of_b{b, "name"};
};
LOCKSTEP_CONTRACT(mutex_contract);

TEST_P(mutex_contract, is_held_by_one_at_a_time_with_growing_fences) {
    auto first = acquire(a, of_a);
    EXPECT_TRUE(first.valid());
    EXPECT_GT(first.fence(), 0U);
    EXPECT_EQ(first.name(), "name");
    EXPECT_FALSE(try_acquire(b, of_b));
    EXPECT_FALSE(try_acquire(a, of_a));
    auto const fence = first.fence();
    release(a, first);
    EXPECT_FALSE(first);
    EXPECT_FALSE(first.valid());
    auto second = try_acquire(b, of_b);
    ASSERT_TRUE(second);
    EXPECT_GT(second->fence(), fence);
}

TEST_P(mutex_contract, is_released_by_destruction_and_by_assignment) {
    { auto const held = acquire(a, of_a); }
    auto held = acquire(b, of_b);
    held = lease{};
    held = acquire(a, of_a);
    auto moved = std::move(held);
    EXPECT_TRUE(moved.valid());
    EXPECT_FALSE(held);
    EXPECT_THROW(held.release(), not_held_error);
}

TEST_P(mutex_contract, goes_to_a_waiter_in_another_process_when_released) {
    auto first = acquire(a, of_a);
    begun next{of_b.async_acquire()};
    ASSERT_TRUE(eventually([&] { return waiting_at(server, "name") == 1; }));
    EXPECT_FALSE(next.done());
    release(a, first);
    auto second = next.get();
    EXPECT_TRUE(second.valid());
    EXPECT_GT(second.fence(), first.fence());
}

TEST_P(mutex_contract, gives_up_waiting_in_time_and_leaves_nothing) {
    auto first = acquire(a, of_a);
    EXPECT_FALSE(try_acquire_for(b, of_b, 50ms));
    EXPECT_TRUE(eventually([&] { return waiting_at(server, "name") == 0; }));
    mutex impatient{b, "name", {.wait_limit = 50ms}};
    EXPECT_EQ(ending_of([&] { static_cast<void>(acquire(b, impatient)); }).reason, errc::timeout);
    mutex trying{b, "name", {.attempts = 3, .retry_delay = 5ms, .retry_jitter = 5ms}};
    EXPECT_EQ(ending_of([&] { static_cast<void>(acquire(b, trying)); }).reason, errc::timeout);
    EXPECT_TRUE(eventually([&] { return waiting_at(server, "name") == 0; }));
    release(a, first);
    EXPECT_TRUE(try_acquire_for(b, of_b, 5s));
}

TEST_P(mutex_contract, stops_waiting_when_it_is_told_to) {
    auto first = acquire(a, of_a);
    std::stop_source stop;
    begun next{with_stop_token(of_b.async_acquire(), stop.get_token())};
    ASSERT_TRUE(eventually([&] { return waiting_at(server, "name") == 1; }));
    stop.request_stop();
    EXPECT_EQ(ending_of([&] { static_cast<void>(next.get()); }).reason, errc::cancelled);
    EXPECT_TRUE(eventually([&] { return waiting_at(server, "name") == 0; }));
    EXPECT_EQ(ending_of([&] { static_cast<void>(acquire(b, of_b, stop.get_token())); }).reason, errc::cancelled);
    release(a, first);
    EXPECT_EQ(held_at(server, "name"), "");
}

TEST_P(mutex_contract, is_kept_by_renewals_for_longer_than_its_ttl) {
    mutex brief{a, "name", {.ttl = 1s}};
    auto held = acquire(a, brief);
    auto const fence = held.fence();
    auto const token = held.stop_token();
    for (auto const until = std::chrono::steady_clock::now() + 2500ms; std::chrono::steady_clock::now() < until;) {
        EXPECT_TRUE(held.valid());
        EXPECT_LE(held.remaining(), 900ms);
        EXPECT_FALSE(try_acquire(b, of_b));
    }
    EXPECT_FALSE(token.stop_requested());
    EXPECT_EQ(held.fence(), fence);
    release(a, held);
    EXPECT_FALSE(token.stop_requested()) << "released is not lost";
}

TEST_P(mutex_contract, is_lost_without_renewal_and_says_so) {
    mutex fixed{a, "name", {.ttl = 200ms, .renew = false}};
    auto held = acquire(a, fixed);
    auto const token = held.stop_token();
    auto const risk = held.at_risk_token();
    EXPECT_TRUE(eventually([&] { return risk.stop_requested(); }));
    EXPECT_TRUE(eventually([&] { return token.stop_requested(); }));
    EXPECT_FALSE(held.valid());
    EXPECT_EQ(held.remaining(), 0ms);
    EXPECT_TRUE(held.stop_token().stop_requested()) << "also for who asks late";
    auto other = acquire(b, of_b);
    EXPECT_GT(other.fence(), held.fence());
    EXPECT_EQ(ending_of([&] { release(a, held); }).reason, errc::lease_lost);
    EXPECT_TRUE(other.valid());
    EXPECT_NE(held_at(server, "name"), "") << "the late release took nothing away";
}

TEST_P(mutex_contract, can_be_extended_by_hand) {
    mutex fixed{a, "name", {.ttl = 400ms, .renew = false}};
    auto held = acquire(a, fixed);
    run(
        a,
        [&] {
            held.extend(60s);
            return true;
        },
        [&] { return as_true(held.async_extend(60s)); });
    EXPECT_GT(held.remaining(), 50s);
    EXPECT_EQ(ending_of([&] { held.extend(0ms); }).reason, errc::invalid_argument);
    server.must({"DEL", "lockstep:{name}:lock"});
    EXPECT_EQ(ending_of([&] { held.extend(60s); }).reason, errc::lease_lost);
    EXPECT_FALSE(held.valid());
}

TEST_P(mutex_contract, does_one_thing_with_a_lease_at_a_time) {
    auto held = acquire(a, of_a);
    server.stop();
    begun first{as_true(held.async_extend(60s))};
    run_turn(a);
    EXPECT_EQ(ending_of([&] { held.extend(60s); }).reason, errc::invalid_argument);
    begun last{as_true(held.async_release())};
    EXPECT_EQ(ending_of([&] { first.get(); }).reason, errc::not_held);
    server.cont();
    EXPECT_TRUE(last.get());
    EXPECT_EQ(held_at(server, "name"), "");
}

TEST_P(mutex_contract, is_lost_for_good_when_its_token_has_tripped) {
    mutex brief{a, "name", {.ttl = 100ms, .renew = false}};
    for (int i = 0; i < 5; ++i) {
        auto held = acquire(a, brief);
        auto const token = held.stop_token();
        while (!token.stop_requested()) std::this_thread::yield();
        EXPECT_EQ(ending_of([&] { release(a, held); }).reason, errc::lease_lost);
    }
}

TEST_P(mutex_contract, is_not_renewed_when_it_is_fixed_though_others_are) {
    std::vector<lease> fixed;
    std::vector<std::stop_token> tokens;
    for (int i = 0; i < 20; ++i) {
        mutex one{a, "fixed" + std::to_string(i), {.ttl = 300ms + i * 1ms, .renew = false}};
        fixed.push_back(acquire(a, one));
        tokens.push_back(fixed.back().stop_token());
    }
    auto const renewed = acquire(a, of_a);
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

TEST_P(mutex_contract, is_kept_when_it_was_extended_to_less_than_its_ttl) {
    auto held = acquire(a, of_a);
    held.extend(1s);
    EXPECT_LE(held.remaining(), 900ms);
    EXPECT_TRUE(eventually([&] { return held.remaining() > 2s; })) << "renewed in time";
}

TEST_P(mutex_contract, is_held_on_the_terms_of_the_one_who_holds_it) {
    mutex fixed{a, "name", {.ttl = 400ms, .renew = false}};
    auto first = acquire(a, fixed);
    begun second{of_a.async_acquire()};
    begun third{fixed.async_acquire()};
    run_turn(a);
    release(a, first);
    auto renewed = second.get();
    EXPECT_TRUE(renewed.remaining() > 1s);
    release(a, renewed);
    auto last = third.get();
    EXPECT_LE(last.remaining(), 400ms);
    EXPECT_TRUE(eventually([&] { return !last.valid(); }, 2s)) << "nobody renews it";
}

TEST_P(mutex_contract, gives_up_its_attempts_in_time_though_the_server_hangs) {
    mutex trying{b, "name", {.attempts = 3, .retry_delay = 5ms, .retry_jitter = 0ms}};
    EXPECT_TRUE(try_acquire_for(b, trying, 5s));
    server.stop();
    auto const begin = now_ms();
    EXPECT_FALSE(try_acquire_for(b, trying, 100ms));
    EXPECT_LT(now_ms() - begin, 5000);
    server.cont();
    EXPECT_TRUE(eventually([&] { return held_at(server, "name").empty(); }));
}

TEST_P(mutex_contract, ends_with_max_hold_though_it_is_renewed) {
    mutex limited{a, "name", {.ttl = 1s, .max_hold = 2500ms}};
    auto held = acquire(a, limited);
    auto const began = std::chrono::steady_clock::now();
    auto const token = held.stop_token();
    EXPECT_TRUE(eventually([&] { return token.stop_requested(); }));
    EXPECT_GE(std::chrono::steady_clock::now() - began, 2400ms);
    EXPECT_TRUE(try_acquire_for(b, of_b, 5s));
}

TEST_P(mutex_contract, is_noticed_to_be_lost_when_the_server_forgot_it) {
    mutex brief{a, "name", {.ttl = 900ms}};
    auto held = acquire(a, brief);
    auto const token = held.stop_token();
    server.must({"FLUSHALL"});
    EXPECT_TRUE(eventually([&] { return token.stop_requested(); }));
    EXPECT_FALSE(held.valid());
    EXPECT_EQ(held_at(server, "name"), "") << "a lost lease is never made again";
}

TEST_P(mutex_contract, passes_by_a_token_to_whoever_adopts_it) {
    auto held = acquire(a, of_a);
    auto const fence = held.fence();
    auto const token = run(
        a, [&] { return held.detach(); }, [&] { return held.async_detach(); });
    EXPECT_FALSE(held);
    EXPECT_FALSE(try_acquire(a, of_a));
    auto adopted = run(
        b, [&] { return lease::adopt(b, token); }, [&] { return lease::async_adopt(b, token); });
    EXPECT_GE(adopted.fence(), fence);
    EXPECT_TRUE(adopted.valid());
    EXPECT_EQ(ending_of([&] { static_cast<void>(lease::adopt(a, token)); }).reason, errc::lease_lost)
        << "a token works once";
    EXPECT_EQ(ending_of([&] { static_cast<void>(lease::adopt(a, "x")); }).reason, errc::invalid_argument);
    release(b, adopted);
    EXPECT_TRUE(try_acquire(a, of_a));
}

TEST_P(mutex_contract, is_passed_on_inside_a_process_with_growing_fences) {
    auto first = acquire(a, of_a);
    std::vector<begun<lease>> others;
    for (int i = 0; i < 20; ++i) others.emplace_back(of_a.async_acquire());
    run_turn(a);
    EXPECT_EQ(waiting_at(server, "name"), 0) << "they wait here, behind one that is held here";
    auto fence = first.fence();
    release(a, first);
    for (auto& one : others) {
        auto held = one.get();
        EXPECT_GT(held.fence(), fence);
        fence = held.fence();
        release(a, held);
    }
    EXPECT_EQ(held_at(server, "name"), "");
}

TEST_P(mutex_contract, lets_other_processes_in_between) {
    mutex strict{a, "name", {.cohort_passes = 0}};
    auto first = acquire(a, strict);
    begun second{of_b.async_acquire()};
    ASSERT_TRUE(eventually([&] { return waiting_at(server, "name") == 1; }));
    begun third{strict.async_acquire()};
    ASSERT_TRUE(eventually([&] { return waiting_at(server, "name") == 2; }));
    release(a, first);
    auto got = second.get();
    EXPECT_FALSE(third.done());
    release(b, got);
    EXPECT_TRUE(third.get().valid());
}

TEST_P(mutex_contract, ends_waiting_and_holding_when_the_client_closes) {
    auto held = acquire(a, of_a);
    auto const token = held.stop_token();
    begun local{of_a.async_acquire()};
    mutex patient{a, "name", {.attempts = 2, .retry_delay = 1h}};
    begun retrying{patient.async_acquire()};
    begun remote{of_b.async_acquire()};
    ASSERT_TRUE(eventually([&] { return waiting_at(server, "name") == 1; }));
    a.close();
    EXPECT_EQ(ending_of([&] { static_cast<void>(local.get()); }).reason, errc::cancelled);
    EXPECT_EQ(ending_of([&] { static_cast<void>(retrying.get()); }).reason, errc::cancelled) << "while it rests";
    EXPECT_TRUE(remote.get().valid()) << "it was given back";
    EXPECT_TRUE(eventually([&] { return token.stop_requested(); }));
    EXPECT_FALSE(held.valid());
    EXPECT_EQ(ending_of([&] { release(a, held); }).reason, errc::cancelled);
    EXPECT_EQ(ending_of([&] { static_cast<void>(acquire(a, of_a)); }).reason, errc::cancelled);
}

TEST_P(mutex_contract, refuses_bad_names_and_options) {
    EXPECT_EQ(ending_of([&] { mutex{a, ""}; }).reason, errc::invalid_argument);
    EXPECT_EQ(ending_of([&] { mutex{a, std::string(513, 'x')}; }).reason, errc::invalid_argument);
    EXPECT_EQ(ending_of([&] { mutex{a, "x", {.ttl = 0ms}}; }).reason, errc::invalid_argument);
    EXPECT_EQ(ending_of([&] { mutex{a, "x", {.ttl = 1s, .renew_every = 1s}}; }).reason, errc::invalid_argument);
    EXPECT_EQ(ending_of([&] { mutex{a, "x", {.cohort_passes = 1000}}; }).reason, errc::invalid_argument);
    EXPECT_EQ(ending_of([&] { mutex{a, "x", {.max_waiters = 0}}; }).reason, errc::invalid_argument);
}

TEST_P(mutex_contract, refuses_one_waiter_too_many_with_its_own_error) {
    auto held = acquire(a, of_a);
    begun first{of_b.async_acquire()};
    ASSERT_TRUE(eventually([&] { return waiting_at(server, "name") == 1; }));
    client c{url()};
    mutex small{c, "name", {.max_waiters = 1}};
    auto const end = ending_of([&] { static_cast<void>(acquire(c, small)); });
    EXPECT_EQ(end.reason, errc::server);
    EXPECT_THAT(end.text, testing::StartsWith("LOCKSTEP_WAITERS"));
}

TEST_P(mutex_contract, does_not_touch_a_key_of_another_type) {
    server.must({"SET", "lockstep:{name}:lock", "mine"});
    EXPECT_EQ(ending_of([&] { static_cast<void>(acquire(a, of_a)); }).reason, errc::server);
    EXPECT_EQ(server.must({"GET", "lockstep:{name}:lock"}).text, "mine");
}

}  // namespace
}  // namespace lockstep::test
