// Redlock with one node against bare Redis commands, and with one and five nodes against node-redlock. docs/bench.md says how to read it.

#include "scripts/all.hpp"
#include "support/bare_lock.hpp"
#include "support/cpu.hpp"
#include "support/load.hpp"
#include "support/measurement.hpp"
#include "support/peers.hpp"
#include "support/redis_benchmark.hpp"
#include "support/settings.hpp"
#include "support/stand.hpp"

#include <lockstep/redlock.hpp>

#include <fmt/core.h>

#include <algorithm>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

namespace lockstep::bench {
namespace {

constexpr std::size_t depth = 64;

worker take_and_release(load& work, redlock& lock) {
    while (work.take()) {
        auto lease = co_await lock.async_acquire();
        co_await lease.async_release();
    }
}

/// Gets onto the nodes' thread first, so that all workers begin there and the clocks are that thread's.
worker start_workers(load& work, std::vector<redlock>& locks) {
    auto lease = co_await locks.front().async_acquire();
    co_await lease.async_release();
    work.begin();
    for (auto& one : locks) take_and_release(work, one);
}

measurement run_pairs(std::vector<redlock>& locks, std::size_t pairs) {
    load work{locks.size() + 1, pairs};
    start_workers(work, locks);
    return work.result();
}

std::vector<redlock> locks_over(redlock_nodes const& nodes) {
    std::vector<redlock> all;
    for (std::size_t i = 0; i != depth; ++i) all.emplace_back(nodes, lock_key(i));
    return all;
}

/// A SET of each of some keys, then an EVALSHA of each of them: the same work for the server as so many pairs, and the time is the sum.
measurement run_benchmark_pairs(stand& all, std::size_t pairs) {
    auto const keys = (std::min<std::size_t>(pairs, 8 * 1024) + depth - 1) / depth * depth;
    measurement sum;
    while (sum.operations < pairs) {
        auto const take = run_redis_benchmark(all.redis.where(), all.where.client,
                                              {depth, keys, {"SET", "lock:__rand_int__", token, "NX", "PX", "30000"}, keys});
        auto const release = run_redis_benchmark(
            all.redis.where(), all.where.client,
            {depth, keys, {"EVALSHA", std::string{scripts::compare_and_delete.sha1}, "1", "lock:__rand_int__", token}, keys});
        if (all.redis.command({"DBSIZE"}) != "0") throw std::runtime_error("redis-benchmark did not release each lock");
        sum.operations += keys;
        sum.seconds += take.seconds + release.seconds;
        sum.client_cpu += take.client_cpu + release.client_cpu;
    }
    return sum;
}

void against_node_redlock(stand& all, std::string const& name, rounds const& seen, std::size_t peer, std::string const& why) {
    row against{.name = name + ", against node-redlock",
                .value = seen.of(0, &measurement::rate).median,
                .unit = "pairs/s",
                .kind = bar_kind::ratio_at_least,
                .bar = 3,
                .note = why};
    if (peer != 0) {
        against.baseline = seen.of(peer, &measurement::rate).median;
        against.ratio = seen.ratio(0, peer, &measurement::rate);
    }
    all.rows.add(against);
}

void one_node(stand& all, peer_kit& peers, std::string const& name) {
    pin_this_thread(all.where.client);
    all.redis.command({"SCRIPT", "LOAD", scripts::compare_and_delete.text});
    redlock_nodes const nodes{all.redis.url()};
    auto locks = locks_over(nodes);
    auto const ours = [&](std::size_t n) { return run_pairs(locks, n); };
    auto through = all.connect();
    auto const bare = [&](std::size_t n) { return run_load(through, {depth, n}, lock_and_unlock); };
    std::size_t const pairs = all.chosen.is_quick() ? 20'000 : 60'000;
    job const what{.mode = "own", .delay_ms = 1, .contenders = depth};
    auto const other = peers.start("redlock", {&all.redis}, all.where.client);
    std::vector<contender> contenders{{"ours", [&] { return all.warm_then_measure(pairs, depth, ours); }},
                                      {"redis-benchmark", [&] { return run_benchmark_pairs(all, pairs); }},
                                      {"bare", [&] { return all.warm_then_measure(pairs, depth, bare); }}};
    if (other) contenders.push_back({"node-redlock", [&] { return other->run(what, all.chosen.length); }});
    rounds const seen{contenders, all.chosen};
    all.rows.add({.name = name + ", against redis-benchmark",
                  .value = seen.of(0, &measurement::rate).median,
                  .unit = "pairs/s",
                  .baseline = seen.of(1, &measurement::rate).median,
                  .ratio = seen.ratio(0, 1, &measurement::rate),
                  .kind = bar_kind::ratio_at_least,
                  .bar = 0.9});
    against_node_redlock(all, name, seen, other ? 3 : 0, peers.why());
    auto const against_bare = [&](std::string const& which, rounds::figure figure, std::string const& unit) {
        all.rows.add({.name = name + which + ", against the bare pair",
                      .value = seen.of(0, figure).median,
                      .unit = unit,
                      .baseline = seen.of(2, figure).median,
                      .ratio = seen.ratio(0, 2, figure)});
    };
    against_bare("", &measurement::rate, "pairs/s");
    against_bare(", client CPU", &measurement::client_micros, "us");
    against_bare(", server CPU", &measurement::server_micros, "us");
}

void five_nodes(stand& all, peer_kit& peers, std::string const& name) {
    pin_this_thread(all.where.client);
    std::vector<std::unique_ptr<server>> servers;
    std::vector<server*> pointers;
    std::vector<std::string> urls;
    for (int i = 0; i != 5; ++i) {
        servers.push_back(std::make_unique<server>(all.where.server, all.chosen.by_unix_socket));
        servers.back()->command({"SCRIPT", "LOAD", scripts::compare_and_delete.text});
        pointers.push_back(servers.back().get());
        urls.push_back(servers.back()->url());
    }
    redlock_nodes const nodes{std::span<std::string const>{urls}};
    auto locks = locks_over(nodes);
    std::size_t const pairs = all.chosen.is_quick() ? 5'000 : 15'000;
    run_pairs(locks, depth);  // connected
    auto const before = servers[0]->counts();
    auto const counted = run_pairs(locks, 1'000);
    auto const commands = [&](std::string const& which) {
        auto now = servers[0]->counts();
        auto then = before;
        return static_cast<double>(now[which] - then[which]);
    };
    // What a script calls is counted too; by name, there is one SET and one script in a pair.
    auto const each = (commands("set") + commands("evalsha")) / static_cast<double>(counted.operations + 1);
    all.rows.add({.name = name + ", commands per node and pair", .value = each, .unit = "", .kind = bar_kind::value_at_most, .bar = 2.001});
    job const what{.mode = "own", .delay_ms = 1, .contenders = depth};
    auto const other = peers.start("redlock", pointers, all.where.client);
    std::vector<contender> contenders{{"ours", [&] {
                                           run_pairs(locks, pairs / 10);
                                           return run_pairs(locks, pairs);
                                       }}};
    if (other) contenders.push_back({"node-redlock", [&] { return other->run(what, all.chosen.length); }});
    rounds const seen{contenders, all.chosen};
    against_node_redlock(all, name, seen, other ? 1 : 0, peers.why());
    all.rows.add({.name = name + ", client CPU", .value = seen.of(0, &measurement::client_micros).median, .unit = "us"});
}

void measure(settings const& chosen) {
    measure_cases(chosen, "quorum", {{"redlock, 1 node, 64 at once", one_node},
                                       {"redlock, 5 nodes, 64 at once", five_nodes}});
}

}  // namespace
}  // namespace lockstep::bench

int main(int argc, char** argv) {
    return lockstep::bench::run_bench(argc, argv, "Redlock against bare Redis commands and node-redlock", lockstep::bench::measure);
}
