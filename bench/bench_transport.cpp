// The transport against redis-benchmark and against a raw socket loop, on one connection each. docs/bench.md says how to read it.
//
// To add a case: a function that takes the `stand` and adds rows, and a line in `measure`. The case's name begins those of its rows.

#include "support/bare_lock.hpp"
#include "support/cpu.hpp"
#include "support/load.hpp"
#include "support/measurement.hpp"
#include "support/parking.hpp"
#include "support/redis_benchmark.hpp"
#include "support/report.hpp"
#include "support/server.hpp"
#include "support/settings.hpp"
#include "support/stand.hpp"

#include "scripts/all.hpp"

#include <lockstep/client.hpp>

#include <fmt/core.h>

#include <algorithm>
#include <stdexcept>
#include <string>
#include <vector>

namespace lockstep::bench {
namespace {

constexpr char const* key = "bench:key";
constexpr char const* value = "0123456789abcdef";

// ---- the contenders

worker set_over_and_over(load& work, client& through, std::size_t) {
    while (work.take()) {
        auto const answer = co_await through.async_command("SET", key, value);
        load::expect(answer.text() == "OK");
    }
}

worker get_over_and_over(load& work, client& through, std::size_t) {
    while (work.take()) {
        auto const answer = co_await through.async_command("GET", key);
        load::expect(answer.text().size() == 16);
    }
}

/// Batches that are written and answered in turn, `operations` being done when each was exchanged operations / depth times.
struct raw_batch {
    std::string bytes{};
    char reply = '+';
};

measurement run_raw(raw_connection& raw, std::vector<raw_batch> const& batches, std::size_t depth,
                    std::size_t operations) {
    auto const times = (operations + depth - 1) / depth;
    measurement result{.operations = times * depth, .seconds = -wall_seconds(), .client_cpu = -thread_cpu_seconds()};
    for (std::size_t i = 0; i != times; ++i)
        for (auto const& batch : batches) raw.exchange(batch.bytes, depth, batch.reply);
    result.client_cpu += thread_cpu_seconds();
    result.seconds += wall_seconds();
    return result;
}

/// How many operations take about the length of one measurement, found with the raw loop.
std::size_t operations_for(stand& all, raw_connection& raw, std::vector<raw_batch> const& batches, std::size_t depth) {
    auto const goal = static_cast<double>(all.chosen.length.count()) * 1e-3;
    double rate = run_raw(raw, batches, depth, 4 * depth).rate();
    for (int i = 0; i != 5; ++i) {  // the best of some: whatever disturbs makes it slower, never faster
        rate = std::max(rate, run_raw(raw, batches, depth, static_cast<std::size_t>(rate * goal / 20) + depth).rate());
    }
    return (static_cast<std::size_t>(rate * goal) / depth + 1) * depth;
}

struct simple_command {
    std::string name;
    std::vector<std::string> words;
    char reply;
    make_worker make;

    std::vector<raw_batch> batches(std::size_t depth) const {
        raw_batch batch{.reply = reply};
        auto const one = words.size() == 3 ? encoded({words[0], words[1], words[2]}) : encoded({words[0], words[1]});
        for (std::size_t i = 0; i != depth; ++i) batch.bytes += one;
        return {batch};
    }
};

simple_command const set_command{"SET", {"SET", key, value}, '+', set_over_and_over};
simple_command const get_command{"GET", {"GET", key}, '$', get_over_and_over};

std::vector<raw_batch> lock_batches(std::size_t depth) {
    raw_batch take{.reply = '+'};
    raw_batch release{.reply = ':'};
    for (std::size_t i = 0; i != depth; ++i) {
        take.bytes += encoded({"SET", lock_key(i), token, "NX", "PX", "30000"});
        release.bytes += encoded({"EVALSHA", scripts::compare_and_delete.sha1, "1", lock_key(i), token});
    }
    return {take, release};
}

/// redis-benchmark repeats one command, so a pair is a SET of each of n keys, then an EVALSHA of each of them: the same work for the
/// server, and the time of a pair is the sum. n is kept small, so that the keys stay in the server's caches as ours do.
measurement run_benchmark_pairs(stand& all, std::size_t depth, std::size_t pairs) {
    constexpr std::size_t most_keys = 8 * 1024;
    auto const keys = (std::min(pairs, most_keys) + depth - 1) / depth * depth;
    auto const before = all.redis.command({"DBSIZE"});
    measurement sum;
    while (sum.operations < pairs) {
        auto const take =
            run_redis_benchmark(all.redis.where(), all.where.client,
                                {depth, keys, {"SET", "lock:__rand_int__", token, "NX", "PX", "30000"}, keys});
        if (std::stoull(all.redis.command({"DBSIZE"})) != std::stoull(before) + keys)
            throw std::runtime_error("redis-benchmark did not take each lock once");
        auto const release = run_redis_benchmark(
            all.redis.where(), all.where.client,
            {depth,
             keys,
             {"EVALSHA", std::string{scripts::compare_and_delete.sha1}, "1", "lock:__rand_int__", token},
             keys});
        if (all.redis.command({"DBSIZE"}) != before)
            throw std::runtime_error("redis-benchmark did not release each lock");
        sum.operations += keys;
        sum.seconds += take.seconds + release.seconds;
        sum.client_cpu += take.client_cpu + release.client_cpu;
    }
    return sum;
}

// ---- the cases

/// Ours, redis-benchmark and raw sockets, in this order.
void add_rate_rows(stand& all, std::string const& name, std::string const& unit, rounds const& seen) {
    constexpr auto rate = &measurement::rate;
    constexpr auto server_cpu = &measurement::server_micros;
    all.rows.add({.name = name + ", against redis-benchmark",
                  .value = seen.of(0, rate).median,
                  .unit = unit,
                  .baseline = seen.of(1, rate).median,
                  .ratio = seen.ratio(0, 1, rate),
                  .kind = bar_kind::ratio_at_least,
                  .bar = 0.95});
    all.rows.add({.name = name + ", against raw sockets",
                  .value = seen.of(0, rate).median,
                  .unit = unit,
                  .baseline = seen.of(2, rate).median,
                  .ratio = seen.ratio(0, 2, rate),
                  .kind = bar_kind::ratio_at_least,
                  .bar = 0.85});
    all.rows.add({.name = name + ", server CPU, against raw sockets",
                  .value = seen.of(0, server_cpu).median,
                  .unit = "us",
                  .baseline = seen.of(2, server_cpu).median,
                  .ratio = seen.ratio(0, 2, server_cpu)});
    all.rows.add(
        {.name = name + ", server CPU of redis-benchmark", .value = seen.of(1, server_cpu).median, .unit = "us"});
}

/// What one operation of ours makes the server run, and how many requests share a write.
void add_count_rows(stand& all, std::string const& name, client& through, load_size size,
                    make_worker const& make) {
    auto const before = all.redis.counts();
    auto const mine = through.statistics();
    run_load(through, size, make);
    auto const after = through.statistics();
    double calls = -1;  // the PING that run_load begins with
    for (auto const& [command, count] : all.redis.counts()) {
        auto const earlier = before.find(command);
        calls += static_cast<double>(count - (earlier == before.end() ? 0 : earlier->second));
    }
    auto const operations = static_cast<double>(size.operations);
    auto const requests = static_cast<double>(after.requests - mine.requests - 1);
    auto const batches = static_cast<double>(after.batches - mine.batches - 1);
    all.rows.add({.name = name + ", requests", .value = requests / operations, .unit = "per op"});
    all.rows.add({.name = name + ", commands run by the server", .value = calls / operations, .unit = "per op"});
    all.rows.add({.name = name + ", requests in one write", .value = requests / batches, .unit = "requests"});
}

void many_in_flight(stand& all, std::string const& name, simple_command const& command, std::size_t depth) {
    pin_this_thread(all.where.client);
    auto through = all.connect();
    raw_connection raw{all.redis.where()};
    auto const batches = command.batches(depth);
    through.command("SET", key, value);
    auto const operations = operations_for(all, raw, batches, depth);
    rounds const seen{
        {{"ours",
          [&] {
              return all.warm_then_measure(operations, depth, [&](std::size_t n) {
                  return run_load(through, {depth, n}, command.make);
              });
          }},
         {"redis-benchmark",
          [&] {
              return all.warm_then_measure(operations, depth, [&](std::size_t n) {
                  return run_redis_benchmark(all.redis.where(), all.where.client, {depth, n, command.words});
              });
          }},
         {"raw sockets",
          [&] {
              return all.warm_then_measure(operations, depth,
                                           [&](std::size_t n) { return run_raw(raw, batches, depth, n); });
          }}},
        all.chosen};
    add_rate_rows(all, name, "requests/s", seen);
    add_count_rows(all, name, through, {depth, operations}, command.make);
    all.require_one_connection(through);
}

void lock_pairs(stand& all, std::string const& name, std::size_t depth) {
    pin_this_thread(all.where.client);
    all.redis.command({"SCRIPT", "LOAD", scripts::compare_and_delete.text});
    auto through = all.connect();
    raw_connection raw{all.redis.where()};
    auto const batches = lock_batches(depth);
    auto const operations = operations_for(all, raw, batches, depth);
    rounds const seen{{{"ours",
                        [&] {
                            return all.warm_then_measure(operations, depth, [&](std::size_t n) {
                                return run_load(through, {depth, n}, lock_and_unlock);
                            });
                        }},
                       {"redis-benchmark",
                        [&] {
                            return all.warm_then_measure(
                                operations, depth, [&](std::size_t n) { return run_benchmark_pairs(all, depth, n); });
                        }},
                       {"raw sockets",
                        [&] {
                            return all.warm_then_measure(
                                operations, depth, [&](std::size_t n) { return run_raw(raw, batches, depth, n); });
                        }}},
                      all.chosen};
    add_rate_rows(all, name, "pairs/s", seen);
    add_count_rows(all, name, through, {depth, operations}, lock_and_unlock);
    all.require_one_connection(through);
}

measurement run_blocking(client& through, std::size_t operations) {
    measurement result{.operations = operations, .seconds = -wall_seconds()};
    for (std::size_t i = 0; i != operations; ++i) load::expect(through.command("SET", key, value).text() == "OK");
    result.seconds += wall_seconds();
    return result;
}

void one_at_a_time(stand& all, std::string const& name) {
    auto const core = all.where.server;  // everybody on one core: no wake-up across cores in between
    pin_this_thread(core);
    auto through = all.connect();
    raw_connection raw{all.redis.where()};
    auto const batches = set_command.batches(1);
    auto const operations = operations_for(all, raw, batches, 1);
    rounds const seen{
        {{"coroutine",
          [&] {
              return all.warm_then_measure(operations, 1, [&](std::size_t n) {
                  return run_load(through, {1, n}, set_over_and_over);
              });
          }},
         {"redis-benchmark",
          [&] {
              return all.warm_then_measure(operations, 1, [&](std::size_t n) {
                  return run_redis_benchmark(all.redis.where(), core, {1, n, set_command.words});
              });
          }},
         {"raw sockets",
          [&] {
              return all.warm_then_measure(operations, 1, [&](std::size_t n) { return run_raw(raw, batches, 1, n); });
          }},
         {"blocking",
          [&] {
              return all.warm_then_measure(operations, 1, [&](std::size_t n) { return run_blocking(through, n); });
          }}},
        all.chosen};
    constexpr auto micros = &measurement::micros;
    auto const add = [&](std::string const& what, std::size_t contender, std::size_t baseline, bar_kind kind) {
        all.rows.add({.name = name + ", " + what,
                      .value = seen.of(contender, micros).median,
                      .unit = "us",
                      .baseline = seen.of(baseline, micros).median,
                      .ratio = seen.ratio(contender, baseline, micros),
                      .kind = kind,
                      .bar = 1.15});
    };
    add("coroutine, against redis-benchmark", 0, 1, bar_kind::ratio_at_most);
    add("coroutine, against raw sockets", 0, 2, bar_kind::none);
    add("blocking, against redis-benchmark", 3, 1, bar_kind::none);
    all.require_one_connection(through);
}

void client_cpu(stand& all, std::string const& name) {
    pin_this_thread(all.where.client);
    auto through = all.connect();
    raw_connection raw{all.redis.where()};
    auto const batches = set_command.batches(64);
    auto const operations = operations_for(all, raw, batches, 64);
    auto const ours = [&](std::size_t depth) {
        return all.warm_then_measure(std::max(operations, 4 * depth), depth, [&, depth](std::size_t n) {
            return run_load(through, {depth, n}, set_over_and_over);
        });
    };
    rounds const seen{
        {{"64", [&] { return ours(64); }},
         {"1024", [&] { return ours(1024); }},
         {"10000", [&] { return ours(10'000); }},
         {"redis-benchmark",
          [&] {
              return all.warm_then_measure(operations, 64, [&](std::size_t n) {
                  return run_redis_benchmark(all.redis.where(), all.where.client, {64, n, set_command.words});
              });
          }},
         {"raw sockets",
          [&] {
              return all.warm_then_measure(operations, 64, [&](std::size_t n) { return run_raw(raw, batches, 64, n); });
          }}},
        all.chosen};
    constexpr auto cpu = &measurement::client_micros;
    auto const add = [&](std::string const& what, std::size_t contender, std::size_t baseline, bar_kind kind,
                         double bar) {
        all.rows.add({.name = name + ", " + what,
                      .value = seen.of(contender, cpu).median,
                      .unit = "us",
                      .baseline = seen.of(baseline, cpu).median,
                      .ratio = seen.ratio(contender, baseline, cpu),
                      .kind = kind,
                      .bar = bar});
    };
    add("64 in flight, against redis-benchmark", 0, 3, bar_kind::value_at_most, 2);
    add("64 in flight, against raw sockets", 0, 4, bar_kind::none, 0);
    add("1024 in flight, against 64", 1, 0, bar_kind::none, 0);
    add("10000 in flight, against 64", 2, 0, bar_kind::ratio_at_most, 1.2);
    all.require_one_connection(through);
}

void parked_memory(stand& all, std::string const& name) {
    pin_this_thread(all.where.client);
    auto through = all.connect();
    through.command("PING");
    std::vector<double> heap;
    parked_cost cost;
    auto const wanted = lock_key(0);
    for (std::size_t round = 0; round != 6; ++round) {
        all.redis.pause();
        cost = measure_parked(
            through, 20'000, [&](std::size_t) { return through.async_command("GET", wanted); },
            [&] { all.redis.resume(); });
        if (round != 0) heap.push_back(cost.heap_bytes);  // the first one is to warm up: the connection's buffers grow
    }
    all.rows.add({.name = name + ", heap",
                  .value = summarize(heap).median,
                  .unit = "bytes",
                  .kind = bar_kind::value_at_most,
                  .bar = 256});
    all.rows.add({.name = name + ", asked of operator new", .value = cost.asked_bytes, .unit = "bytes"});
    all.rows.add({.name = name + ", calls of operator new", .value = cost.allocations, .unit = "calls"});
    all.require_one_connection(through);
}

void measure(settings const& chosen) {
    report rows{"transport"};
    stand all{chosen, rows, "bench_transport"};
    auto const run = [&](std::string const& name, auto const& work) {
        if (!chosen.wants(name)) return;
        chosen.progress(name);
        work(name);
        all.redis.command({"FLUSHALL"});
    };
    for (std::size_t const depth : {64UL, 1024UL}) {
        run(fmt::format("SET, {} in flight", depth),
            [&](auto& name) { many_in_flight(all, name, set_command, depth); });
        run(fmt::format("GET, {} in flight", depth),
            [&](auto& name) { many_in_flight(all, name, get_command, depth); });
        run(fmt::format("lock pair, {} in flight", depth), [&](auto& name) { lock_pairs(all, name, depth); });
    }
    run("one at a time", [&](auto& name) { one_at_a_time(all, name); });
    run("client CPU", [&](auto& name) { client_cpu(all, name); });
    run("parked request", [&](auto& name) { parked_memory(all, name); });
    chosen.progress("");
    rows.print(chosen);
}

}  // namespace
}  // namespace lockstep::bench

int main(int argc, char** argv) {
    return lockstep::bench::run_bench(argc, argv, "Lockstep's transport against redis-benchmark and raw sockets",
                                      lockstep::bench::measure);
}
