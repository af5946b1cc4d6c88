// A program that takes part in a barrier, to be killed while it does.
//   barrier_participant <url> <name> <parties> <ttl ms> wait   arrives and waits; says "passed" or "failed: ..."
//   barrier_participant <url> <name> <parties> <ttl ms> run    says "running" in the completion function and stays there
#include <lockstep/barrier.hpp>

#include <unistd.h>

#include <chrono>
#include <exception>
#include <iostream>
#include <string>

int main(int count, char** arguments) try {
    if (count != 6) return 2;
    lockstep::client client{arguments[1]};
    lockstep::lease_options const options{.ttl = std::chrono::milliseconds{std::stol(arguments[4])}};
    auto const stay = [] {
        std::cout << "running" << std::endl;
        while (true) ::pause();
    };
    bool const runs = std::string{arguments[5]} == "run";
    auto const parties = std::stol(arguments[3]);
    auto barrier = runs ? lockstep::barrier{client, arguments[2], parties, stay, options}
                        : lockstep::barrier{client, arguments[2], parties, options};
    barrier.arrive_and_wait();
    std::cout << "passed" << std::endl;
    return 0;
} catch (std::exception const& failure) {
    std::cout << "failed: " << failure.what() << std::endl;
    return 1;
}
