// A program that takes a mutex when it is told to, so that a test can stop or kill it meanwhile.
//   holder <url> <name> <ttl ms> <claim window ms>
// Answers each line of its input with one of its own:
//   acquire   "held <fence>", when it has it
//   release   "released"
//   check     "valid" or "invalid"
//   work      acts for as long as it may: "working" when it begins; "last <ns>" when it may not any more, the steady clock's time before
//             it last found its lease valid; and "stopped" when the stop token has tripped
// or with "failed: <why>". The end of its input ends it, in order.
#include <lockstep/client.hpp>
#include <lockstep/mutex.hpp>

#include <chrono>
#include <exception>
#include <iostream>
#include <stop_token>
#include <string>
#include <thread>

namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

void say(std::string const& line) { std::cout << line << std::endl; }

void work(lockstep::lease const& held) {
    auto const stop = held.stop_token();
    say("working");
    steady_clock::time_point last{};
    for (auto now = steady_clock::now(); held.valid(); now = steady_clock::now()) last = now;
    say("last " + std::to_string(last.time_since_epoch().count()));
    while (!stop.stop_requested()) std::this_thread::sleep_for(milliseconds{1});
    say("stopped");
}

void obey(std::string const& order, lockstep::mutex& mutex, lockstep::lease& held) {
    if (order == "acquire") {
        held = mutex.acquire();
        say("held " + std::to_string(held.fence()));
    } else if (order == "release") {
        held.release();
        say("released");
    } else if (order == "check") {
        say(held.valid() ? "valid" : "invalid");
    } else if (order == "work") {
        work(held);
    } else {
        say("failed: there is no order " + order);
    }
}

}  // namespace

int main(int count, char** arguments) try {
    if (count != 5) return 2;
    lockstep::client client{{.url = arguments[1], .name = "holder"}};
    lockstep::mutex mutex{client, arguments[2],
                          {.ttl = milliseconds{std::stoi(arguments[3])}, .claim_window = milliseconds{std::stoi(arguments[4])}}};
    lockstep::lease held;
    for (std::string order; std::getline(std::cin, order);) {
        try {
            obey(order, mutex, held);
        } catch (std::exception const& failure) {
            say(std::string{"failed: "} + failure.what());
        }
    }
    return 0;
} catch (std::exception const& failure) {
    say(std::string{"failed: "} + failure.what());
    return 1;
}
