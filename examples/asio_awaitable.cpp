// Lockstep in a Boost.Asio program: a client without a thread, awaited in asio::awaitable, with a callback, and cancelled.
#include <lockstep/asio.hpp>
#include <lockstep/embedded_server.hpp>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/experimental/awaitable_operators.hpp>
#include <boost/asio/steady_timer.hpp>

#include <chrono>
#include <iostream>
#include <string>

namespace asio = boost::asio;
using namespace asio::experimental::awaitable_operators;
using namespace std::chrono_literals;

namespace {

asio::awaitable<void> show(lockstep::client& client) {
    co_await lockstep::as_awaitable(client.async_command("SET", "greeting", "hello"));
    auto const text = co_await lockstep::as_awaitable(client.async_command<std::string>("GET", "greeting"));
    std::cout << "awaitable  " << text << '\n';

    // Whichever is first; the other is cancelled. Nobody pushes to this list, so that is the timer.
    auto session = co_await lockstep::as_awaitable(client.async_open_session());
    asio::steady_timer timer{co_await asio::this_coro::executor, 50ms};
    lockstep::request const pop{"BLPOP", "empty list", 0};
    auto const first =
        co_await (lockstep::as_awaitable(session.async_execute(pop)) || timer.async_wait(asio::use_awaitable));
    std::cout << "cancelled  " << (first.index() == 1 ? "the timer was first" : "somebody pushed") << '\n';
}

}  // namespace

int main() try {
    lockstep::embedded_server const server;
    asio::io_context context;
    auto client = lockstep::make_client(context.get_executor(), {.url = server.url()});

    int failures = 0;
    asio::co_spawn(context, show(client), [&](std::exception_ptr error) {
        failures += error ? 1 : 0;
        // With a callback. Closing the client lets run() return: nothing is left to do.
        lockstep::spawn(client.async_command<long>("INCR", "hits"), [&](std::exception_ptr refused, long hits) {
            failures += refused ? 1 : 0;
            std::cout << "callback   hit " << hits << '\n';
            client.close();
        });
    });
    context.run();
    return failures;
} catch (lockstep::error const& problem) {
    std::cerr << "asio_awaitable: " << problem.what() << '\n';
    return 1;
}
