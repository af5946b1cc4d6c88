// What a stranger's first program does: a server of its own, a client, a coroutine. With an argument it runs that program on its server.
#include <lockstep/asio.hpp>
#include <lockstep/json.hpp>
#include <lockstep/lockstep.hpp>

#include <boost/asio/use_future.hpp>

#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>

lockstep::task<std::string> greet(lockstep::client& client) {
    co_await client.async_command("SET", "greeting", "ok");
    co_return co_await client.async_command<std::string>("GET", "greeting");
}

int main(int argc, char** argv) try {
    lockstep::embedded_server server;
    if (argc > 1) {
        ::setenv("LOCKSTEP_URL", server.url().c_str(), 1);
        return std::system(("'" + std::string{argv[1]} + "'").c_str()) == 0 ? 0 : 1;
    }
    lockstep::client client{server.url()};
    if (client.command<std::string>("PING") != "PONG") return 1;
    if (lockstep::codec<std::map<std::string, int>>::encode({{"one", 1}}) != R"({"one":1})") return 1;
    std::puts(lockstep::spawn(greet(client), boost::asio::use_future).get().c_str());
} catch (lockstep::error const& problem) {
    std::fprintf(stderr, "%s\n", problem.what());
    return 1;
}
