// What the transport does, on this user's embedded server: one connection, many requests, pushes.
#include <lockstep/lockstep.hpp>

#include <chrono>
#include <cstdio>
#include <latch>
#include <string>
#include <vector>

namespace {

lockstep::task<long> add_up(lockstep::client& client, int count) {
    std::vector<lockstep::task<long>> all;
    for (int i = 0; i != count; ++i) all.push_back(client.async_command<long>("INCRBY", "quickstart:sum", i));
    co_await lockstep::when_all(std::move(all));
    co_return co_await client.async_command<long>("GET", "quickstart:sum");
}

}  // namespace

int main() try {
    lockstep::client client;
    std::printf("server        %s\n", client.description().c_str());

    client.command("SET", "quickstart:greeting", "hello");
    std::printf("a value       %s\n", client.command<std::string>("GET", "quickstart:greeting").c_str());

    client.command("DEL", "quickstart:sum");
    auto const begin = std::chrono::steady_clock::now();
    auto const sum = lockstep::sync_wait(add_up(client, 10'000));
    auto const took = std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::steady_clock::now() - begin);
    std::printf("10,000 at once sum is %ld, in %lld ms\n", sum, static_cast<long long>(took.count()));

    std::latch heard{3};
    auto news = client.subscribe("quickstart:news", [&heard](lockstep::message const&) { heard.count_down(); });
    for (int i = 0; i != 3; ++i) client.command("PUBLISH", "quickstart:news", "extra");
    heard.wait();
    std::printf("messages      3 sent, 3 heard\n");

    auto const seen = client.statistics();
    std::printf("on the wire   %llu requests in %llu writes over %llu connections\n", static_cast<unsigned long long>(seen.requests),
                static_cast<unsigned long long>(seen.batches), static_cast<unsigned long long>(seen.connections));
    client.command("DEL", "quickstart:sum", "quickstart:greeting");
} catch (lockstep::error const& problem) {
    std::fprintf(stderr, "quickstart: %s\n", problem.what());
    return 1;
}
