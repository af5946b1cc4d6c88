// Contended in one process, and between processes. All share the server's core.

#include "scripts/all.hpp"
#include "support/load.hpp"
#include "sync/cases.hpp"
#include "support/crew.hpp"
#include "sync/members.hpp"
#include "sync/raw_loops.hpp"

#include <lockstep/mutex.hpp>

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <string_view>
#include <thread>
#include <vector>

namespace lockstep::bench {
namespace {

constexpr std::size_t processes = 8;

worker contend(load& work, client&, mutex& lock, std::size_t& count) {
    while (work.take()) {
        auto const lease = co_await lock.async_acquire();
        ++count;
    }
}

measurement run_in_process(client& through, mutex& lock, std::size_t contenders, std::size_t operations) {
    std::vector<std::size_t> counts(contenders);
    auto result = run_load(through, {contenders, operations}, [&](load& work, client& by, std::size_t index) {
        return contend(work, by, lock, counts[index]);
    });
    auto const [fewest, most] = std::minmax_element(counts.begin(), counts.end());
    result.contenders = contenders;
    result.fewest = *fewest;
    result.most = *most;
    return result;
}

/// What clients sent; commands that our scripts call are counted by the server too and taken out, as are PINGs.
double commands_sent(server& redis) {
    constexpr std::array<std::string_view, 12> not_sent{"ping",      "time",   "hget",          "hmget",
                                                        "hset",      "hdel",   "publish",       "spublish",
                                                        "pexpireat", "exists", "pubsub|numsub", "hkeys"};
    double sum = 0;
    for (auto const& [name, count] : redis.counts()) {
        bool const sent = std::find(not_sent.begin(), not_sent.end(), name) == not_sent.end();
        sum += sent ? static_cast<double>(count) : 0;
    }
    return sum;
}

measurement run_counted(stand& all, crew& members, job const& what) {
    auto const commands = commands_sent(all.redis);
    auto const cpu = all.redis.cpu_seconds();
    auto result = members.run(what, all.chosen.length);
    result.server_cpu = all.redis.cpu_seconds() - cpu;
    result.commands = commands_sent(all.redis) - commands;
    return result;
}

}  // namespace

void contended_in_one_process(stand& all, peer_kit& peers, std::string const& name, std::size_t contenders) {
    pin_this_thread(all.where.server);
    auto through = all.connect();
    mutex lock{through, "bench:contended"};
    auto const ours = [&](std::size_t n) { return run_in_process(through, lock, contenders, n); };
    auto const operations = operations_for(all, 10 * contenders, ours);
    job what{.contenders = contenders};
    auto const other = peers.best(what, 1, all.where.server, peer_kit::best_by::rate);
    std::vector<contender> all_of_them{
        {"ours", [&] { return all.warm_then_measure(operations, 10 * contenders, ours); }}};
    if (other) {
        what.delay_ms = other->delay_ms;
        all_of_them.push_back({other->library, [&] { return other->members->run(what, all.chosen.length); }});
    }
    rounds const seen{all_of_them, all.chosen};
    constexpr auto rate = &measurement::rate;
    row against{.name = name + ", against the best peer",
                .value = seen.of(0, rate).median,
                .unit = "acquisitions/s",
                .kind = bar_kind::ratio_at_least,
                .bar = 20,
                .note = peers.why()};
    if (other) {
        against.name += fmt::format(" ({}, retry after {} ms)", other->library, other->delay_ms);
        against.baseline = seen.of(1, rate).median;
        against.ratio = seen.ratio(0, 1, rate);
    }
    all.rows.add(against);
    row even{.name = name + ", fewest by average",
             .value = seen.of(0, &measurement::fewest_by_average).median,
             .unit = "of average",
             .kind = bar_kind::value_at_least,
             .bar = 0.5};
    if (other) even.baseline = seen.of(1, &measurement::fewest_by_average).median;
    all.rows.add(even);
    all.rows.add(
        {.name = name + ", client CPU", .value = seen.of(0, &measurement::client_micros).median, .unit = "us"});
    all.require_one_connection(through);
}

void contended_between_processes(stand& all, peer_kit& peers, std::string const& name) {
    auto const core = all.where.server;
    pin_this_thread(core);
    auto const& where = all.redis.where();
    for (auto const* const script : {&scripts::lock_acquire, &scripts::lock_claim, &scripts::lock_release})
        all.redis.command({"SCRIPT", "LOAD", script->text});
    all.redis.command({"RPUSH", token_list, "x"});

    crew ours{member_command("lock", where), processes, core};
    crew token{member_command("token", where), processes, core};
    crew scripts{member_command("scripts", where), processes, core};
    auto const other = peers.best({}, processes, core, peer_kit::best_by::wait);
    job const many{.contenders = 125};
    job const many_strict{.mode = "strict", .contenders = 125};
    std::vector<contender> all_of_them{{"ours", [&] { return run_counted(all, ours, {}); }},
                                       {"token", [&] { return run_counted(all, token, {}); }},
                                       {"scripts", [&] { return run_counted(all, scripts, {}); }},
                                       {"1000 strict", [&] { return run_counted(all, ours, many_strict); }},
                                       {"1000", [&] { return run_counted(all, ours, many); }}};
    if (other) {
        all_of_them.push_back(
            {other->library, [&] { return other->members->run({.delay_ms = other->delay_ms}, all.chosen.length); }});
    }
    for (std::size_t i = 0; i != 3; ++i) all_of_them[i].run();  // to warm up
    rounds const seen{all_of_them, all.chosen};
    // Commands apart from that and after a pause: who handed on and then had nobody waiting looks after a claim window whether it arrived.
    std::vector<measurement> counted;
    for (auto const& what : {job{}, many_strict, many}) {
        std::this_thread::sleep_for(std::chrono::milliseconds{600});
        counted.push_back(run_counted(all, ours, what));
    }

    constexpr auto rate = &measurement::rate;
    constexpr auto p99 = &measurement::wait_p99_micros;
    constexpr auto server_cpu = &measurement::server_micros;
    auto const& few = counted[0];
    for (std::size_t i = 0; i != counted.size(); ++i) {
        std::array<char const*, 3> const kinds{"8 waiters", "1000 waiters, no cohort", "1000 waiters, cohort"};
        row one{.name = fmt::format("{}, {}, commands", name, kinds[i]),
                .value = counted[i].commands_each(),
                .unit = "per acquisition",
                .kind = bar_kind::value_at_most,
                .bar = 3};
        if (i != 0) {
            one.baseline = few.commands_each();
            one.ratio = summarize({counted[i].commands_each() / few.commands_each()});
        }
        all.rows.add(one);
    }
    auto const add = [&](std::string const& against, std::size_t baseline, bar_kind kind, double bar) {
        all.rows.add({.name = name + ", against " + against,
                      .value = seen.of(0, rate).median,
                      .unit = "acquisitions/s",
                      .baseline = seen.of(baseline, rate).median,
                      .ratio = seen.ratio(0, baseline, rate),
                      .kind = kind,
                      .bar = bar});
    };
    add("a bare token", 1, bar_kind::ratio_at_least, 0.3);
    add("a raw loop over the scripts", 2, bar_kind::ratio_at_least, 0.85);
    if (other)
        add(fmt::format("the best peer ({}, retry after {} ms)", other->library, other->delay_ms), 5, bar_kind::none,
            0);
    row wait{.name = name + ", p99 wait, against the best peer",
             .value = seen.of(0, p99).median,
             .unit = "us",
             .kind = bar_kind::ratio_at_most,
             .bar = 0.1,
             .note = peers.why()};
    if (other) {
        wait.baseline = seen.of(5, p99).median;
        wait.ratio = seen.ratio(0, 5, p99);
    }
    all.rows.add(wait);
    all.rows.add({.name = name + ", most by fewest",
                  .value = seen.of(0, &measurement::most_by_fewest).median,
                  .unit = "times",
                  .kind = bar_kind::value_at_most,
                  .bar = 1.2});
    constexpr auto all_cpu = &measurement::all_micros;
    for (std::size_t const baseline : {1UL, 2UL}) {
        all.rows.add({.name = name + (baseline == 1 ? ", CPU of all, against a bare token"
                                                    : ", CPU of all, against the raw loop"),
                      .value = seen.of(0, all_cpu).median,
                      .unit = "us",
                      .baseline = seen.of(baseline, all_cpu).median,
                      .ratio = seen.ratio(0, baseline, all_cpu)});
    }
    all.rows.add({.name = name + ", server CPU, against the raw loop",
                  .value = seen.of(0, server_cpu).median,
                  .unit = "us",
                  .baseline = seen.of(2, server_cpu).median,
                  .ratio = seen.ratio(0, 2, server_cpu)});
    all.rows.add({.name = name + ", server CPU of a bare token", .value = seen.of(1, server_cpu).median, .unit = "us"});
    all.rows.add(
        {.name = name + ", 1000 waiters, no cohort", .value = seen.of(3, rate).median, .unit = "acquisitions/s"});
    all.rows.add({.name = name + ", 1000 waiters, cohort", .value = seen.of(4, rate).median, .unit = "acquisitions/s"});
}

}  // namespace lockstep::bench
