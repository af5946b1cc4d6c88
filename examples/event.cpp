// Three signals wake three waiters, one each, in whichever program they are.
#include <lockstep/lockstep.hpp>

#include <chrono>
#include <iostream>
#include <thread>
#include <vector>

using namespace std::chrono_literals;

int main() try {
    lockstep::embedded_server const server;
    lockstep::client here{server.url()};
    lockstep::client there{server.url()};  // as if it were another program

    lockstep::event ready{here, "batch-ready"};
    {
        std::vector<std::jthread> waiters;
        for (int i = 0; i != 3; ++i) waiters.emplace_back([&there] { lockstep::event{there, "batch-ready"}.wait(); });
        for (int i = 0; i != 3; ++i) ready.set();
    }
    std::cout << "three were woken; one more signal: " << (ready.wait_for(10ms) ? "yes" : "no") << '\n';

    ready.set();  // nobody waits, so it is kept
    std::cout << "kept for whoever comes: " << (ready.wait_for(10s) ? "yes" : "no") << '\n';
} catch (lockstep::error const& problem) {
    std::cerr << "event: " << problem.what() << '\n';
    return 1;
}
