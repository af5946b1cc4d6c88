// One of the processes that a chaos run torments: uses the primitives at random, asks the referee for the guarded resource, and
// reports all it does (support/history.hpp).
//   chaos_worker <url> <referee's socket> <who> <seed> <threads>
// The first line of its input ends its work: it says "idle" then, and the client lives on. The end of its input ends it, in order.
//
// To add a primitive: a function of support/chaos_holder.cpp or chaos_meeter.cpp, called by do_something().
#include "support/chaos_actor.hpp"
#include "support/chaos_holder.hpp"
#include "support/chaos_meeter.hpp"

#include <lockstep/client.hpp>
#include <lockstep/log.hpp>

#include <atomic>
#include <exception>
#include <iostream>
#include <string>
#include <thread>
#include <vector>

namespace {

using namespace lockstep::chaos;

void do_something(actor& self, holder& holds, meeter& meetings) {
    auto const kind = self.below(40);
    if (kind < 9) return holds.use_mutex();
    if (kind < 15) return holds.use_semaphore();
    if (kind < 21) return holds.use_shared();
    if (kind < 26) return meetings.set_event();
    if (kind < 32) return meetings.wait_for_event();
    if (kind < 37) return meetings.use_barrier();
    holds.adopt();
}

void work(actor self, std::atomic<bool> const& stop) {
    holder holds{self};
    meeter meetings{self};
    while (!stop) {
        do_something(self, holds, meetings);
        std::this_thread::sleep_for(self.up_to(8));
    }
}

}  // namespace

int main(int count, char** arguments) try {
    if (count != 6) return 2;
    lockstep::set_log_hook([](lockstep::log_level, std::string_view) {});  // leases are lost here all the time
    std::string const who = arguments[3];
    auto const seed = std::stoull(arguments[4]);
    lockstep::client client{{.url = arguments[1], .name = who}};
    std::atomic<bool> stop{false};
    std::atomic<bool> failed{false};
    std::vector<std::thread> threads;
    for (unsigned i = 0; i < std::stoul(arguments[5]); ++i) {
        threads.emplace_back([&, i] {
            try {
                work(actor{client, arguments[2], who + "." + std::to_string(i), seed + i}, stop);
            } catch (std::exception const& failure) {
                std::cerr << who << ": " << failure.what() << std::endl;
                failed = true;
            }
        });
    }
    std::string line;
    std::getline(std::cin, line);
    stop = true;
    for (auto& one : threads) one.join();
    std::cout << "idle" << std::endl;
    std::getline(std::cin, line);
    client.close();
    return failed ? 1 : 0;
} catch (std::exception const& failure) {
    std::cerr << "failed: " << failure.what() << std::endl;
    return 1;
}
