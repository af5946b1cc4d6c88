#include "messaging/cases.hpp"
#include "support/cpu.hpp"
#include "support/finish_line.hpp"
#include "support/load.hpp"
#include "support/redis_benchmark.hpp"

#include <lockstep/queue.hpp>

#include <fmt/core.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

namespace lockstep::bench {
namespace {

using texts = queue<std::string>;

std::string const payload(32, 'x');
constexpr std::size_t depth = 64;
constexpr std::size_t concurrency = 50;

worker enqueue_forever(load& work, texts& to) {
    while (work.take()) co_await to.async_enqueue(payload);
}

worker enqueue_hundreds(load& work, texts& to, std::vector<std::string> const& many) {
    while (work.take()) co_await to.async_enqueue_many(many);
}

/// One that comes, one that goes: as many wait as before.
worker live_on(load& work, texts& both) {
    while (work.take()) {
        co_await both.async_enqueue(payload);
        auto taking = both.async_dequeue();
        auto one = co_await std::move(taking);
        co_await one.async_ack();
    }
}

void fill(texts& to, std::size_t count) {
    std::vector<std::string> const many(std::min<std::size_t>(count, 1000), payload);
    for (std::size_t i = 0; i < count; i += many.size()) to.enqueue_many(many);
}

measurement consume_all(texts& from, std::size_t count) {
    finish_line line{count};
    auto const begun = wall_seconds();
    auto worker = from.consume({.concurrency = concurrency}, [&line](texts::item&) -> task<void> {
        line.pass();
        co_return;
    });
    measurement seen{.operations = count};
    seen.seconds = line.wait() - begun;
    worker.stop();
    return seen;
}

/// On the producer's I/O thread, as a coroutine there would.
task<void> enqueue_from(client& producer, texts& to, std::atomic<double>& begun) {
    co_await producer.async_command("PING");
    begun = wall_seconds();
    co_await to.async_enqueue(payload);
}

void against(stand& all, rounds const& seen, std::string const& name, std::string const& peer, std::size_t index, double bar, std::string const& why) {
    row one{.name = fmt::format("{}, against {}", name, peer),
            .value = seen.of(0, &measurement::rate).median,
            .unit = "items/s",
            .kind = bar_kind::ratio_at_least,
            .bar = bar,
            .note = why};
    if (index != 0) {
        one.baseline = seen.of(index, &measurement::rate).median;
        one.ratio = seen.ratio(0, index, &measurement::rate);
    }
    all.rows.add(one);
}

/// Ours and both peers in the same rounds.
void compare(stand& all, peer_kit& peers, std::string const& name, std::string const& mode, std::size_t in_flight, contender ours, double bee_bar) {
    pin_this_thread(all.where.client);
    std::vector<std::unique_ptr<crew>> others;
    std::vector<contender> contenders{std::move(ours)};
    for (auto const* const library : {"bullmq", "bee-queue"}) {
        auto one = peers.start(library, {&all.redis}, all.where.client, "queues/queue_peer.js");
        if (!one) break;
        job const what{.mode = mode, .contenders = in_flight};
        one->run(what, peer_warm_up);
        contenders.push_back({library, [members = one.get(), what, &all] { return members->run(what, all.chosen.length); }});
        others.push_back(std::move(one));
    }
    rounds const seen{contenders, all.chosen};
    against(all, seen, name, "BullMQ", others.size() == 2 ? 1 : 0, 5, peers.why());
    against(all, seen, name, "bee-queue", others.size() == 2 ? 2 : 0, bee_bar, peers.why());
    all.rows.add({.name = name + ", client CPU", .value = seen.of(0, &measurement::client_micros).median, .unit = "us"});
    all.rows.add({.name = name + ", server CPU", .value = seen.of(0, &measurement::server_micros).median, .unit = "us"});
}

void latency_on(stand& all, std::string const& name, int core) {
    pin_this_thread(core);
    auto producer = all.connect();
    auto consumer = all.connect();
    texts to{producer, "bench"};
    texts from{consumer, "bench"};
    std::atomic<double> begun{0};
    std::vector<double> spans;
    std::mutex mutex;
    std::condition_variable changed;
    auto worker = from.consume({.concurrency = 1}, [&](texts::item&) -> task<void> {
        auto const span = wall_seconds() - begun;
        std::lock_guard const guard{mutex};
        spans.push_back(span);
        changed.notify_one();
        co_return;
    });
    auto const handled = [&](std::size_t times) {
        measurement seen{.operations = times};
        std::lock_guard const clear{mutex};
        spans.clear();
        return seen;
    };
    auto const ours = [&] {
        std::size_t const times = all.chosen.is_quick() ? 100 : 300;
        auto seen = handled(times);
        for (std::size_t i = 0; i != times; ++i) {
            // Idle again: its name is at the server, and it has the answer to that, which comes before the one to this.
            while (all.redis.command({"ZCARD", "lockstep:{bench}:queue:waiting"}) != "1") {}
            consumer.command("PING");
            start(enqueue_from(producer, to, begun), [](std::exception_ptr) {});
            std::unique_lock guard{mutex};
            changed.wait(guard, [&] { return spans.size() == i + 1; });
        }
        seen.seconds = summarize(spans).median * static_cast<double>(times);
        return seen;
    };
    auto const trips = [&] { return run_redis_benchmark(all.redis.where(), core, {1, 20'000, {"PING"}}); };
    rounds const seen{{{"ours", ours}, {"redis-benchmark", trips}}, all.chosen};
    worker.stop();
    all.rows.add({.name = name + ", in round trips of redis-benchmark",
                  .value = seen.of(0, &measurement::micros).median,
                  .unit = "us",
                  .baseline = seen.of(1, &measurement::micros).median,
                  .ratio = seen.ratio(0, 1, &measurement::micros),
                  .kind = bar_kind::ratio_at_most,
                  .bar = 3.5});
}

}  // namespace

void enqueue_one_by_one(stand& all, peer_kit& peers, std::string const& name) {
    pin_this_thread(all.where.client);
    auto through = all.connect();
    texts to{through, "bench"};
    std::size_t const items = all.chosen.is_quick() ? 30'000 : 100'000;
    auto const run = [&](std::size_t n) {
        auto const seen = run_load(through, {depth, n}, [&](load& work, client&, std::size_t) { return enqueue_forever(work, to); });
        to.purge();
        return seen;
    };
    compare(all, peers, name, "add", depth, {"ours", [&] { return all.warm_then_measure(items, depth, run); }}, 0);
}

void enqueue_in_bulk(stand& all, peer_kit& peers, std::string const& name) {
    pin_this_thread(all.where.client);
    auto through = all.connect();
    texts to{through, "bench"};
    std::vector<std::string> const many(100, payload);
    std::size_t const calls = all.chosen.is_quick() ? 300 : 1'000;
    auto const run = [&](std::size_t n) {
        auto seen = run_load(through, {1, n}, [&](load& work, client&, std::size_t) { return enqueue_hundreds(work, to, many); });
        seen.operations *= many.size();
        to.purge();
        return seen;
    };
    compare(all, peers, name, "bulk", 1, {"ours", [&] { return all.warm_then_measure(calls, 1, run); }}, 0);
}

void take_and_acknowledge(stand& all, peer_kit& peers, std::string const& name) {
    pin_this_thread(all.where.client);
    auto through = all.connect();
    texts from{through, "bench"};
    std::size_t const items = all.chosen.is_quick() ? 20'000 : 100'000;
    auto const run = [&] {
        fill(from, items / 10);
        consume_all(from, items / 10);
        fill(from, items);
        auto const before = all.redis.cpu_seconds();
        auto seen = consume_all(from, items);
        seen.server_cpu = all.redis.cpu_seconds() - before;
        return seen;
    };
    compare(all, peers, name, "work", concurrency, {"ours", run}, 2);
}

void whole_life(stand& all, peer_kit&, std::string const& name) {
    pin_this_thread(all.where.client);
    auto through = all.connect();
    texts both{through, "bench"};
    std::size_t const items = all.chosen.is_quick() ? 20'000 : 100'000;
    auto const run = [&] {
        run_load(through, {depth, items}, [&](load& work, client&, std::size_t) { return enqueue_forever(work, both); });
        consume_all(both, items);
    };
    run();
    auto const total = [](command_counts const& counts) {
        std::uint64_t sum = 0;
        for (auto const& [command, count] : counts) sum += count;
        return static_cast<double>(sum);
    };
    auto const commands = total(all.redis.counts());
    auto const cpu = all.redis.cpu_seconds();
    run();
    auto const each = static_cast<double>(items);
    all.rows.add({.name = name + ", commands (those in scripts too)",
                  .value = (total(all.redis.counts()) - commands) / each,
                  .unit = "",
                  .kind = bar_kind::value_at_most,
                  .bar = 8});
    all.rows.add({.name = name + ", server CPU",
                  .value = (all.redis.cpu_seconds() - cpu) * 1e6 / each,
                  .unit = "us",
                  .kind = bar_kind::value_at_most,
                  .bar = 30});
}

void latency(stand& all, peer_kit&, std::string const& name) {
    latency_on(all, name, all.where.server);
    if (all.where.distinct()) latency_on(all, name + ", server on a core of its own", all.where.client);
}

void many_waiting(stand& all, peer_kit&, std::string const& name) {
    pin_this_thread(all.where.client);
    auto through = all.connect();
    texts few{through, "few"};
    texts many{through, "many"};
    std::size_t const large = all.chosen.is_quick() ? 100'000 : 1'000'000;
    std::size_t const items = all.chosen.is_quick() ? 10'000 : 50'000;
    fill(few, 1'000);
    fill(many, large);
    auto const measured = [&](texts& both) {
        return all.warm_then_measure(items, depth, [&](std::size_t n) {
            return run_load(through, {depth, n}, [&](load& work, client&, std::size_t) { return live_on(work, both); });
        });
    };
    rounds const seen{{{"many", [&] { return measured(many); }}, {"few", [&] { return measured(few); }}}, all.chosen};
    all.rows.add({.name = fmt::format("{}, {} before it, against 1000", name, large),
                  .value = seen.of(0, &measurement::server_micros).median,
                  .unit = "us",
                  .baseline = seen.of(1, &measurement::server_micros).median,
                  .ratio = seen.ratio(0, 1, &measurement::server_micros),
                  .kind = bar_kind::ratio_at_most,
                  .bar = 1.25});
}

void memory(stand& all, peer_kit&, std::string const& name) {
    pin_this_thread(all.where.client);
    auto through = all.connect();
    texts to{through, "bench"};
    auto const used = [&] {
        auto const text = all.redis.command({"INFO", "memory"});
        std::string const field = "used_memory_dataset:";
        return std::stod(text.substr(text.find(field) + field.size()));
    };
    for (std::size_t const items : {std::size_t{1'000}, all.chosen.is_quick() ? std::size_t{100'000} : std::size_t{1'000'000}}) {
        all.redis.command({"FLUSHALL"});
        to.enqueue(payload);
        auto const before = used();
        fill(to, items);
        all.rows.add({.name = fmt::format("{} of 32 bytes, {} of them", name, items),
                      .value = (used() - before) / static_cast<double>(items),
                      .unit = "bytes",
                      .kind = bar_kind::value_at_most,
                      .bar = 210});
    }
}

}  // namespace lockstep::bench
