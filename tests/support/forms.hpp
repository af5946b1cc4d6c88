// The two forms of every operation, so that a test is written once and run in both.
//
//     TYPED_TEST_SUITE(client_contract, lockstep::test::forms, lockstep::test::form_names);
//     TYPED_TEST(client_contract, answers) { EXPECT_EQ(TypeParam::command(client, "PING").text(), "PONG"); }
//
// `blocking` calls the blocking form from the test's thread. `coroutine` awaits the async_ form in a coroutine that runs
// on the client's I/O thread. For an operation that has no wrapper here: TypeParam::run(client, call, async_call), where
// call() returns the value and async_call() the task.
#pragma once

#include <lockstep/client.hpp>

#include <gtest/gtest.h>

#include <coroutine>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace lockstep::test {

// co_await next_turn{client}: the coroutine goes on on the client's I/O thread; at once where the client is closed.
class next_turn {
public:
    explicit next_turn(client const& of) : client_{of} {}
    [[nodiscard]] bool await_ready() const noexcept { return false; }
    bool await_suspend(std::coroutine_handle<> awaiting) const;
    void await_resume() const noexcept {}

private:
    client const& client_;
};

template <class T, class F>
task<T> in_next_turn(client const& of, F& make) {
    next_turn const turn{of};
    co_await turn;
    co_return co_await make();
}

inline task<bool> as_true(task<void> work) {
    co_await std::move(work);
    co_return true;
}

/// What `call` returns on the client's I/O thread.
template <class F>
task<std::invoke_result_t<F>> in_turn_of(client const& of, F call) {
    next_turn const turn{of};
    co_await turn;
    co_return call();
}

/// What was begun before has been sent when this returns.
inline void run_turn(client const& of) {
    sync_wait(in_turn_of(of, [] { return true; }));
}

struct blocking {
    static constexpr char const* name = "blocking";

    template <class F, class G>
    static auto run(client&, F call, G&&) {
        return call();
    }

    template <class T = lockstep::reply>
    static T execute(client& on, request command, std::stop_token token = {}) {
        return on.execute<T>(std::move(command), std::move(token));
    }
    template <class T = lockstep::reply, class... Args>
    static T command(client& on, std::string_view name, Args const&... args) {
        return on.command<T>(name, args...);
    }
    static auto execute(client& on, pipeline commands) { return on.execute(std::move(commands)); }
    static auto execute(client& on, transaction commands) { return on.execute(std::move(commands)); }
    static auto subscribe(client& on, subscription_options options) { return on.subscribe(std::move(options)); }
    static auto open_session(client& on, std::string_view key = {}) { return on.open_session(key); }

    template <class T = lockstep::reply, class... Args>
    static T command(client&, session& on, std::string_view name, Args const&... args) {
        return on.command<T>(name, args...);
    }
    static auto execute(client&, session& on, transaction commands) { return on.execute(std::move(commands)); }
};

struct coroutine {
    static constexpr char const* name = "coroutine";

    // make() returns the task; it is called on the I/O thread.
    template <class F>
    static auto await(client& on, F make, std::stop_token token = {}) {
        using value = typename decltype(make())::value_type;
        return sync_wait(in_next_turn<value>(on, make), std::move(token));
    }
    template <class F, class G>
    static auto run(client& on, F&&, G make, std::stop_token token = {}) {
        return await(on, std::move(make), std::move(token));
    }

    template <class T = lockstep::reply>
    static T execute(client& on, request command, std::stop_token token = {}) {
        return await(
            on, [&] { return on.async_execute<T>(std::move(command)); }, std::move(token));
    }
    template <class T = lockstep::reply, class... Args>
    static T command(client& on, std::string_view name, Args const&... args) {
        return await(on, [&] { return on.async_command<T>(name, args...); });
    }
    static auto execute(client& on, pipeline commands) {
        return await(on, [&] { return on.async_execute(std::move(commands)); });
    }
    static auto execute(client& on, transaction commands) {
        return await(on, [&] { return on.async_execute(std::move(commands)); });
    }
    static auto subscribe(client& on, subscription_options options) {
        return await(on, [&] { return on.async_subscribe(std::move(options)); });
    }
    static auto open_session(client& on, std::string_view key = {}) {
        return await(on, [&] { return on.async_open_session(key); });
    }

    template <class T = lockstep::reply, class... Args>
    static T command(client& of, session& on, std::string_view name, Args const&... args) {
        return await(of, [&] { return on.async_command<T>(name, args...); });
    }
    static auto execute(client& of, session& on, transaction commands) {
        return await(of, [&] { return on.async_execute(std::move(commands)); });
    }
};

using forms = testing::Types<blocking, coroutine>;

struct form_names {
    template <class Form>
    static std::string GetName(int) {
        return Form::name;
    }
};

}  // namespace lockstep::test
