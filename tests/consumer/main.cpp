// What a stranger's first program does: a server of its own, a client, a coroutine.
#include <lockstep/asio.hpp>
#include <lockstep/lockstep.hpp>

#include <boost/asio/use_future.hpp>

#include <cstdio>
#include <string>

lockstep::task<std::string> greet(lockstep::client& client) {
    co_await client.async_command("SET", "greeting", "ok");
    co_return co_await client.async_command<std::string>("GET", "greeting");
}

int main() try {
    lockstep::embedded_server server;
    lockstep::client client{server.url()};
    if (client.command<std::string>("PING") != "PONG") return 1;
    std::puts(lockstep::spawn(greet(client), boost::asio::use_future).get().c_str());
} catch (lockstep::error const& problem) {
    std::fprintf(stderr, "%s\n", problem.what());
    return 1;
}
