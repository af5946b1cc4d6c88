// What a barrier promises, in both forms on every topology. Faults: barrier_fault_test.cpp.
#include <lockstep/barrier.hpp>

#include "gate_support.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <stdexcept>
#include <thread>

namespace lockstep::test {
namespace {

std::string const key = "lockstep:{name}:barrier";

class barrier_contract : public contract {
protected:
    void meet(client& by, barrier& at, std::stop_token token = {}) {
        run(
            by, [&] { at.arrive_and_wait(token); }, [&] { return with_stop_token(at.async_arrive_and_wait(), token); });
    }
    bool meet_for(client& by, barrier& at, std::chrono::milliseconds time) {
        return run(
            by, [&] { return at.arrive_and_wait_for(time); }, [&] { return at.async_arrive_and_wait_for(time); });
    }
    void drop(client& by, barrier& at) {
        run(
            by, [&] { at.arrive_and_drop(); }, [&] { return at.async_arrive_and_drop(); });
    }
    std::string arrived() { return server.must({"HGET", key, "a"}).text; }
    bool have_arrived(int count) {
        return eventually([&] { return arrived() == std::to_string(count); });
    }

    barrier of_a{a, "name", 3};
    barrier of_b{b, "name", 3};
};
LOCKSTEP_CONTRACT(barrier_contract);

TEST_P(barrier_contract, lets_all_go_when_the_last_one_arrives_again_and_again) {
    for (int round = 0; round < 5; ++round) {
        begun first{as_true(of_a.async_arrive_and_wait())};
        begun second{as_true(of_b.async_arrive_and_wait())};
        ASSERT_TRUE(have_arrived(2));
        EXPECT_FALSE(first.done() || second.done());
        meet(a, of_a);
        EXPECT_TRUE(first.get() && second.get());
    }
    EXPECT_EQ(arrived(), "0");
    EXPECT_GT(server.must({"PTTL", key}).integer, 0) << "it goes when nobody uses it";
}

TEST_P(barrier_contract, keeps_many_in_step_with_one_question_per_process) {
    barrier here{a, "name", 40};
    barrier there{b, "name", 40};
    std::atomic<int> before{0};
    auto const before_scripts = scripts_run(server);
    constexpr int rounds = 20;
    auto const take_part = [&before](barrier& at) -> task<bool> {
        for (int round = 0; round < rounds; ++round) {
            if (before.fetch_add(1) / 40 != round) co_return false;
            co_await at.async_arrive_and_wait();
        }
        co_return true;
    };
    std::vector<begun<bool>> all;
    for (int i = 0; i < 20; ++i) {
        all.emplace_back(take_part(here));
        all.emplace_back(take_part(there));
    }
    for (auto const& one : all) EXPECT_TRUE(one.get()) << "somebody was ahead";
    EXPECT_EQ(before, 40 * rounds);
    // An arrival each, and a question or two per process and generation; the first arrivals also learn the generation.
    EXPECT_LT(scripts_run(server) - before_scripts, rounds * (40 + 6) + 60);
}

TEST_P(barrier_contract, runs_the_completion_function_once_per_generation_before_anybody_goes_on) {
    std::atomic<int> runs{0};
    auto const completion = [&] { ++runs; };
    barrier here{a, "name", 2, completion};
    barrier there{b, "name", 2, completion};
    for (int round = 1; round <= 5; ++round) {
        begun other{as_true(there.async_arrive_and_wait())};
        meet(a, here);
        EXPECT_EQ(runs, round);
        EXPECT_TRUE(other.get());
    }
}

TEST_P(barrier_contract, is_broken_by_a_completion_function_that_throws) {
    barrier here{a, "name", 2, [] { throw std::runtime_error{"no"}; }};
    begun other{as_true(barrier{b, "name", 2}.async_arrive_and_wait())};
    ASSERT_TRUE(have_arrived(1));
    EXPECT_THROW(meet(a, here), std::runtime_error);
    EXPECT_EQ(ending_of([&] { other.get(); }).reason, errc::broken_barrier);
    barrier again{b, "name", 2};
    begun next{as_true(again.async_arrive_and_wait())};
    ASSERT_TRUE(have_arrived(1));
    barrier plain{a, "name", 2};
    meet(a, plain);
    EXPECT_TRUE(next.get());
}

TEST_P(barrier_contract, is_broken_for_all_by_one_whose_time_is_over) {
    begun other{as_true(of_b.async_arrive_and_wait())};
    ASSERT_TRUE(have_arrived(1));
    // On a busy machine its time may be over before it has arrived, which breaks nothing.
    EXPECT_TRUE(eventually([&] {
        EXPECT_FALSE(meet_for(a, of_a, 50ms));
        return other.done();
    }));
    EXPECT_EQ(ending_of([&] { other.get(); }).reason, errc::broken_barrier);
    EXPECT_EQ(arrived(), "0") << "nothing is left of it";
    barrier impatient{a, "name", 3, {.wait_limit = 50ms}};
    EXPECT_EQ(ending_of([&] { meet(a, impatient); }).reason, errc::timeout);
    EXPECT_FALSE(of_a.arrive_and_wait_until(std::chrono::system_clock::now() + 20ms));
    EXPECT_EQ(arrived(), "0");
}

TEST_P(barrier_contract, is_broken_for_all_by_one_who_is_cancelled) {
    begun other{as_true(of_b.async_arrive_and_wait())};
    std::stop_source stop;
    begun one{with_stop_token(as_true(of_a.async_arrive_and_wait()), stop.get_token())};
    ASSERT_TRUE(have_arrived(2));
    stop.request_stop();
    EXPECT_EQ(ending_of([&] { one.get(); }).reason, errc::cancelled);
    EXPECT_EQ(ending_of([&] { other.get(); }).reason, errc::broken_barrier);
    EXPECT_EQ(ending_of([&] { meet(a, of_a, stop.get_token()); }).reason, errc::cancelled);
    EXPECT_EQ(arrived(), "0");
}

TEST_P(barrier_contract, is_broken_by_a_coroutine_that_is_destroyed) {
    begun other{as_true(of_b.async_arrive_and_wait())};
    std::optional<task<void>> frame{of_a.async_arrive_and_wait()};
    std::coroutine_handle<> const started = detail::task_access::frame(*frame);
    sync_wait(in_turn_of(a, [&] {
        started.resume();
        return true;
    }));
    ASSERT_TRUE(have_arrived(2));
    sync_wait(in_turn_of(a, [&] {
        frame.reset();  // there, where nobody can be resuming it
        return true;
    }));
    EXPECT_EQ(ending_of([&] { other.get(); }).reason, errc::broken_barrier);
}

TEST_P(barrier_contract, is_broken_when_the_client_of_one_closes) {
    begun other{as_true(of_b.async_arrive_and_wait())};
    begun one{as_true(of_a.async_arrive_and_wait())};
    ASSERT_TRUE(have_arrived(2));
    catch_up(a);  // it knows that it has arrived
    a.close();
    EXPECT_EQ(arrived(), "0") << "withdrawn before the client was gone";
    EXPECT_EQ(ending_of([&] { one.get(); }).reason, errc::cancelled);
    EXPECT_EQ(ending_of([&] { other.get(); }).reason, errc::broken_barrier);
}

TEST_P(barrier_contract, keeps_arrivals_for_longer_than_their_ttl) {
    barrier here{a, "name", 2, {.ttl = 1s}};
    barrier there{b, "name", 2, {.ttl = 1s}};
    begun other{as_true(there.async_arrive_and_wait())};
    auto const until = now_ms() + 2500;
    ASSERT_TRUE(eventually([&] { return now_ms() > until; }));
    EXPECT_FALSE(other.done());
    meet(a, here);
    EXPECT_TRUE(other.get());
}

TEST_P(barrier_contract, breaks_when_an_arrival_that_is_not_renewed_runs_out) {
    barrier fixed{a, "name", 3, {.ttl = 150ms, .renew = false}};
    barrier there{b, "name", 3, {.ttl = 300ms}};
    begun other{as_true(there.async_arrive_and_wait())};
    EXPECT_EQ(ending_of([&] { meet(a, fixed); }).reason, errc::broken_barrier);
    EXPECT_EQ(ending_of([&] { other.get(); }).reason, errc::broken_barrier);
}

TEST_P(barrier_contract, keeps_the_arrival_of_the_one_that_runs_the_completion_function) {
    auto const slow = [until = now_ms() + 2500] { static_cast<void>(eventually([=] { return now_ms() > until; })); };
    barrier here{a, "name", 2, slow, {.ttl = 1s}};
    barrier there{b, "name", 2, {.ttl = 1s}};
    begun other{as_true(there.async_arrive_and_wait())};
    ASSERT_TRUE(have_arrived(1));
    here.arrive_and_wait();  // on a thread that may be busy
    EXPECT_TRUE(other.get());
}

TEST_P(barrier_contract, lets_who_comes_while_the_completion_function_runs_into_the_next_generation) {
    std::atomic<bool> go{false};
    std::atomic<bool> running{false};
    barrier here{a, "name", 1, [&] {
                     running = true;
                     static_cast<void>(eventually([&] { return go.load(); }));
                 }};
    barrier there{b, "name", 1};
    std::thread runner{[&] { here.arrive_and_wait(); }};
    ASSERT_TRUE(eventually([&] { return running.load(); }));
    EXPECT_FALSE(meet_for(b, there, 50ms)) << "it has not arrived, and nothing is broken";
    begun next{as_true(there.async_arrive_and_wait())};
    EXPECT_TRUE(falls_silent(server));
    EXPECT_FALSE(next.done());
    go = true;
    runner.join();
    EXPECT_TRUE(next.get());
}

TEST_P(barrier_contract, goes_on_with_one_less_after_a_drop) {
    begun first{as_true(of_a.async_arrive_and_wait())};
    begun second{as_true(of_a.async_arrive_and_wait())};
    ASSERT_TRUE(have_arrived(2));
    drop(b, of_b);
    EXPECT_TRUE(first.get() && second.get());
    drop(b, of_b);
    EXPECT_EQ(arrived(), "1");
    meet(a, of_a);
    meet(a, of_a);
    drop(a, of_a);
    EXPECT_EQ(ending_of([&] { meet(a, of_a); }).reason, errc::count_mismatch) << "all dropped out";
}

TEST_P(barrier_contract, refuses_another_number_and_what_it_cannot_use) {
    begun one{of_a.async_arrive_and_wait_for(5s)};
    ASSERT_TRUE(have_arrived(1));
    barrier other{b, "name", 4};
    EXPECT_EQ(ending_of([&] { meet(b, other); }).reason, errc::count_mismatch);
    EXPECT_EQ(arrived(), "1");
    EXPECT_FALSE(one.done()) << "a refusal breaks nothing";
    EXPECT_EQ(ending_of([&] { barrier{a, "x", 0}; }).reason, errc::invalid_argument);
    EXPECT_EQ(ending_of([&] { barrier{a, "x", 2001}; }).reason, errc::invalid_argument);
    EXPECT_EQ(ending_of([&] { barrier{a, "", 1}; }).reason, errc::invalid_argument);
    server_of("taken").must({"SET", "lockstep:{taken}:barrier", "mine"});
    barrier taken{a, "taken", 1};
    EXPECT_EQ(ending_of([&] { meet(a, taken); }).reason, errc::server);
}

TEST_P(barrier_contract, does_not_poll) {
    begun one{as_true(of_a.async_arrive_and_wait())};
    begun two{as_true(of_b.async_arrive_and_wait())};
    ASSERT_TRUE(have_arrived(2));
    EXPECT_TRUE(falls_silent(server));
    meet(a, of_a);
    EXPECT_TRUE(one.get() && two.get());
}

}  // namespace
}  // namespace lockstep::test
