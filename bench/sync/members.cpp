#include "sync/members.hpp"

#include "support/cpu.hpp"
#include "support/load.hpp"
#include "support/crew.hpp"
#include "sync/raw_loops.hpp"

#include <lockstep/mutex.hpp>

#include <fmt/core.h>

#include <chrono>
#include <cstdio>
#include <iostream>
#include <thread>

namespace lockstep::bench {
namespace {

using std::chrono::milliseconds;

endpoint endpoint_of(std::string const& address) {
    return address.find('/') == std::string::npos ? endpoint{.port = std::stoi(address)} : endpoint{.path = address};
}

client connect(std::string const& address) {
    auto const where = endpoint_of(address);
    auto const url = where.path.empty() ? "redis://127.0.0.1:" + std::to_string(where.port) : "unix://" + where.path;
    return client{client_options{.url = url, .name = "bench_member"}};
}

void say(std::string const& line) {
    fmt::print("{}\n", line);
    std::fflush(stdout);
}

// ---- contenders

/// The lease is dropped at the end of its scope: its release and the next acquisition leave in one write, as in the raw loops.
worker contend(load&, client&, mutex& lock, double end, outcome& seen, std::size_t index) {
    for (double begun = wall_seconds(); begun < end; begun = wall_seconds()) {
        auto const lease = co_await lock.async_acquire();
        seen.waits.push_back(wall_seconds() - begun);
        ++seen.counts[index];
    }
}

void serve_lock(std::string const& address) {
    auto through = connect(address);
    mutex shared{through, "bench:shared"};
    mutex strict{through, "bench:strict", {.cohort_passes = 0}};
    through.command("PING");
    serve_crew([&](assignment const& what) {
        auto& lock = what.mode == "strict" ? strict : shared;
        outcome seen{.counts = std::vector<std::size_t>(what.contenders)};
        seen.seconds = run_load(through, {what.contenders, 0}, [&](load& work, client& by, std::size_t index) {
                           return contend(work, by, lock, what.end, seen, index);
                       }).seconds;
        return seen;
    });
}

// ---- hand-off

/// Holds it for some round trips, so that the other one is queued by then and does nothing but wait. After the release it stays away for a
/// moment: else the server would be busy with its next acquisition while the other one wants to claim. Less than a ms each:
/// after a longer sleep one measures how cold the caches are. (It may block the I/O thread, which has nothing else to do here.)
worker relay(load& work, client& by, mutex& lock, std::vector<turn>& turns) {
    while (work.take()) {
        auto lease = co_await lock.async_acquire();
        auto const acquired = wall_seconds();
        for (int i = 0; i != 20; ++i) co_await by.async_command("PING");
        turns.push_back({acquired, wall_seconds()});
        lease = {};
        co_await by.async_command("PING");  // what was released is sent
        std::this_thread::sleep_for(std::chrono::microseconds{200});
    }
}

void serve_relay(std::string const& address) {
    auto through = connect(address);
    mutex lock{through, "bench:relay"};
    through.command("PING");
    serve_turns([&](std::size_t times) {
        std::vector<turn> turns;
        run_load(through, {1, times},
                 [&](load& work, client& by, std::size_t) { return relay(work, by, lock, turns); });
        return turns;
    });
}

// ---- those who hold, wait and get killed

/// acquire: says when it has it; release: says when that was called. In s of the monotonic clock.
void serve_person(std::string const& address, std::string const& name, milliseconds ttl) {
    auto through = connect(address);
    mutex lock{through, name, {.ttl = ttl}};
    through.command("PING");
    say("ready");
    lease held;
    for (std::string word; std::cin >> word;) {
        if (word == "acquire") {
            held = lock.acquire();
            say(fmt::format("{:.6f}", wall_seconds()));
        } else {
            auto const called = wall_seconds();
            held.release();
            say(fmt::format("{:.6f}", called));
        }
    }
}

/// Holds the names <prefix>0 to <prefix>n-1 until it is told to end.
void serve_holder(std::string const& address, std::string const& prefix, std::size_t count, milliseconds ttl) {
    auto through = connect(address);
    std::vector<lease> held;
    for (std::size_t i = 0; i != count; ++i)
        held.push_back(mutex{through, prefix + std::to_string(i), {.ttl = ttl}}.acquire());
    say("ready");
    std::string word;
    std::cin >> word;
    for (auto& one : held) one.release();
    say("released");
    std::cin >> word;
}

}  // namespace

std::vector<std::string> member_command(std::string_view role, endpoint const& where, std::vector<std::string> more) {
    std::vector<std::string> words{"/proc/self/exe", "member", std::string{role},
                                   where.path.empty() ? std::to_string(where.port) : where.path};
    words.insert(words.end(), more.begin(), more.end());
    return words;
}

int run_as_member(int argc, char** argv) {
    std::vector<std::string> const words(argv, argv + argc);
    if (words.size() < 4 || words[1] != "member") return -1;
    auto const& role = words[2];
    auto const& address = words[3];
    try {
        if (role == "lock") serve_lock(address);
        if (role == "token") serve_token(endpoint_of(address));
        if (role == "scripts") serve_scripts(endpoint_of(address));
        if (role == "relay") serve_relay(address);
        if (role == "script-relay") serve_script_relay(endpoint_of(address));
        if (role == "person") serve_person(address, words.at(4), milliseconds{std::stoi(words.at(5))});
        if (role == "holder")
            serve_holder(address, words.at(4), std::stoul(words.at(5)), milliseconds{std::stoi(words.at(6))});
        return 0;
    } catch (std::exception const& problem) {
        say(problem.what());
        return 1;
    }
}

}  // namespace lockstep::bench
