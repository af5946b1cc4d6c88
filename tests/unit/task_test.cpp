// task<T> by itself: laziness, ownership, values, errors, stack, foreign coroutines, sync_wait and start.
// Cancellation, when_all and when_any are in task_cancellation_test.cpp.

#include "task_support.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <any>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

namespace lockstep {
namespace {

using test::after;
using test::event;
using test::immediately;
using test::outcome;
using test::pass;
using test::worker;

static_assert(std::is_nothrow_move_constructible_v<task<int>> && std::is_nothrow_move_assignable_v<task<int>>);
static_assert(!std::is_copy_constructible_v<task<int>> && !std::is_copy_assignable_v<task<int>>);
static_assert(std::is_nothrow_default_constructible_v<task<>>);
static_assert(sizeof(task<std::string>) == sizeof(void*));

template <class T>
concept awaitable_as_an_lvalue = requires(T& work) { work.operator co_await(); };
static_assert(!awaitable_as_an_lvalue<task<int>>, "awaiting takes the task: write std::move");

// What lives in a coroutine frame, counted.
struct counted {
    explicit counted(int& alive) noexcept : alive_(&alive) { ++*alive_; }
    counted(counted const& other) noexcept : alive_(other.alive_) { ++*alive_; }
    ~counted() { --*alive_; }
    int* alive_;
};

task<void> note(bool& ran) {
    ran = true;
    co_return;
}

// ---- laziness and ownership

TEST(task, does_nothing_until_it_is_awaited) {
    bool ran = false;
    auto work = note(ran);
    EXPECT_FALSE(ran);
    sync_wait(std::move(work));
    EXPECT_TRUE(ran);
}

task<void> hold(counted, event& at) { co_await at; }

TEST(task, frees_its_arguments_when_it_is_destroyed_before_it_started) {
    int alive = 0;
    event never;
    {
        auto const work = hold(counted{alive}, never);
        EXPECT_EQ(alive, 1);
    }
    EXPECT_EQ(alive, 0);
    EXPECT_FALSE(never.has_waiter());
}

TEST(task, moving_takes_the_work_along) {
    bool first = false;
    bool second = false;
    auto one = note(first);
    auto other = note(second);
    one = std::move(other);  // drops what `one` had
    EXPECT_FALSE(other);     // NOLINT(bugprone-use-after-move)
    EXPECT_TRUE(one);
    sync_wait(std::move(one));
    EXPECT_FALSE(first);
    EXPECT_TRUE(second);
}

TEST(task, awaiting_an_empty_one_is_an_error_that_can_be_caught) {
    EXPECT_THROW(sync_wait(task<int>{}), invalid_argument_error);
    auto work = immediately(1);
    auto const taken = std::move(work);
    EXPECT_THROW(sync_wait(std::move(work)), invalid_argument_error);  // NOLINT(bugprone-use-after-move)
}

task<int> await_twice(task<int> work) {
    int sum = co_await std::move(work);
    try {
        sum += co_await std::move(work);  // NOLINT(bugprone-use-after-move)
    } catch (invalid_argument_error const&) {
        sum += 100;
    }
    co_return sum;
}

TEST(task, awaiting_twice_is_an_error_that_can_be_caught) { EXPECT_EQ(sync_wait(await_twice(immediately(7))), 107); }

// ---- values and errors

struct no_default {
    explicit no_default(int n) noexcept : number(n) {}
    int number;
};

struct fixed {  // can be made, never assigned
    std::string const text;
};

TEST(task, returns_values_of_many_kinds) {
    EXPECT_EQ(sync_wait(immediately(std::string(100, 'x'))), std::string(100, 'x'));
    EXPECT_EQ(*sync_wait(immediately(std::make_unique<int>(5))), 5);
    EXPECT_EQ(sync_wait(immediately(no_default{3})).number, 3);
    EXPECT_EQ(sync_wait(immediately(fixed{"a"})).text, "a");
    EXPECT_EQ(std::any_cast<int>(sync_wait(immediately(std::any{4}))), 4);
    EXPECT_TRUE(sync_wait(immediately(true)));
    int target = 0;
    *sync_wait(immediately(&target)) = 9;  // instead of a reference
    EXPECT_EQ(target, 9);
    EXPECT_EQ(sync_wait(immediately(std::exception_ptr{})), nullptr);
}

task<int> fail(std::string text) {
    throw std::runtime_error(text);
    co_return 0;
}

task<std::string> describe(task<int> work) {
    std::string what;
    try {
        co_await std::move(work);
    } catch (std::runtime_error const& problem) {
        what = problem.what();
    }
    co_return what;
}

TEST(task, throws_its_error_where_it_is_awaited) {
    EXPECT_EQ(sync_wait(describe(fail("broken"))), "broken");
    EXPECT_THROW(sync_wait(fail("broken")), std::runtime_error);
}

struct throws_when_it_goes {
    ~throws_when_it_goes() noexcept(false) { throw std::runtime_error("going"); }
};

task<std::shared_ptr<int>> returns_then_throws(std::shared_ptr<int> value) {
    throws_when_it_goes const last;
    co_return value;
}

TEST(task, an_error_after_the_value_replaces_it) {
    auto const value = std::make_shared<int>(1);
    EXPECT_THROW(sync_wait(returns_then_throws(value)), std::runtime_error);
    EXPECT_EQ(value.use_count(), 1);
}

task<std::shared_ptr<int>> pass_on(task<std::shared_ptr<int>> inner) { co_return co_await std::move(inner); }

TEST(task, keeps_no_copy_of_what_it_returned) {
    auto value = std::make_shared<int>(1);
    auto const same = sync_wait(pass_on(immediately(std::move(value))));
    EXPECT_EQ(same.use_count(), 1);
}

// ---- the stack

struct stack_range {
    std::uintptr_t low = UINTPTR_MAX;
    std::uintptr_t high = 0;
    void look() noexcept {
        auto const here = reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0));
        low = std::min(low, here);
        high = std::max(high, here);
    }
    std::uintptr_t size() const noexcept { return high - low; }
};

task<int> leaf(stack_range& range) {
    range.look();
    co_return 1;
}

task<int> many(int count, stack_range& range) {
    int sum = 0;
    for (int i = 0; i != count; ++i) sum += co_await leaf(range);
    co_return sum;
}

TEST(task, a_million_that_end_at_once_use_no_stack) {
    stack_range range;
    EXPECT_EQ(sync_wait(many(1'000'000, range)), 1'000'000);
    EXPECT_LT(range.size(), 4096U);
}

// An endless tape of events, so that each wait ends by a resumption from outside.
task<int> wait_many(int count, std::vector<std::unique_ptr<event>>& tape, stack_range& range) {
    int sum = 0;
    for (int i = 0; i != count; ++i) {
        co_await pass(*tape[static_cast<std::size_t>(i) % tape.size()]);
        range.look();
        ++sum;
    }
    co_return sum;
}

TEST(task, a_million_that_are_resumed_use_no_stack) {
    constexpr int count = 1'000'000;
    stack_range range;
    std::vector<std::unique_ptr<event>> tape(2);
    for (auto& one : tape) one = std::make_unique<event>();
    outcome<int> ended;
    start(wait_many(count, tape, range), ended.callback());
    for (std::size_t i = 0; ended.calls == 0; i = (i + 1) % tape.size()) {
        auto const current = std::exchange(tape[i], std::make_unique<event>());
        ASSERT_TRUE(current->has_waiter());
        current->set();
    }
    EXPECT_EQ(ended.value, count);
    EXPECT_LT(range.size(), 4096U);
}

task<int> nested(int depth, event* at) {
    if (depth == 0) {
        if (at != nullptr) co_await *at;
        co_return 0;
    }
    co_return 1 + co_await nested(depth - 1, at);
}

// A level takes some 110 bytes of stack where it begins and, optimised, none where it ends. Of 8 MB that is 70,000 levels.
TEST(task, ten_thousand_levels_fit_on_the_stack) {
#ifdef __SANITIZE_ADDRESS__
    constexpr int levels = 4'000;  // with 1,400 bytes each
#else
    constexpr int levels = 10'000;
#endif
    EXPECT_EQ(sync_wait(nested(levels, nullptr)), levels);
    event bottom;
    outcome<int> ended;
    start(nested(levels, &bottom), ended.callback());
    bottom.set();
    EXPECT_EQ(ended.value, levels);
}

// ---- suspension

task<void> record(event& at, std::vector<int>& order) {
    order.push_back(1);
    co_await pass(at);
    order.push_back(3);
}

TEST(task, goes_on_inside_the_call_that_resumes_it) {
    event at;
    std::vector<int> order;
    bool ended = false;
    start(record(at, order), [&](std::exception_ptr) { ended = true; });
    EXPECT_FALSE(ended);
    order.push_back(2);
    at.set();
    EXPECT_TRUE(ended);
    EXPECT_EQ(order, (std::vector{1, 2, 3}));
}

// A coroutine type that knows nothing of Lockstep: runs at once, is destroyed by its owner.
class foreign {
public:
    struct promise_type {
        foreign get_return_object() noexcept { return foreign{std::coroutine_handle<promise_type>::from_promise(*this)}; }
        std::suspend_never initial_suspend() const noexcept { return {}; }
        std::suspend_always final_suspend() const noexcept { return {}; }
        void return_void() const noexcept {}
        void unhandled_exception() const noexcept { std::terminate(); }
    };
    foreign(foreign&& other) noexcept : frame_(std::exchange(other.frame_, nullptr)) {}
    ~foreign() {
        if (frame_) frame_.destroy();
    }
    bool done() const noexcept { return frame_.done(); }

private:
    explicit foreign(std::coroutine_handle<promise_type> frame) noexcept : frame_(frame) {}
    std::coroutine_handle<promise_type> frame_;
};

foreign use_in_foreign(event& at, std::string& result) {
    result = co_await after(at, std::string{"value"});
    try {
        co_await fail("broken");
    } catch (std::runtime_error const& problem) {
        result += problem.what();
    }
}

TEST(task, can_be_awaited_in_any_coroutine) {
    event at;
    std::string result;
    auto const user = use_in_foreign(at, result);
    EXPECT_FALSE(user.done());
    at.set();
    EXPECT_TRUE(user.done());
    EXPECT_EQ(result, "valuebroken");
}

task<void> two_levels(event& at, counted kept) {
    counted const local{kept};
    co_await hold(kept, at);
}

foreign wait_in_foreign(event& at, counted kept, bool& resumed) {
    co_await two_levels(at, kept);
    resumed = true;
}

TEST(task, destroying_the_coroutine_that_awaits_it_unlinks_it) {
    int alive = 0;
    bool resumed = false;
    event at;
    {
        auto const user = wait_in_foreign(at, counted{alive}, resumed);
        EXPECT_TRUE(at.has_waiter());
        EXPECT_GE(alive, 4);
    }
    EXPECT_EQ(alive, 0);
    EXPECT_FALSE(at.has_waiter());
    at.set();
    EXPECT_FALSE(resumed);
}

// ---- start

TEST(start, calls_back_once_with_the_value) {
    event at;
    outcome<std::unique_ptr<int>> ended;
    start(after(at, std::make_unique<int>(4)), ended.callback());
    EXPECT_EQ(ended.calls, 0);
    at.set();
    EXPECT_EQ(ended.calls, 1);
    EXPECT_FALSE(ended.error);
    ASSERT_TRUE(ended.value.has_value());
    EXPECT_EQ(**ended.value, 4);
}

TEST(start, calls_back_with_the_error_and_no_value) {
    outcome<int> ended;
    start(fail("broken"), ended.callback());
    EXPECT_EQ(ended.calls, 1);
    EXPECT_TRUE(ended.error);
    EXPECT_FALSE(ended.value);
}

TEST(start, calls_back_without_a_value_for_void) {
    int calls = 0;
    event at;
    start(pass(at), [&](std::exception_ptr error) { calls += error ? 100 : 1; });
    at.set();
    EXPECT_EQ(calls, 1);
}

TEST(start, has_freed_the_task_before_it_calls_back) {
    int alive = 0;
    int seen = -1;
    event at;
    start(hold(counted{alive}, at), [&](std::exception_ptr) { seen = alive; });
    EXPECT_GT(alive, 0);
    at.set();
    EXPECT_EQ(seen, 0);
}

// ---- sync_wait

task<std::thread::id> thread_after(event& at) {
    co_await at;
    co_return std::this_thread::get_id();
}

TEST(sync_wait, blocks_until_another_thread_ends_the_task) {
    worker home;
    for (int i = 0; i != 200; ++i) {
        event at{home};
        if (i % 2 == 0) at.set();
        auto work = thread_after(at);
        if (i % 2 == 1) home.post([&] { at.set(); });
        EXPECT_EQ(sync_wait(std::move(work)), home.id());
    }
}

TEST(sync_wait, throws_the_error_of_another_thread_here) {
    worker home;
    event at{home};
    at.set();
    EXPECT_THROW(sync_wait(test::failing_after(at)), timeout_error);
}

TEST(sync_wait, refuses_to_block_an_io_thread) {
    bool ran = false;
    {
        detail::io_thread_mark const outer;
        {
            detail::io_thread_mark const inner;
            EXPECT_THROW(sync_wait(note(ran)), would_deadlock_error);
        }
        EXPECT_THROW(sync_wait(note(ran)), would_deadlock_error);
    }
    EXPECT_FALSE(ran);
    sync_wait(note(ran));
    EXPECT_TRUE(ran);
}

}  // namespace
}  // namespace lockstep
