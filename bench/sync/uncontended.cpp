// Acquire and release with nobody in the way. The release is waited for.

#include "scripts/all.hpp"
#include "support/bare_lock.hpp"
#include "support/load.hpp"
#include "support/lock_load.hpp"
#include "support/redis_benchmark.hpp"
#include "sync/cases.hpp"
#include "support/crew.hpp"

#include <vector>

namespace lockstep::bench {
namespace {

/// One at a time, whatever else runs on the core goes into the time, and never makes it shorter.
template <class Run>
measurement fastest_of_five(std::size_t operations, Run run) {
    run(operations / 10 + 1);
    auto fastest = run(operations / 5 + 1);
    for (int i = 1; i != 5; ++i)
        if (auto const one = run(operations / 5 + 1); one.micros() < fastest.micros()) fastest = one;
    return fastest;
}

}  // namespace

void uncontended_many(stand& all, peer_kit& peers, std::string const& name) {
    constexpr std::size_t depth = 64;
    pin_this_thread(all.where.client);
    all.redis.command({"SCRIPT", "LOAD", scripts::compare_and_delete.text});
    auto through = all.connect();
    auto locks = locks_of(through, depth);
    auto const ours = [&](std::size_t n) {
        return run_load(through, {depth, n},
                        [&](load& work, client& by, std::size_t i) { return take_and_release(work, by, locks[i]); });
    };
    auto const bare = [&](std::size_t n) { return run_load(through, {depth, n}, lock_and_unlock); };
    auto const operations = operations_for(all, depth, ours);
    job what{.mode = "own", .contenders = depth};
    auto const other = peers.best(what, 1, all.where.client, peer_kit::best_by::rate);
    std::vector<contender> all_of_them{{"ours", [&] { return all.warm_then_measure(operations, depth, ours); }},
                                       {"bare", [&] { return all.warm_then_measure(operations, depth, bare); }}};
    if (other)
        all_of_them.push_back({other->library, [&] {
                                   auto const before = all.redis.cpu_seconds();
                                   auto result = other->members->run(what, all.chosen.length);
                                   result.server_cpu = all.redis.cpu_seconds() - before;
                                   return result;
                               }});
    rounds const seen{all_of_them, all.chosen};
    constexpr auto rate = &measurement::rate;
    constexpr auto server_cpu = &measurement::server_micros;
    all.rows.add({.name = name + ", server CPU, against the bare pair",
                  .value = seen.of(0, server_cpu).median,
                  .unit = "us",
                  .baseline = seen.of(1, server_cpu).median,
                  .ratio = seen.ratio(0, 1, server_cpu),
                  .kind = bar_kind::ratio_at_most,
                  .bar = 3.2});
    row against{.name = name + ", against the best peer",
                .value = seen.of(0, rate).median,
                .unit = "pairs/s",
                .kind = bar_kind::ratio_at_least,
                .bar = 1.5,
                .note = peers.why()};
    if (other) {
        against.name += " (" + other->library + ")";
        against.baseline = seen.of(2, rate).median;
        against.ratio = seen.ratio(0, 2, rate);
    }
    all.rows.add(against);
    all.rows.add({.name = name + ", against the bare pair",
                  .value = seen.of(0, rate).median,
                  .unit = "pairs/s",
                  .baseline = seen.of(1, rate).median,
                  .ratio = seen.ratio(0, 1, rate)});
    constexpr auto client_cpu = &measurement::client_micros;
    all.rows.add({.name = name + ", client CPU, against the bare pair",
                  .value = seen.of(0, client_cpu).median,
                  .unit = "us",
                  .baseline = seen.of(1, client_cpu).median,
                  .ratio = seen.ratio(0, 1, client_cpu)});
    all.require_one_connection(through);
}

void uncontended_one_at_a_time(stand& all, std::string const& name) {
    auto const core = all.where.server;
    pin_this_thread(core);
    all.redis.command({"SCRIPT", "LOAD", scripts::compare_and_delete.text});
    auto through = all.connect();
    auto locks = locks_of(through, 1);
    auto const ours = [&](std::size_t n) {
        return run_load(through, {1, n},
                        [&](load& work, client& by, std::size_t) { return take_and_release(work, by, locks[0]); });
    };
    auto const operations = operations_for(all, 10, ours);
    auto const benchmark = [&](std::size_t n) {
        return run_redis_benchmark(all.redis.where(), core, {1, n, {"SET", "bench:key", token}});
    };
    auto const bare = [&](std::size_t n) { return run_load(through, {1, n}, lock_and_unlock); };
    rounds const seen{{{"ours", [&] { return fastest_of_five(operations, ours); }},
                       {"redis-benchmark", [&] { return fastest_of_five(2 * operations, benchmark); }},
                       {"bare", [&] { return fastest_of_five(operations, bare); }}},
                      all.chosen};
    constexpr auto micros = &measurement::micros;
    all.rows.add({.name = name + ", pair, in round trips of redis-benchmark",
                  .value = seen.of(0, micros).median,
                  .unit = "us",
                  .baseline = seen.of(1, micros).median,
                  .ratio = seen.ratio(0, 1, micros),
                  .kind = bar_kind::ratio_at_most,
                  .bar = 2.3});
    all.rows.add({.name = name + ", bare pair, in round trips of redis-benchmark",
                  .value = seen.of(2, micros).median,
                  .unit = "us",
                  .baseline = seen.of(1, micros).median,
                  .ratio = seen.ratio(2, 1, micros)});
    all.require_one_connection(through);
}

}  // namespace lockstep::bench
