// A read that a near cache answers itself: what it costs the caller.

#include <lockstep/near_cache.hpp>

#include "state/cases.hpp"
#include "support/cpu.hpp"

#include <lockstep/shared_value.hpp>

#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace lockstep::bench {
namespace {

using cache = near_cache<std::string>;

double nanoseconds(cache const& from, std::string const& name, std::size_t reads) {
    auto const begin = wall_seconds();
    for (std::size_t i = 0; i != reads; ++i)
        if (!from.get(name)) throw std::runtime_error("the value is gone");
    return (wall_seconds() - begin) * 1e9 / static_cast<double>(reads);
}

task<void> await_reads(cache const& from, std::string name, std::size_t reads) {
    for (std::size_t i = 0; i != reads; ++i) {
        auto reading = from.async_get(name);
        auto const found = co_await std::move(reading);
        if (!found) throw std::runtime_error("the value is gone");
    }
}

double nanoseconds_awaited(cache const& from, std::string const& name, std::size_t reads) {
    auto const begin = wall_seconds();
    sync_wait(await_reads(from, name, reads));
    return (wall_seconds() - begin) * 1e9 / static_cast<double>(reads);
}

}  // namespace

void near_cache_hit(stand& all, peer_kit&, std::string const& name) {
    pin_this_thread(all.where.client);
    auto through = all.connect();
    shared_value<std::string>{through, "bench"}.set(std::string(32, 'x'));
    shared_value<std::string>{through, "other"}.set(std::string(32, 'x'));
    cache const near{through, {.max_age = std::chrono::hours{1}}};
    std::size_t const reads = all.chosen.is_quick() ? 2'000'000 : 10'000'000;
    nanoseconds(near, "bench", reads / 10);
    nanoseconds(near, "other", 1);
    std::vector<double> seen;
    for (std::size_t i = 0; i != all.chosen.rounds; ++i) seen.push_back(nanoseconds(near, "bench", reads / all.chosen.rounds));
    all.rows.add({.name = name, .value = summarize(seen).median, .unit = "ns", .kind = bar_kind::value_at_most, .bar = 200});
    seen.clear();
    for (std::size_t i = 0; i != all.chosen.rounds; ++i) seen.push_back(nanoseconds_awaited(near, "bench", reads / all.chosen.rounds));
    all.rows.add({.name = name + ", awaited", .value = summarize(seen).median, .unit = "ns"});

    // Two threads on two cores: each reads a value of its own, then both the same, whose lock and count go to and fro.
    auto const two = [&](std::string const& theirs) {
        double other = 0;
        std::thread second{[&] {
            pin_this_thread(all.where.server);
            other = nanoseconds(near, theirs, reads);
        }};
        auto const mine = nanoseconds(near, "bench", reads);
        second.join();
        return (mine + other) / 2;
    };
    all.rows.add({.name = name + ", two threads", .value = two("other"), .unit = "ns"});
    all.rows.add({.name = name + ", two threads, the same value", .value = two("bench"), .unit = "ns"});
    if (near.statistics().misses != 2) throw std::runtime_error("a read was not answered by the near cache");
}

}  // namespace lockstep::bench
