#pragma once

/// Lockstep in Boost.Asio programs. The only header that includes Asio.
///
///     asio::awaitable<void> report(lockstep::client& client) {
///         auto value = co_await lockstep::as_awaitable(client.async_command<std::string>("GET", "key"));
///     }
///     lockstep::spawn(client.async_command("GET", "key"), [](std::exception_ptr error, lockstep::reply value) { ... });
///     std::future<lockstep::reply> later = lockstep::spawn(client.async_command("GET", "key"), asio::use_future);
///
///     auto client = lockstep::make_client(context.get_executor());        // no thread of its own
///
/// What is awaited or given a token resumes on the associated executor and obeys the associated cancellation slot: a cancelled task
/// ends in `cancelled_error`. (Direct `co_await client.async_command(...)` inside `asio::awaitable` does not compile: Boost 1.81's
/// bridge for foreign awaitables is broken, so the bridge is explicit.)

#include <lockstep/client.hpp>
#include <lockstep/task.hpp>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/associated_cancellation_slot.hpp>
#include <boost/asio/associated_executor.hpp>
#include <boost/asio/async_result.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/dispatch.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/system_executor.hpp>
#include <boost/asio/thread_pool.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <coroutine>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>

namespace lockstep {

namespace detail {

client make_client_on(boost::asio::any_io_executor executor, std::function<bool()> running_here, client_options const& options);

/// `void(std::exception_ptr, T)`, with an optional where a T can't be made out of nothing for the case of an error.
template <class T>
struct completion {
    using value = std::conditional_t<std::is_default_constructible_v<T>, T, std::optional<T>>;
    using signature = void(std::exception_ptr, value);
};
template <>
struct completion<void> {
    using signature = void(std::exception_ptr);
};

template <class T, class Handler>
void call(Handler handler, std::exception_ptr error, stored<T> value) {
    if constexpr (std::is_void_v<T>) {
        std::move(handler)(std::move(error));
    } else {
        using result = typename completion<T>::value;
        std::move(handler)(std::move(error), value ? result{std::move(*value)} : result{});
    }
}

struct initiate_task {
    template <class Handler, class T>
    void operator()(Handler handler, task<T> work) const {
        auto state = std::make_shared<cancel_state>();
        auto slot = boost::asio::get_associated_cancellation_slot(handler);
        if (slot.is_connected()) {
            slot.assign([weak = std::weak_ptr<cancel_state>{state}](boost::asio::cancellation_type) {
                if (auto const alive = weak.lock()) alive->request();
            });
        }
        auto executor = boost::asio::get_associated_executor(handler);
        auto finish = [handler = std::move(handler), slot, guard = boost::asio::make_work_guard(executor)](
                          std::exception_ptr error, stored<T> value) mutable {
            auto const where = guard.get_executor();
            auto complete = [handler = std::move(handler), slot, error = std::move(error), value = std::move(value)]() mutable {
                if (slot.is_connected()) slot.clear();
                call<T>(std::move(handler), std::move(error), std::move(value));
            };
            // Without an executor of its own a handler runs where the task ended. Otherwise it is always posted, so that it never runs
            // inside the call that started it, nor inside a turn of the client.
            if constexpr (std::is_same_v<std::remove_cv_t<decltype(where)>, boost::asio::system_executor>) {
                complete();
            } else {
                boost::asio::post(where, std::move(complete));
            }
            guard.reset();
        };
        run_root(std::move(work), std::move(state), std::move(finish));
    }
};

}  // namespace detail

/// Starts a task with a completion token: a callback, `use_future`, `use_awaitable`, `detached` ...
template <class T, class CompletionToken>
auto spawn(task<T> work, CompletionToken&& token) {
    return boost::asio::async_initiate<CompletionToken, typename detail::completion<T>::signature>(detail::initiate_task{}, token,
                                                                                                   std::move(work));
}

/// The task as an Asio awaitable.
template <class T>
boost::asio::awaitable<T> as_awaitable(task<T> work) {
    if constexpr (std::is_void_v<T>) {
        co_await spawn(std::move(work), boost::asio::use_awaitable);
    } else if constexpr (std::is_default_constructible_v<T>) {
        co_return co_await spawn(std::move(work), boost::asio::use_awaitable);
    } else {
        auto value = co_await spawn(std::move(work), boost::asio::use_awaitable);
        co_return std::move(*value);
    }
}

/// co_await resume_on(executor): the rest of this (plain) coroutine runs there.
template <class Executor>
auto resume_on(Executor executor) {
    struct awaiter {
        Executor executor;
        bool await_ready() const noexcept { return false; }
        void await_suspend(std::coroutine_handle<> awaiting) {
            boost::asio::post(executor, [awaiting] { awaiting.resume(); });
        }
        void await_resume() const noexcept {}
    };
    return awaiter{std::move(executor)};
}

/// A client without a thread: all its I/O happens on `executor` (on a strand of it, so a pool of threads is fine). Keep the executor
/// running while the client is used; close the client (or let it go) and let the executor run dry before you destroy its context.
/// Blocking forms throw `would_deadlock_error` on the executor's own threads.
template <class Executor>
client make_client(Executor const& executor, client_options const& options = {}) {
    std::function<bool()> running_here;
    if constexpr (requires { executor.running_in_this_thread(); }) {
        running_here = [executor] { return executor.running_in_this_thread(); };
    } else if constexpr (requires { executor.template target<boost::asio::io_context::executor_type>(); }) {
        if (auto const* context = executor.template target<boost::asio::io_context::executor_type>()) {
            running_here = [context = *context] { return context.running_in_this_thread(); };
        } else if (auto const* pool = executor.template target<boost::asio::thread_pool::executor_type>()) {
            running_here = [pool = *pool] { return pool.running_in_this_thread(); };
        }
    }
    return detail::make_client_on(executor, std::move(running_here), options);
}

}  // namespace lockstep
