// What it costs to be seen, and to look. docs/bench.md says how to read it.

#include "support/cpu.hpp"
#include "support/lock_load.hpp"
#include "support/measurement.hpp"
#include "support/settings.hpp"
#include "support/stand.hpp"

#include <lockstep/monitor.hpp>

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace lockstep::bench {
namespace {

/// 64 pairs at once with monitoring on, off, on while somebody watches, and with the flight recorder.
void cost_of_being_seen(stand& all, std::string const& name) {
    constexpr std::size_t depth = 64;
    pin_this_thread(all.where.client);
    struct contestant {
        client through;
        std::vector<mutex> locks;
    };
    auto const make = [&](client_options options) {
        options.url = all.redis.url();
        contestant made{client{options}, {}};
        made.locks = locks_of(made.through, depth);
        return made;
    };
    auto on = make({});
    auto off = make({.monitoring = false});
    auto traced = make({.trace = [](trace_record const&) {}});
    auto const run_with = [&](contestant& who) {
        return [&who](std::size_t n) {
            return run_load(who.through, {depth, n}, [&](load& work, client& by, std::size_t i) { return take_and_release(work, by, who.locks[i]); });
        };
    };
    std::size_t const operations = all.chosen.is_quick() ? 20'000 : 60'000;
    auto const measured = [&](contestant& who) { return [&] { return all.warm_then_measure(operations, depth, run_with(who)); }; };
    client eye{all.redis.url()};
    rounds const seen{{{"on", measured(on)},
                       {"off", measured(off)},
                       {"traced", measured(traced)},
                       {"watched", [&] {
                            auto const watching = monitor{eye}.watch([](snapshot const&) {});
                            return all.warm_then_measure(operations, depth, run_with(on));
                        }}},
                      all.chosen};
    auto const compare = [&](std::string const& what, std::size_t which, rounds::figure figure, bool has_bar) {
        all.rows.add({.name = name + what,
                      .value = seen.of(which, figure).median,
                      .unit = "us",
                      .baseline = seen.of(1, figure).median,
                      .ratio = seen.ratio(which, 1, figure),
                      .kind = has_bar ? bar_kind::ratio_at_most : bar_kind::none,
                      .bar = 1.05});
    };
    compare(", client CPU, monitoring on against off", 0, &measurement::client_micros, true);
    compare(", server CPU, monitoring on against off", 0, &measurement::server_micros, true);
    compare(", client CPU, with a trace hook against monitoring off", 2, &measurement::client_micros, false);
    compare(", client CPU, while somebody watches against monitoring off", 3, &measurement::client_micros, false);
    compare(", server CPU, while somebody watches against monitoring off", 3, &measurement::server_micros, false);
}

/// So many locks are held, by one client, and somebody looks at them all.
void cost_of_looking(stand& all, std::string const& name, std::size_t holds) {
    pin_this_thread(all.where.client);
    auto through = all.connect();
    auto locks = locks_of(through, holds);
    std::vector<lease> held;
    held.reserve(holds);
    for (std::size_t from = 0; from < holds; from += 1'000) {
        std::vector<task<lease>> some;
        for (std::size_t i = from; i < std::min(holds, from + 1'000); ++i) some.push_back(locks[i].async_acquire());
        auto got = sync_wait(when_all(std::move(some)));
        for (auto& one : got) held.push_back(std::move(one));
    }
    client eye{all.redis.url()};
    // The index of objects is told some seconds later.
    for (auto const until = wall_seconds() + 30; monitor{eye}.active().size() != holds;) {
        if (wall_seconds() > until) throw std::runtime_error("not all holds are listed");
        std::this_thread::sleep_for(std::chrono::milliseconds{100});
    }
    all.redis.command({"CONFIG", "SET", "slowlog-log-slower-than", "0"});
    all.redis.command({"CONFIG", "SET", "slowlog-max-len", "10000"});
    auto const longest_ms = [&] {
        std::int64_t most = 0;
        auto const said = eye.command("SLOWLOG", "GET", "-1");
        for (auto const entry : said) most = std::max(most, entry[2].integer());
        return static_cast<double>(most) / 1e3;
    };
    std::vector<double> totals, longest, times;
    for (std::size_t i = 0; i < std::min<std::size_t>(all.chosen.rounds, 7); ++i) {
        all.redis.command({"SLOWLOG", "RESET"});
        auto const cpu = all.redis.cpu_seconds();
        auto const begun = wall_seconds();
        if (monitor{eye}.active().size() != holds) throw std::runtime_error("not all holds were seen");
        times.push_back((wall_seconds() - begun) * 1e3);
        totals.push_back((all.redis.cpu_seconds() - cpu) * 1e3);
        longest.push_back(longest_ms());
    }
    auto const row = [&](std::string const& what, std::vector<double> values, double bar) {
        all.rows.add({.name = name + what,
                      .value = summarize(std::move(values)).median,
                      .unit = "ms",
                      .kind = bar > 0 ? bar_kind::value_at_most : bar_kind::none,
                      .bar = bar});
    };
    row(", server time in total", totals, 100);
    row(", longest command", longest, 5);
    row(", until it is there", times, 0);
}

void measure(settings const& chosen) {
    report rows{"monitor"};
    stand all{chosen, rows, "bench_monitor"};
    auto const run = [&](std::string const& name, auto const& work) {
        if (!chosen.wants(name)) return;
        chosen.progress(name);
        work(name);
        all.redis.command({"FLUSHALL"});
    };
    run("64 pairs at once", [&](auto& name) { cost_of_being_seen(all, name); });
    run("active() of 10000 holds", [&](auto& name) { cost_of_looking(all, name, 10'000); });
    chosen.progress("");
    rows.print(chosen);
}

}  // namespace
}  // namespace lockstep::bench

int main(int argc, char** argv) {
    return lockstep::bench::run_bench(argc, argv, "What monitoring costs those who are seen, and the server of those who look",
                                      lockstep::bench::measure);
}
