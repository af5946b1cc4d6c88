#include "jobs/cases.hpp"
#include "support/cpu.hpp"
#include "support/load.hpp"

#include <lockstep/job_client.hpp>
#include <lockstep/job_worker.hpp>

#include <fmt/core.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

namespace lockstep::bench {
namespace {

std::string const payload(32, 'x');
constexpr std::size_t depth = 64;

worker schedule_forever(load& work, job_client& to) {
    while (work.take()) co_await to.async_schedule("job", payload);
}

worker schedule_hundreds(load& work, job_client& to, std::vector<std::string> const& many) {
    while (work.take()) co_await to.async_schedule_many<std::string>("job", many);
}

void fill(job_client& to, std::size_t count) {
    std::vector<std::string> const many(std::min<std::size_t>(count, 1000), payload);
    for (std::size_t i = 0; i < count; i += many.size()) to.schedule_many<std::string>("job", many);
}

/// What is done is forgotten, as by the peer.
std::unique_ptr<job_worker> start_worker(client& by, std::size_t concurrency, std::function<void()> each) {
    auto made = std::make_unique<job_worker>(by, "bench", job_worker_options{.concurrency = concurrency, .completed_retention = std::chrono::milliseconds{0}});
    made->handle<std::string>("job", [each = std::move(each)](std::string const&) -> task<void> {
        each();
        co_return;
    });
    made->start();
    return made;
}

/// Until so many were handled: how long that took.
double process_all(client& by, std::size_t concurrency, std::size_t count) {
    std::mutex mutex;
    std::condition_variable changed;
    std::size_t left = count;
    double end = 0;
    auto const begun = wall_seconds();
    auto const worker = start_worker(by, concurrency, [&] {
        if (--left != 0) return;
        std::lock_guard const guard{mutex};
        end = wall_seconds();
        changed.notify_one();
    });
    std::unique_lock guard{mutex};
    changed.wait(guard, [&] { return end != 0; });
    guard.unlock();
    worker->stop();
    return end - begun;
}

/// Ours and the peer in the same rounds.
void compare(stand& all, peer_kit& peers, std::string const& name, std::string const& mode, std::size_t in_flight, contender ours, bar_kind kind, double bar) {
    pin_this_thread(all.where.client);
    std::vector<contender> contenders{std::move(ours)};
    auto const peer = peers.start("bullmq", {&all.redis}, all.where.client, "queues/queue_peer.js");
    job const what{.mode = mode, .contenders = in_flight};
    if (peer) {
        peer->run(what, peer_warm_up);
        contenders.push_back({"bullmq", [&] { return peer->run(what, all.chosen.length); }});
    }
    rounds const seen{contenders, all.chosen};
    bool const is_time = kind == bar_kind::ratio_at_most;
    auto const figure = is_time ? &measurement::micros : &measurement::rate;
    row one{.name = name + ", against BullMQ", .value = seen.of(0, figure).median, .unit = is_time ? "us" : "jobs/s", .kind = kind, .bar = bar, .note = peers.why()};
    if (peer) {
        one.baseline = seen.of(1, figure).median;
        one.ratio = seen.ratio(0, 1, figure);
    }
    all.rows.add(one);
    if (!is_time) all.rows.add({.name = name + ", server CPU", .value = seen.of(0, &measurement::server_micros).median, .unit = "us"});
}

/// A job that waits for five others.
job_flow const& six() {
    static job_flow const made = [] {
        job_flow flow;
        flow.add("last", "job", payload);
        for (auto const* const one : {"1", "2", "3", "4", "5"}) flow.add(one, "job", payload).after("last", one);
        return flow;
    }();
    return made;
}

worker add_flows_forever(load& work, job_client& to) {
    while (work.take()) co_await to.async_add_flow(six());
}

void process_with(stand& all, peer_kit& peers, std::string const& name, std::string const& mode, std::size_t concurrency, std::size_t count) {
    pin_this_thread(all.where.client);
    auto through = all.connect();
    job_client to{through, "bench"};
    auto const fill_with = [&](std::size_t jobs) {
        if (mode == "work") return fill(to, jobs);
        run_load(through, {depth, jobs / 6}, [&](load& work, client&, std::size_t) { return add_flows_forever(work, to); });
    };
    auto const run = [&] {
        fill_with(count / 10);
        process_all(through, concurrency, count / 10);
        fill_with(count);
        auto const before = all.redis.cpu_seconds();
        measurement seen{.operations = count};
        seen.seconds = process_all(through, concurrency, count);
        seen.server_cpu = all.redis.cpu_seconds() - before;
        return seen;
    };
    compare(all, peers, name, mode, concurrency, {"ours", run}, bar_kind::ratio_at_least, 4);
}

}  // namespace

void schedule_one_by_one(stand& all, peer_kit& peers, std::string const& name) {
    pin_this_thread(all.where.client);
    auto through = all.connect();
    job_client to{through, "bench"};
    std::size_t const jobs = all.chosen.is_quick() ? 30'000 : 100'000;
    auto const run = [&](std::size_t n) {
        auto const seen = run_load(through, {depth, n}, [&](load& work, client&, std::size_t) { return schedule_forever(work, to); });
        all.redis.command({"FLUSHALL"});
        return seen;
    };
    compare(all, peers, name, "add", depth, {"ours", [&] { return all.warm_then_measure(jobs, depth, run); }}, bar_kind::ratio_at_least, 5);
}

void schedule_in_bulk(stand& all, peer_kit& peers, std::string const& name) {
    pin_this_thread(all.where.client);
    auto through = all.connect();
    job_client to{through, "bench"};
    std::vector<std::string> const many(100, payload);
    std::size_t const calls = all.chosen.is_quick() ? 300 : 1'000;
    auto const run = [&](std::size_t n) {
        auto seen = run_load(through, {1, n}, [&](load& work, client&, std::size_t) { return schedule_hundreds(work, to, many); });
        seen.operations *= many.size();
        all.redis.command({"FLUSHALL"});
        return seen;
    };
    compare(all, peers, name, "bulk", 1, {"ours", [&] { return all.warm_then_measure(calls, 1, run); }}, bar_kind::ratio_at_least, 5);
}

void process_one_at_a_time(stand& all, peer_kit& peers, std::string const& name) {
    process_with(all, peers, name, "work", 1, all.chosen.is_quick() ? 5'000 : 20'000);
}

void process_many_at_a_time(stand& all, peer_kit& peers, std::string const& name) {
    process_with(all, peers, name, "work", 50, all.chosen.is_quick() ? 20'000 : 100'000);
}

void add_flows(stand& all, peer_kit& peers, std::string const& name) {
    pin_this_thread(all.where.client);
    auto through = all.connect();
    job_client to{through, "bench"};
    std::size_t const flows = all.chosen.is_quick() ? 3'000 : 10'000;
    auto const run = [&](std::size_t n) {
        auto seen = run_load(through, {depth, n}, [&](load& work, client&, std::size_t) { return add_flows_forever(work, to); });
        seen.operations *= 6;
        all.redis.command({"FLUSHALL"});
        return seen;
    };
    compare(all, peers, name, "flow", depth, {"ours", [&] { return all.warm_then_measure(flows, depth, run); }}, bar_kind::ratio_at_least, 4);
}

void process_flows(stand& all, peer_kit& peers, std::string const& name) {
    process_with(all, peers, name, "flow-work", 50, all.chosen.is_quick() ? 6'000 : 30'000);
}

void add_to_start(stand& all, peer_kit& peers, std::string const& name) {
    pin_this_thread(all.where.client);
    auto producer = all.connect();
    auto consumer = all.connect();
    job_client to{producer, "bench"};
    std::mutex mutex;
    std::condition_variable changed;
    std::vector<double> spans;
    std::atomic<double> begun{0};
    auto const worker = start_worker(consumer, 1, [&] {
        auto const span = wall_seconds() - begun;
        std::lock_guard const guard{mutex};
        spans.push_back(span);
        changed.notify_one();
    });
    auto const ours = [&] {
        std::size_t const times = all.chosen.is_quick() ? 100 : 300;
        measurement seen{.operations = times};
        {
            std::lock_guard const clear{mutex};
            spans.clear();
        }
        for (std::size_t i = 0; i != times; ++i) {
            while (all.redis.command({"ZCARD", "lockstep:{bench}:jobs:q:job:waiting"}) != "1") {}  // idle again
            begun = wall_seconds();
            to.schedule("job", payload);
            std::unique_lock guard{mutex};
            changed.wait(guard, [&] { return spans.size() == i + 1; });
        }
        seen.seconds = summarize(spans).median * static_cast<double>(times);
        return seen;
    };
    compare(all, peers, name, "latency", 1, {"ours", ours}, bar_kind::ratio_at_most, 0.5);
    worker->stop();
}

void waiting_jobs(stand& all, peer_kit&, std::string const& name) {
    pin_this_thread(all.where.client);
    auto through = all.connect();
    job_client to{through, "bench"};
    auto const used = [&] {
        auto const text = all.redis.command({"INFO", "memory"});
        std::string const field = "used_memory_dataset:";
        return std::stod(text.substr(text.find(field) + field.size()));
    };
    for (std::size_t const jobs : {std::size_t{1'000}, all.chosen.is_quick() ? std::size_t{100'000} : std::size_t{1'000'000}}) {
        all.redis.command({"FLUSHALL"});
        to.schedule("job", payload);
        auto const before = used();
        fill(to, jobs);
        all.rows.add({.name = fmt::format("{} of 32 bytes, {} of them", name, jobs),
                      .value = (used() - before) / static_cast<double>(jobs),
                      .unit = "bytes",
                      .kind = bar_kind::value_at_most,
                      .bar = 210});
        // What taking costs does not depend on how many wait. As many still do in the end: a worker that stops has some in hand, and gives them back.
        std::size_t const taken = 20'000;
        fill(to, taken);
        auto const cpu = all.redis.cpu_seconds();
        process_all(through, 50, taken);
        all.rows.add({.name = fmt::format("{}, {} of them: taken and done, server CPU", name, jobs),
                      .value = (all.redis.cpu_seconds() - cpu) / static_cast<double>(taken) * 1e6,
                      .unit = "us"});
    }
}

}  // namespace lockstep::bench
