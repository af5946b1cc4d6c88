#include "sync/members.hpp"

#include "support/cpu.hpp"
#include "support/load.hpp"
#include "sync/crew.hpp"
#include "sync/raw_loops.hpp"

#include <lockstep/mutex.hpp>

#include <fmt/core.h>

#include <chrono>
#include <coroutine>
#include <cstdio>
#include <iostream>
#include <utility>

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

/// Wakes the coroutine that waits for it; all on the client's I/O thread.
class bell {
public:
    void ring() noexcept {
        rung_ = true;
        if (auto const next = std::exchange(waiting_, nullptr)) next.resume();
    }
    bool await_ready() const noexcept { return rung_; }
    void await_suspend(std::coroutine_handle<> next) noexcept { waiting_ = next; }
    void await_resume() noexcept { rung_ = false; }

private:
    bool rung_ = false;
    std::coroutine_handle<> waiting_;
};

/// Holds it for some round trips and rings for the other one, which comes back then: so it is queued and does nothing but wait when this
/// one releases. After its own release it waits for the other's bell: with an acquisition, or with a timer to set, it would keep the core
/// busy when the other one wants to claim.
worker relay(load&, client& by, mutex& lock, relay_place place, bell& rung, std::size_t times, std::vector<turn>& turns) {
    for (std::size_t i = 0; i != times; ++i) {
        if (place.waits_before(i)) co_await rung;
        auto lease = co_await lock.async_acquire();
        auto const acquired = wall_seconds();
        for (int ping = 0; ping != relay_pings; ++ping) co_await by.async_command("PING");
        if (place.rings_in(i, times)) co_await by.async_command("PUBLISH", place.other(), "");
        for (int ping = 0; ping != relay_pings; ++ping) co_await by.async_command("PING");
        turns.push_back({acquired, wall_seconds()});
        co_await lease.async_release();
    }
}

void serve_relay(std::string const& address, relay_place place) {
    auto through = connect(address);
    mutex lock{through, "bench:relay"};
    bell rung;
    auto const listening = through.subscribe(place.own(), [&](message const&) { rung.ring(); });
    serve_turns([&](std::size_t times) {
        std::vector<turn> turns;
        run_load(through, {1, times},
                 [&](load& work, client& by, std::size_t) { return relay(work, by, lock, place, rung, times, turns); });
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
        if (role == "relay") serve_relay(address, {words.at(4) == "first"});
        if (role == "script-relay") serve_script_relay(endpoint_of(address), {words.at(4) == "first"});
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
