// A call through a closed circuit breaker: what it costs the caller, and the server.

#include "state/cases.hpp"
#include "support/cpu.hpp"

#include <lockstep/circuit_breaker.hpp>

#include <cstdint>
#include <thread>
#include <vector>

namespace lockstep::bench {
namespace {

double nanoseconds(circuit_breaker& breaker, std::size_t calls) {
    auto const begin = wall_seconds();
    for (std::size_t i = 0; i != calls; ++i) breaker.execute([] {});
    return (wall_seconds() - begin) * 1e9 / static_cast<double>(calls);
}

}  // namespace

void closed_breaker(stand& all, peer_kit&, std::string const& name) {
    pin_this_thread(all.where.client);
    auto through = all.connect();
    circuit_breaker breaker{through, "bench", {.failure_ratio = 0.5}};
    breaker.execute([] {});
    std::size_t const calls = all.chosen.is_quick() ? 2'000'000 : 10'000'000;
    nanoseconds(breaker, calls / 10);
    std::vector<double> seen;
    std::vector<double> permits;
    for (std::size_t i = 0; i != all.chosen.rounds; ++i) {
        seen.push_back(nanoseconds(breaker, calls / all.chosen.rounds));
        auto const begin = wall_seconds();
        for (std::size_t n = 0; n != calls / all.chosen.rounds; ++n) breaker.allow().success();
        permits.push_back((wall_seconds() - begin) * 1e9 / static_cast<double>(calls / all.chosen.rounds));
    }
    all.rows.add({.name = name + ", execute", .value = summarize(seen).median, .unit = "ns", .kind = bar_kind::value_at_most, .bar = 200});
    all.rows.add({.name = name + ", allow and success", .value = summarize(permits).median, .unit = "ns", .kind = bar_kind::value_at_most, .bar = 200});

    // Two threads on two cores, which report to the same object.
    double other = 0;
    std::thread second{[&] {
        pin_this_thread(all.where.server);
        other = nanoseconds(breaker, calls);
    }};
    auto const mine = nanoseconds(breaker, calls);
    second.join();
    all.rows.add({.name = name + ", execute, two threads", .value = (mine + other) / 2, .unit = "ns", .kind = bar_kind::value_at_most, .bar = 200});

    auto before = all.redis.counts();
    auto const begin = wall_seconds();
    std::uint64_t made = 0;
    for (; wall_seconds() - begin < 1; made += 1'000) nanoseconds(breaker, 1'000);
    auto now = all.redis.counts();
    auto const reports = static_cast<double>(now["evalsha"] - before["evalsha"] + now["eval"] - before["eval"]);
    all.rows.add({.name = name + ", reports per second of calls", .value = reports, .unit = "commands", .kind = bar_kind::value_at_most, .bar = 10});
    all.rows.add({.name = name + ", reports per 1,000 calls", .value = reports * 1'000 / static_cast<double>(made), .unit = "commands", .kind = bar_kind::value_at_most, .bar = 1});
}

}  // namespace lockstep::bench
