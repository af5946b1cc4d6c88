// How a request to stop reaches a waiting task: stop tokens, when_all and when_any, and races of cancelling with completing.

#include "task_support.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <stop_token>
#include <string>
#include <vector>

namespace lockstep {
namespace {

using test::after;
using test::event;
using test::failing_after;
using test::immediately;
using test::is_cancelled;
using test::outcome;
using test::pass;
using test::worker;

template <class T>
std::vector<task<T>> list_of(task<T> one, task<T> other) {
    std::vector<task<T>> list;
    list.push_back(std::move(one));
    list.push_back(std::move(other));
    return list;
}

// ---- sync_wait with a token

TEST(sync_wait, a_stop_requested_before_ends_it_at_the_first_wait) {
    worker home;
    event never{home};
    std::stop_source source;
    source.request_stop();
    EXPECT_THROW(sync_wait(pass(never), source.get_token()), cancelled_error);
    EXPECT_EQ(sync_wait(immediately(5), source.get_token()), 5);  // never waits, so it is not stopped
}

TEST(sync_wait, a_stop_requested_meanwhile_ends_it) {
    worker home;
    for (int i = 0; i != 100; ++i) {
        event never{home};
        std::stop_source source;
        std::thread stopper{[&] { source.request_stop(); }};
        EXPECT_THROW(sync_wait(pass(never), source.get_token()), cancelled_error);
        stopper.join();
    }
}

TEST(sync_wait, a_stop_requested_afterwards_does_nothing) {
    worker home;
    event at{home};
    at.set();
    std::stop_source source;
    EXPECT_EQ(sync_wait(after(at, 3), source.get_token()), 3);
    source.request_stop();
}

// ---- with_stop_token

TEST(with_stop_token, ends_the_wait_when_the_stop_is_delivered) {
    event at;
    std::stop_source source;
    outcome<int> ended;
    start(with_stop_token(after(at, 1), source.get_token()), ended.callback());
    source.request_stop();
    EXPECT_TRUE(at.was_asked_to_stop());
    EXPECT_EQ(ended.calls, 0);  // not on the thread that asks
    at.deliver();
    EXPECT_EQ(ended.calls, 1);
    EXPECT_TRUE(is_cancelled(ended.error));
    EXPECT_FALSE(at.has_waiter());
}

TEST(with_stop_token, a_task_that_ends_before_the_delivery_keeps_its_value) {
    event at;
    std::stop_source source;
    outcome<int> ended;
    start(with_stop_token(after(at, 1), source.get_token()), ended.callback());
    source.request_stop();
    at.set();
    EXPECT_EQ(ended.value, 1);
    at.deliver();
    EXPECT_EQ(ended.calls, 1);
}

TEST(with_stop_token, passes_the_request_of_any_level_on) {
    for (bool const by_the_outer : {true, false}) {
        event at;
        std::stop_source inner;
        std::stop_source outer;
        outcome<int> ended;
        start(with_stop_token(with_stop_token(after(at, 1), inner.get_token()), outer.get_token()), ended.callback());
        (by_the_outer ? outer : inner).request_stop();
        at.deliver();
        EXPECT_TRUE(is_cancelled(ended.error));
        (by_the_outer ? inner : outer).request_stop();
    }
}

TEST(with_stop_token, an_empty_token_leaves_the_outer_one_in_force) {
    event at;
    std::stop_source outer;
    outcome<int> ended;
    start(with_stop_token(with_stop_token(after(at, 1), std::stop_token{}), outer.get_token()), ended.callback());
    outer.request_stop();
    at.deliver();
    EXPECT_TRUE(is_cancelled(ended.error));
}

task<std::string> stop_a_part(event& part, event& rest, std::stop_token token) {
    std::string story;
    try {
        co_await with_stop_token(pass(part), token);
    } catch (cancelled_error const&) {
        story = "part cancelled";
    }
    co_await rest;
    co_return story + ", rest done";
}

TEST(with_stop_token, covers_only_the_task_it_is_given) {
    event part;
    event rest;
    std::stop_source source;
    outcome<std::string> ended;
    start(stop_a_part(part, rest, source.get_token()), ended.callback());
    source.request_stop();
    part.deliver();
    EXPECT_TRUE(rest.has_waiter());
    rest.set();
    EXPECT_EQ(ended.value, "part cancelled, rest done");
}

// Owned by the test, so that it can be destroyed while it waits.
struct owned {
    struct promise_type {
        owned get_return_object() noexcept { return {std::coroutine_handle<promise_type>::from_promise(*this)}; }
        std::suspend_never initial_suspend() const noexcept { return {}; }
        std::suspend_always final_suspend() const noexcept { return {}; }
        void return_void() const noexcept {}
        void unhandled_exception() const noexcept { std::terminate(); }
    };
    std::coroutine_handle<promise_type> frame;
};

template <class T>
owned run_owned(task<T> work) {
    co_await std::move(work);
}

TEST(with_stop_token, a_request_after_the_wait_was_destroyed_does_nothing) {
    event at;
    std::stop_source inner;
    std::stop_source outer;
    auto const user = run_owned(with_stop_token(with_stop_token(pass(at), inner.get_token()), outer.get_token()));
    EXPECT_TRUE(at.has_waiter());
    user.frame.destroy();
    EXPECT_FALSE(at.has_waiter());
    outer.request_stop();
    inner.request_stop();
    EXPECT_FALSE(at.was_asked_to_stop());
}

TEST(with_stop_token, a_delivery_after_the_wait_was_destroyed_does_nothing) {
    event at;
    std::stop_source source;
    auto const user = run_owned(with_stop_token(pass(at), source.get_token()));
    source.request_stop();
    user.frame.destroy();
    at.deliver();
}

// ---- when_all

TEST(when_all, returns_the_values_in_the_order_of_the_tasks) {
    event first;
    event second;
    outcome<std::vector<std::string>> ended;
    start(when_all(list_of(after(first, std::string{"a"}), after(second, std::string{"b"}))), ended.callback());
    EXPECT_TRUE(first.has_waiter() && second.has_waiter());  // both run
    second.set();
    EXPECT_EQ(ended.calls, 0);
    first.set();
    EXPECT_EQ(ended.value, (std::vector<std::string>{"a", "b"}));
}

TEST(when_all, takes_tasks_that_end_at_once) {
    std::vector<task<bool>> works;
    for (int i = 0; i != 10'000; ++i) works.push_back(immediately(i % 2 == 0));
    auto const values = sync_wait(when_all(std::move(works)));
    ASSERT_EQ(values.size(), 10'000U);
    EXPECT_TRUE(values[0]);
    EXPECT_FALSE(values[9'999]);
}

TEST(when_all, moves_values_that_can_not_be_copied) {
    auto const values = sync_wait(when_all(list_of(immediately(std::make_unique<int>(1)), immediately(std::make_unique<int>(2)))));
    EXPECT_EQ(*values[1], 2);
}

TEST(when_all, an_error_stops_the_others_and_is_thrown_when_they_have_ended) {
    event bad;
    event other;
    outcome<std::vector<int>> ended;
    start(when_all(list_of(after(other, 1), failing_after(bad))), ended.callback());
    bad.set();
    EXPECT_EQ(ended.calls, 0);
    EXPECT_TRUE(other.was_asked_to_stop());
    other.deliver();
    EXPECT_EQ(ended.calls, 1);
    EXPECT_THROW(std::rethrow_exception(ended.error), timeout_error);  // the first error, not the cancellation it caused
}

TEST(when_all, waits_for_tasks_without_a_value) {
    event first;
    event second;
    int calls = 0;
    start(when_all(list_of(pass(first), pass(second))), [&](std::exception_ptr error) { calls += error ? 100 : 1; });
    first.set();
    EXPECT_EQ(calls, 0);
    second.set();
    EXPECT_EQ(calls, 1);
}

TEST(when_all, of_nothing_is_an_error) {
    EXPECT_THROW(sync_wait(when_all(std::vector<task<int>>{})), invalid_argument_error);
    EXPECT_THROW(sync_wait(when_all(std::vector<task<void>>{})), invalid_argument_error);
    EXPECT_THROW(sync_wait(when_any(std::vector<task<int>>{})), invalid_argument_error);
    EXPECT_THROW(sync_wait(when_any(std::vector<task<void>>{})), invalid_argument_error);
}

TEST(when_all, a_stop_reaches_every_task) {
    for (bool const before : {true, false}) {
        event first;
        event second;
        std::stop_source source;
        outcome<std::vector<int>> ended;
        if (before) source.request_stop();
        start(with_stop_token(when_all(list_of(after(first, 1), after(second, 2))), source.get_token()), ended.callback());
        if (!before) {
            source.request_stop();
            first.deliver();
            EXPECT_EQ(ended.calls, 0);
            second.deliver();
        }
        EXPECT_TRUE(is_cancelled(ended.error));
    }
}

TEST(when_all, destroyed_while_it_waits_it_unlinks_all) {
    event first;
    event second;
    event third;
    auto nested = when_all(list_of(pass(second), pass(third)));
    auto const user = run_owned(when_all(list_of(pass(first), std::move(nested))));
    EXPECT_TRUE(first.has_waiter() && second.has_waiter() && third.has_waiter());
    user.frame.destroy();
    EXPECT_FALSE(first.has_waiter() || second.has_waiter() || third.has_waiter());
    first.set();
}

task<int> remember_freeing(event& at, std::shared_ptr<int> kept) {
    co_await at;
    co_return *kept;
}

TEST(when_all, frees_each_task_when_it_ends) {
    event first;
    event second;
    outcome<std::vector<int>> ended;
    auto const kept = std::make_shared<int>(1);
    start(when_all(list_of(remember_freeing(first, kept), remember_freeing(second, kept))), ended.callback());
    EXPECT_EQ(kept.use_count(), 3);
    first.set();
    EXPECT_EQ(kept.use_count(), 2);
    second.set();
    EXPECT_EQ(kept.use_count(), 1);
}

// ---- when_any

TEST(when_any, the_first_value_wins_and_the_others_are_stopped) {
    event first;
    event second;
    outcome<first_of<int>> ended;
    start(when_any(list_of(after(first, 1), after(second, 2))), ended.callback());
    second.set();
    EXPECT_EQ(ended.calls, 0);  // the loser has not ended yet
    EXPECT_TRUE(first.was_asked_to_stop());
    first.deliver();
    ASSERT_TRUE(ended.value);
    EXPECT_EQ(ended.value->index, 1U);
    EXPECT_EQ(ended.value->value, 2);
}

TEST(when_any, a_loser_that_ends_with_a_value_all_the_same_changes_nothing) {
    event first;
    event second;
    outcome<first_of<int>> ended;
    start(when_any(list_of(after(first, 1), after(second, 2))), ended.callback());
    second.set();
    first.set();
    ASSERT_TRUE(ended.value);
    EXPECT_EQ(ended.value->value, 2);
    first.deliver();
    EXPECT_EQ(ended.calls, 1);
}

TEST(when_any, the_first_error_wins_too) {
    event first;
    event second;
    outcome<first_of<int>> ended;
    start(when_any(list_of(failing_after(first), after(second, 2))), ended.callback());
    first.set();
    second.deliver();
    ASSERT_TRUE(ended.error);
    EXPECT_THROW(std::rethrow_exception(ended.error), timeout_error);
}

TEST(when_any, says_which_task_without_a_value_was_first) {
    event first;
    event second;
    outcome<std::size_t> ended;
    start(when_any(list_of(pass(first), pass(second))), ended.callback());
    second.set();
    first.deliver();
    EXPECT_EQ(ended.value, 1U);
}

TEST(when_any, a_task_that_ends_at_once_keeps_the_others_from_waiting) {
    event never;
    auto const winner = sync_wait(when_any(list_of(immediately(1), after(never, 2))));
    EXPECT_EQ(winner.index, 0U);
    EXPECT_FALSE(never.has_waiter());
}

// ---- several threads (these are for the sanitizers, and for whoever resumes twice)

constexpr int rounds = 2'000;

TEST(task_races, a_stop_against_a_completion_ends_exactly_once) {
    worker home;
    worker setter;
    worker stopper;
    int values = 0;
    int stops = 0;
    for (int i = 0; i != rounds; ++i) {
        auto const at = std::make_shared<event>(home);
        std::stop_source source;
        setter.post([at] { event::set_from_elsewhere(at); });
        stopper.post([source]() mutable { source.request_stop(); });
        try {
            values += sync_wait(with_stop_token(after(*at, 1), source.get_token()));
        } catch (cancelled_error const&) {
            ++stops;
        }
    }
    EXPECT_EQ(values + stops, rounds);
    RecordProperty("stopped", stops);
}

TEST(task_races, a_stop_against_several_completions_ends_exactly_once) {
    worker one;
    worker other;
    worker stopper;
    int values = 0;
    int stops = 0;
    for (int i = 0; i != rounds; ++i) {
        event first{one};
        event second{other};
        std::stop_source source;
        stopper.post([source]() mutable { source.request_stop(); });
        first.set();
        second.set();
        try {
            auto both = when_all(list_of(after(first, 1), after(second, 2)));
            values += sync_wait(std::move(both), source.get_token()).size() == 2 ? 1 : 0;
        } catch (cancelled_error const&) {
            ++stops;
        }
    }
    EXPECT_EQ(values + stops, rounds);
}

TEST(task_races, two_threads_that_end_at_once_make_one_winner) {
    worker one;
    worker other;
    for (int i = 0; i != rounds; ++i) {
        event first{one};
        event second{other};
        first.set();
        second.set();
        auto const winner = sync_wait(when_any(list_of(after(first, 1), after(second, 2))));
        EXPECT_EQ(winner.value, winner.index == 0 ? 1 : 2);
    }
}

task<int> hop(worker& one, worker& other, int times) {
    int sum = 0;
    for (int i = 0; i != times; ++i) {
        event at{i % 2 == 0 ? one : other};
        at.set();
        sum += co_await after(at, 1);  // may end before this thread has suspended
    }
    co_return sum;
}

TEST(task_races, a_task_that_ends_while_its_awaiter_suspends_resumes_it_once) {
    worker one;
    worker other;
    EXPECT_EQ(sync_wait(hop(one, other, 5 * rounds)), 5 * rounds);
}

TEST(task_races, many_tasks_on_two_threads_all_come_back) {
    worker one;
    worker other;
    for (int i = 0; i != 20; ++i) {
        std::vector<task<int>> works;
        for (int j = 0; j != 50; ++j) works.push_back(hop(one, other, 4));
        int sum = 0;
        for (int const part : sync_wait(when_all(std::move(works)))) sum += part;
        EXPECT_EQ(sum, 200);
    }
}

}  // namespace
}  // namespace lockstep
