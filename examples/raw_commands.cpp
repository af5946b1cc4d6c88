// Raw commands and what their replies turn into: blocking, as coroutines, and many at once.
#include <lockstep/lockstep.hpp>

#include <chrono>
#include <iostream>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

using namespace std::chrono_literals;

namespace {

// The same calls in a coroutine. Parameters are taken by value or outlive the task, as the client does here.
lockstep::task<long> sum_of_squares(lockstep::client& client, int count) {
    std::vector<lockstep::task<long>> all;
    for (int i = 1; i <= count; ++i) all.push_back(client.async_command<long>("INCRBY", "squares", i * i));
    co_await lockstep::when_all(std::move(all));  // all on one connection, in a few writes
    co_return co_await client.async_command<long>("GET", "squares");
}

}  // namespace

int main() try {
    lockstep::embedded_server const server;  // private to this program; a real one says lockstep::client client;
    lockstep::client client{server.url()};

    client.command("SET", "greeting", "hello");
    std::cout << "text      " << client.command<std::string>("GET", "greeting") << '\n';

    auto const missing = client.command<std::optional<std::string>>("GET", "no such key");
    std::cout << "missing   " << (missing ? "there" : "not there") << '\n';

    client.command("HSET", "user:7", "name", "Ada", "city", "London");
    for (auto const& [field, value] : client.command<std::map<std::string, std::string>>("HGETALL", "user:7")) {
        std::cout << "field     " << field << " is " << value << '\n';
    }

    client.command("ZADD", "scores", 3.5, "ada", 2, "grace");
    using score = std::pair<std::string, double>;
    for (auto const& [name, points] : client.command<std::vector<score>>("ZRANGE", "scores", 0, -1, "WITHSCORES")) {
        std::cout << "score     " << name << " has " << points << '\n';
    }

    // Terms of a single request: its time, and that it may be sent again if the connection breaks.
    auto const length = client.execute<int>(lockstep::request{"STRLEN", "greeting"}.within(500ms).repeatable());
    std::cout << "length    " << length << '\n';

    std::cout << "coroutine " << lockstep::sync_wait(sum_of_squares(client, 100)) << '\n';

    // An error of the server is an exception with the server's own words.
    try {
        client.command("INCR", "greeting");
    } catch (lockstep::server_error const& refused) {
        std::cout << "refused   " << refused.text() << '\n';
    }
} catch (lockstep::error const& problem) {
    std::cerr << "raw_commands: " << problem.what() << '\n';
    return 1;
}
