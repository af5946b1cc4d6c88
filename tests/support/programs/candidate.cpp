// A candidate of an election, for tests that stop and kill it.
//   candidate <url> <name> <id> <ttl ms> <renew deadline ms> <retry period ms> <book>
// Runs for ever. Says "elected <term>" when it leads, "ended <term>" when its work has ended, and "lost <term>" if it was lost by then.
// Writes into the book (support/reign_book.hpp) for as long as it may lead. A line of its input has it resign: then it stands again, at
// the end of the line. The end of its input ends it, in order.
#include "../reign_book.hpp"

#include <lockstep/client.hpp>
#include <lockstep/election.hpp>

#include <atomic>
#include <chrono>
#include <exception>
#include <iostream>
#include <mutex>
#include <string>
#include <thread>

namespace {

using std::chrono::milliseconds;

std::mutex mouth;

void say(std::string const& line) {
    std::lock_guard const guard{mouth};
    std::cout << line << std::endl;
}

}  // namespace

int main(int count, char** arguments) try {
    if (count != 8) return 2;
    lockstep::client client{{.url = arguments[1], .name = "candidate"}};
    auto const time = [&](int which) { return milliseconds{std::stoi(arguments[which])}; };
    lockstep::election election{client, arguments[2],
                                {.id = arguments[3], .ttl = time(4), .renew_deadline = time(5), .retry_period = time(6)}};
    lockstep::test::reign_book book{arguments[7]};
    std::stop_source stop;
    std::atomic<bool> resigns{false};
    std::thread const reads{[&] {
        for (std::string line; std::getline(std::cin, line);) resigns = true;
        stop.request_stop();
    }};
    auto const lead = [&](lockstep::leadership const& leads) {
        resigns = false;
        say("elected " + std::to_string(leads.term()));
        book.keep(leads.term(), [&] {
            std::this_thread::sleep_for(std::chrono::microseconds{100});
            return leads.valid() && !resigns && !stop.stop_requested();
        });
        say("ended " + std::to_string(leads.term()));
    };
    auto const lost = [](lockstep::leadership const& was) { say("lost " + std::to_string(was.term())); };
    while (!stop.stop_requested()) {
        try {
            election.run(lead, lost, stop.get_token());
        } catch (lockstep::error const& problem) {
            say(std::string{"failed: "} + problem.what());
        }
    }
    const_cast<std::thread&>(reads).join();
    return 0;
} catch (std::exception const& failure) {
    say(std::string{"failed: "} + failure.what());
    return 1;
}
