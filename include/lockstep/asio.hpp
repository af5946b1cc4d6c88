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
/// ends in `cancelled_error`. Its context must outlive the request, unless the client lives on the same one: close the client, or let its
/// requests end, before you destroy a context that awaits them. (Direct `co_await client.async_command(...)` inside `asio::awaitable` does not compile: Boost 1.81's
/// bridge for foreign awaitables is broken, so the bridge is explicit.)

#include <lockstep/client.hpp>
#include <lockstep/detail/asio.hpp>
#include <lockstep/task.hpp>

#include <boost/asio/async_result.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <type_traits>
#include <utility>

namespace lockstep {

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

/// co_await resume_on(executor): the rest of this (plain) coroutine runs there. If the executor's context is destroyed before it comes to
/// that, the coroutine goes on with `cancelled_error` on the thread that destroys it. `join()` a thread_pool before you destroy it: its
/// destructor alone does not wait for the thread that has just posted there.
template <class Executor>
detail::move_to<Executor> resume_on(Executor executor) {
    return detail::move_to<Executor>{std::move(executor)};
}

/// A client without a thread: all its I/O happens on `executor` (on a strand of it, so a pool of threads is fine). Keep the executor
/// running while the client is used. `io_context::run` returns when the client is closed (or gone) and nothing else is left to do.
/// Destroying the context closes the client: what waits ends in `cancelled_error`, on the thread that destroys it.
/// Blocking forms throw `would_deadlock_error` on the executor's own threads.
template <class Executor>
client make_client(Executor const& executor, client_options const& options = {}) {
    return detail::make_client_on(executor, detail::runs_here(executor), options);
}

}  // namespace lockstep
