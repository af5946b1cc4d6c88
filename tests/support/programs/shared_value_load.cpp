// Threads that read and change one shared value and write down what they did, for a checker (tests/state/register_history.hpp):
//
//     shared_value_load <url> <name> <threads> <operations of each> <seed>
//
// Lines: "try <value>" before each write; then "<kind> <begin> <end> <version> <expected> <value or ->", times in ns of the monotonic clock, which
// is the same for all processes.
#include <lockstep/client.hpp>
#include <lockstep/error.hpp>
#include <lockstep/shared_value.hpp>

#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <mutex>
#include <random>
#include <string>
#include <thread>
#include <vector>

namespace {

std::mutex output;

void say(std::string const& line) {
    std::lock_guard const guard{output};
    std::puts(line.c_str());
    std::fflush(stdout);
}

std::int64_t now() { return std::chrono::steady_clock::now().time_since_epoch().count(); }

std::string line(char const* kind, std::int64_t begin, std::uint64_t version, std::uint64_t expected, std::string const& value) {
    return std::string{kind} + ' ' + std::to_string(begin) + ' ' + std::to_string(now()) + ' ' + std::to_string(version) + ' ' +
           std::to_string(expected) + ' ' + (value.empty() ? "-" : value);
}

void work(lockstep::client& client, std::string const& name, int number, int count, unsigned seed) {
    lockstep::shared_value<std::string> value{client, name};
    std::minstd_rand random{seed};
    std::uint64_t seen = 0;
    for (int i = 0; i < count; ++i) {
        auto const text = std::to_string(getpid()) + '.' + std::to_string(number) + '.' + std::to_string(i);
        auto const choice = random() % 4;
        if (choice > 1) say("try " + text);
        auto const begin = now();
        try {
            if (choice < 2) {
                auto const found = value.get();
                seen = found ? found->version : 0;
                say(line("read", begin, seen, 0, found ? found->value : ""));
            } else if (choice == 2) {
                seen = value.set(text);
                say(line("write", begin, seen, 0, text));
            } else {
                auto const made = value.compare_and_set(seen, text);
                say(line(made ? "swap" : "refused", begin, made.value_or(0), seen, text));
            }
        } catch (lockstep::error const&) {
            // What was tried and not answered is known by its "try".
        }
    }
}

}  // namespace

int main(int argc, char** argv) {
    if (argc != 6) return 2;
    lockstep::client client{argv[1]};
    std::vector<std::thread> threads;
    for (int i = 0; i < std::stoi(argv[3]); ++i) {
        threads.emplace_back(
            [&, i] { work(client, argv[2], i, std::stoi(argv[4]), static_cast<unsigned>(std::stoi(argv[5]) + i)); });
    }
    for (auto& one : threads) one.join();
    say("done");
}
