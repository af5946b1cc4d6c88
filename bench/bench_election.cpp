// How fast an election moves on: from a resignation to the next leader, and from the death of a leader to the next one. docs/bench.md says
// how to read it.

#include "base/names.hpp"
#include "scripts/all.hpp"
#include "support/bare_lock.hpp"
#include "support/load.hpp"
#include "support/process.hpp"
#include "support/redis_benchmark.hpp"
#include "support/settings.hpp"
#include "support/stand.hpp"

#include <lockstep/election.hpp>

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <functional>
#include <iostream>
#include <memory>
#include <sstream>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace lockstep::bench {
namespace {

using namespace std::chrono_literals;

constexpr auto name_of_election = "bench:election";

struct turn {
    double elected;
    double resigned;  ///< when that was called
    int who = 0;
};

// ---- what this program is when it was started by itself: bench_election member <role> <port or path of the server>

void say(std::string const& line) {
    fmt::print("{}\n", line);
    std::fflush(stdout);
}

client connect(std::string const& address) {
    bool const is_path = address.find('/') != std::string::npos;
    return client{client_options{.url = is_path ? "unix://" + address : "redis://127.0.0.1:" + address, .name = "bench_member"}};
}

/// As the relay of bench_sync: leads for some round trips, so that the other one is in line by then, and stays away for a moment after it
/// has resigned. (It may block the I/O thread, which has nothing else to do here.)
worker relay(load& work, client& by, election& in, std::vector<turn>& turns) {
    while (work.take()) {
        auto leads = co_await in.async_campaign();
        auto const elected = wall_seconds();
        for (int i = 0; i != 20; ++i) co_await by.async_command("PING");
        turns.push_back({elected, wall_seconds()});
        leads = {};
        co_await by.async_command("PING");  // what was given back is sent
        std::this_thread::sleep_for(200us);
    }
}

void serve_relay(std::string const& address) {
    auto through = connect(address);
    election in{through, name_of_election};
    through.command("PING");
    say("ready");
    for (std::size_t times = 0; std::cin >> times;) {
        std::vector<turn> turns;
        run_load(through, {1, times}, [&](load& work, client& by, std::size_t) { return relay(work, by, in, turns); });
        std::string line;
        for (auto const& one : turns) line += fmt::format("{:.7f} {:.7f} ", one.elected, one.resigned);
        say(line);
    }
}

/// Stands once, and says when it leads.
void serve_candidate(std::string const& address) {
    auto through = connect(address);
    election in{through, name_of_election, {.ttl = 1s, .renew_deadline = 700ms, .retry_period = 200ms}};
    through.command("PING");
    say("ready");
    in.run([](leadership const& leads) {
        say(fmt::format("{:.6f}", wall_seconds()));
        while (!leads.stop_token().stop_requested()) std::this_thread::sleep_for(10ms);
    });
}

int run_as_member(int argc, char** argv) {
    std::vector<std::string> const words(argv, argv + argc);
    if (words.size() < 4 || words[1] != "member") return -1;
    try {
        words[2] == "relay" ? serve_relay(words[3]) : serve_candidate(words[3]);
        return 0;
    } catch (std::exception const& problem) {
        say(problem.what());
        return 1;
    }
}

std::unique_ptr<process> start_member(stand& all, std::string const& role, int core) {
    auto const where = all.redis.where();
    auto made = std::make_unique<process>(
        std::vector<std::string>{"/proc/self/exe", "member", role, where.path.empty() ? std::to_string(where.port) : where.path}, core);
    if (auto const said = made->hear(); said != "ready") throw std::runtime_error("a member says " + said);
    return made;
}

// ---- the cases

measurement hand_offs(std::array<std::unique_ptr<process>, 2>& both, std::size_t times) {
    for (auto& one : both) one->tell(std::to_string(times));
    std::vector<turn> turns;
    for (int who = 0; who != 2; ++who) {
        std::istringstream words{both[static_cast<std::size_t>(who)]->hear()};
        for (turn next{.elected = 0, .resigned = 0, .who = who}; words >> next.elected >> next.resigned;) turns.push_back(next);
    }
    std::sort(turns.begin(), turns.end(), [](turn const& a, turn const& b) { return a.elected < b.elected; });
    std::vector<double> taken;
    for (std::size_t i = 1; i < turns.size(); ++i)
        if (turns[i].who != turns[i - 1].who) taken.push_back(turns[i].elected - turns[i - 1].resigned);
    if (taken.size() < times) throw std::runtime_error("the relay did not alternate");
    return {.operations = 1, .seconds = summarize(taken).median};
}

/// It tells the average only, and whatever else runs on the core is in that: the fastest of three. Ours is a median.
measurement round_trip(stand& all, int core) {
    measurement fastest;
    for (int i = 0; i != 3; ++i) {
        auto const one = run_redis_benchmark(all.redis.where(), core, {1, 2000, {"SET", "bench:key", token}});
        if (i == 0 || one.micros() < fastest.micros()) fastest = one;
    }
    return fastest;
}

void hand_off_on(stand& all, std::string const& name, int core) {
    pin_this_thread(core);
    for (auto const* const script : {&scripts::election_acquire, &scripts::election_claim, &scripts::election_release, &scripts::election_announce})
        all.redis.command({"SCRIPT", "LOAD", script->text});
    std::array<std::unique_ptr<process>, 2> both{start_member(all, "relay", core), start_member(all, "relay", core)};
    auto const times = static_cast<std::size_t>(all.chosen.length.count());  // of half a ms or so each
    hand_offs(both, 20);
    rounds const seen{{{"ours", [&] { return hand_offs(both, times); }}, {"redis-benchmark", [&] { return round_trip(all, core); }}}, all.chosen};
    constexpr auto micros = &measurement::micros;
    all.rows.add({.name = name + ", median, in round trips of redis-benchmark",
                  .value = seen.of(0, micros).median,
                  .unit = "us",
                  .baseline = seen.of(1, micros).median,
                  .ratio = seen.ratio(0, 1, micros),
                  .kind = bar_kind::ratio_at_most,
                  .bar = 3});
}

void hand_off(stand& all, std::string const& name) {
    hand_off_on(all, name, all.where.server);
    if (all.where.distinct()) hand_off_on(all, name + ", server on a core of its own", all.where.client);
}

void wait_until(std::function<bool()> const& condition) {
    for (int look = 0; look != 5000; ++look) {
        if (condition()) return;
        std::this_thread::sleep_for(1ms);
    }
    throw std::runtime_error("the candidates do not stand");
}

double beyond_the_ttl_ms(stand& all) {
    auto const key = base::key_name("lockstep", name_of_election, "election");
    auto first = start_member(all, "candidate", all.where.client);
    first->hear();
    auto second = start_member(all, "candidate", all.where.client);
    wait_until([&] { return all.redis.command({"HGET", key, "l"}) == "1"; });
    first.reset();                       // SIGKILL, and waits for its end
    std::this_thread::sleep_for(5ms);    // a renewal that was on its way
    auto const end_ms = std::stod(all.redis.command({"HGET", key, "e"}));
    auto const now_ms = std::chrono::duration<double, std::milli>(std::chrono::system_clock::now().time_since_epoch()).count();
    auto const end = wall_seconds() + (end_ms - now_ms) * 1e-3;
    return (std::stod(second->hear()) - end) * 1e3;
}

void death(stand& all, std::string const& name) {
    pin_this_thread(all.where.client);
    double longest = 0;
    for (int i = 0; i != (all.chosen.is_quick() ? 1 : 5); ++i) {
        longest = std::max(longest, beyond_the_ttl_ms(all));
        all.redis.command({"FLUSHALL"});
    }
    all.rows.add({.name = name + ", to the next one, beyond its ttl", .value = longest, .unit = "ms", .kind = bar_kind::value_at_most, .bar = 200});
}

void measure(settings const& wanted) {
    auto chosen = wanted;
    if (chosen.is_quick()) chosen.most_per_case = std::chrono::seconds{2};
    report rows{"election"};
    stand all{chosen, rows, "bench_election"};
    auto const run = [&](std::string const& name, auto const& work) {
        if (!chosen.wants(name)) return;
        chosen.progress(name);
        work(all, name);
        all.redis.command({"FLUSHALL"});
    };
    run("resigned to elected", hand_off);
    run("leader killed", death);
    chosen.progress("");
    rows.print(chosen);
}

}  // namespace
}  // namespace lockstep::bench

int main(int argc, char** argv) {
    if (int const code = lockstep::bench::run_as_member(argc, argv); code >= 0) return code;
    return lockstep::bench::run_bench(argc, argv, "Elections: how fast the next one leads", lockstep::bench::measure);
}
