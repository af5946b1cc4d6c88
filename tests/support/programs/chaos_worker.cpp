// One of the processes that a chaos run torments: uses the primitives at random, asks the referee for the guarded resource, and
// reports all it does (support/history.hpp).
//   chaos_worker <url> <referee's socket> <who> <seed> <threads>
// The first line of its input ends its work: it says "idle" then, and the client lives on. The end of its input ends it, in order.
//
// To add a primitive: a function like use_mutex, called by work().
#include "support/history.hpp"
#include "support/witness.hpp"

#include <lockstep/client.hpp>
#include <lockstep/error.hpp>
#include <lockstep/log.hpp>
#include <lockstep/mutex.hpp>

#include <atomic>
#include <chrono>
#include <exception>
#include <iostream>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <vector>

namespace {

using namespace lockstep::chaos;
using namespace std::chrono_literals;
using std::chrono::milliseconds;

class worker {
public:
    worker(lockstep::client& by, std::string const& referee, std::string who, std::uint64_t seed)
        : line_{referee}, who_{std::move(who)}, random_{seed} {
        // Renewed and passed on among threads; strictly in order; and one that is not renewed.
        mutexes_.emplace_back(by, "mutex-0", lockstep::lease_options{.ttl = 600ms, .claim_window = 150ms});
        mutexes_.emplace_back(by, "mutex-1", lockstep::lease_options{.ttl = 1s, .cohort_passes = 0, .claim_window = 150ms});
        mutexes_.emplace_back(by, "mutex-2", lockstep::lease_options{.ttl = 400ms, .renew = false, .claim_window = 100ms});
    }

    void work(std::atomic<bool> const& stop) {
        while (!stop) {
            use_mutex(below(mutexes_.size()));
            std::this_thread::sleep_for(milliseconds{below(9)});
        }
    }

private:
    std::uint64_t below(std::uint64_t limit) { return random_() % limit; }

    event about(std::string const& what) const { return {.t = boot_ns(), .who = who_, .what = what, .name = name_, .fence = fence_}; }
    void report(std::string const& what, std::string note = {}) {
        auto one = about(what);
        one.note = std::move(note);
        line_.report(to_json(one));
    }
    /// The time is read before the lease is asked: see hold_record.
    bool is_sure(lockstep::lease const& held) {
        auto const one = about("sure");
        if (!held.valid()) return false;
        line_.report(to_json(one));
        return true;
    }

    void use_mutex(std::size_t which) {
        name_ = "mutex-" + std::to_string(which);
        fence_ = 0;
        report("ask");
        std::optional<lockstep::lease> held;
        try {
            held = take(mutexes_[which]);
        } catch (lockstep::error const& problem) {
            return report("failed", problem.code().message() + ": " + problem.what());
        }
        if (!held) return report("none");
        fence_ = held->fence();
        report("granted");
        guard(*held);
        try {
            if (below(3) == 0) {
                held.reset();
            } else {
                held->release();
            }
            report("ended");
        } catch (lockstep::error const& problem) {
            report("ended", problem.what());
        }
    }

    std::optional<lockstep::lease> take(lockstep::mutex& from) {
        switch (below(6)) {
            case 0: return from.try_acquire();
            case 1: return from.try_acquire_for(milliseconds{below(100)});
            default: return from.try_acquire_for(3s);
        }
    }

    /// Uses what the lease guards, for a moment or for longer than the lease lasts without renewals.
    void guard(lockstep::lease const& held) {
        auto const kind = below(100);
        auto const length = kind < 4 ? milliseconds{below(1'500)} : kind < 40 ? milliseconds{below(12)} : 0ms;
        auto const end = std::chrono::steady_clock::now() + length;
        do {
            if (!is_sure(held)) return;
            static_cast<void>(line_.ask(to_json(about("access"))));
            if (length != 0ms) std::this_thread::sleep_for(2ms);
        } while (std::chrono::steady_clock::now() < end);
        is_sure(held);
    }

    lockstep::test::witness line_;
    std::string who_;
    std::mt19937_64 random_;
    std::vector<lockstep::mutex> mutexes_;
    std::string name_;
    std::uint64_t fence_ = 0;
};

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
                worker{client, arguments[2], who + "." + std::to_string(i), seed + i}.work(stop);
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
