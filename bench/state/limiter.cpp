// Decisions of a rate limiter with 64 in flight: against redis-benchmark that runs the same script with the same arguments, and against
// rate-limiter-flexible, whose fixed window does less for each. All are admitted, so each writes.

#include "scripts/all.hpp"
#include "state/cases.hpp"
#include "support/load.hpp"
#include "support/redis_benchmark.hpp"

#include <lockstep/rate_limiter.hpp>

#include <fmt/core.h>

#include <string>
#include <vector>

namespace lockstep::bench {
namespace {

constexpr std::size_t depth = 64;

worker decide(load& work, rate_limiter& limiter, std::string key) {
    while (work.take()) {
        auto asking = limiter.async_try_acquire(key);
        auto const made = co_await std::move(asking);
        load::expect(made.allowed);
    }
}

void decisions(stand& all, peer_kit& peers, std::string const& name, rate_limit_options how, scripts::script const& script,
               std::vector<std::string> const& arguments) {
    how.block_cache = 0;
    pin_this_thread(all.where.client);
    all.redis.command({"SCRIPT", "LOAD", script.text});
    auto through = all.connect();
    rate_limiter limiter{through, "api", how};
    auto const ours = [&](std::size_t n) {
        return run_load(through, {depth, n}, [&](load& work, client&, std::size_t i) { return decide(work, limiter, fmt::format("user-{:012}", i)); });
    };
    auto const kind = how.algorithm == rate_algorithm::sliding_log ? "hits" : how.algorithm == rate_algorithm::sliding_window ? "window" : "rate";
    std::vector<std::string> command{"EVALSHA", std::string{script.sha1}, "1", fmt::format("lockstep:{{user-__rand_int__}}:{}:api", kind)};
    command.insert(command.end(), arguments.begin(), arguments.end());
    std::size_t const operations = all.chosen.is_quick() ? 20'000 : 60'000;
    auto const other = peers.start("rate-limiter-flexible", {&all.redis}, all.where.client);
    std::vector<contender> contenders{
        {"ours", [&] { return all.warm_then_measure(operations, depth, ours); }},
        {"redis-benchmark", [&] { return run_redis_benchmark(all.redis.where(), all.where.client, {depth, operations, command, depth}); }}};
    auto const theirs = [&] {
        auto const before = all.redis.cpu_seconds();
        auto result = other->run({.mode = "own", .contenders = depth}, all.chosen.length);
        result.server_cpu = all.redis.cpu_seconds() - before;
        return result;
    };
    if (other) contenders.push_back({"rate-limiter-flexible", theirs});
    rounds const seen{contenders, all.chosen};
    auto const rate = seen.of(0, &measurement::rate).median;
    all.rows.add({.name = name + ", against redis-benchmark",
                  .value = rate,
                  .unit = "decisions/s",
                  .baseline = seen.of(1, &measurement::rate).median,
                  .ratio = seen.ratio(0, 1, &measurement::rate),
                  .kind = bar_kind::ratio_at_least,
                  .bar = 0.8});
    row against{.name = name + ", against rate-limiter-flexible", .value = rate, .unit = "decisions/s", .kind = bar_kind::ratio_at_least, .bar = 2, .note = peers.why()};
    if (other) {
        against.baseline = seen.of(2, &measurement::rate).median;
        against.ratio = seen.ratio(0, 2, &measurement::rate);
    }
    all.rows.add(against);
    if (other) {
        all.rows.add({.name = name + ", CPU of the busier one of client and server, against rate-limiter-flexible",
                      .value = seen.of(0, &measurement::busiest_micros).median,
                      .unit = "us",
                      .baseline = seen.of(2, &measurement::busiest_micros).median,
                      .ratio = seen.ratio(0, 2, &measurement::busiest_micros)});
    }
    all.rows.add({.name = name + ", client CPU", .value = seen.of(0, &measurement::client_micros).median, .unit = "us"});
    all.rows.add({.name = name + ", server CPU", .value = seen.of(0, &measurement::server_micros).median, .unit = "us"});
}

double used_memory(stand& all) {
    auto const text = all.redis.command({"INFO", "memory"});
    std::string const field = "used_memory:";
    return std::stod(text.substr(text.find(field) + field.size()));
}

}  // namespace

void sliding_log(stand& all, peer_kit& peers, std::string const& name) {
    decisions(all, peers, name, {.limit = 1'000'000}, scripts::rate_log, {"1", "each", "1000000", "1000000"});
}
/// The window is short, so that for each hit that comes one goes.
void sliding_log_full(stand& all, peer_kit& peers, std::string const& name) {
    decisions(all, peers, name, {.limit = 50'000, .per = std::chrono::milliseconds{50}}, scripts::rate_log, {"1", "each", "50000", "50000"});
}
void sliding_window(stand& all, peer_kit& peers, std::string const& name) {
    decisions(all, peers, name, {.limit = 1'000'000, .algorithm = rate_algorithm::sliding_window}, scripts::rate_window,
              {"1", "each", "1000000", "1000000", "2002"});
}
void token_bucket(stand& all, peer_kit& peers, std::string const& name) {
    decisions(all, peers, name, {.limit = 1'000'000, .algorithm = rate_algorithm::token_bucket}, scripts::rate_bucket, {"8", "1000000", "2002"});
}

/// All that the server's memory grows by, its tables of keys and of times included. 100,000 keys: the tables, which double, are rather empty.
void bucket_memory(stand& all, peer_kit&, std::string const& name) {
    auto through = all.connect();
    rate_limiter limiter{through, "api", {.limit = 100, .per = std::chrono::hours{1}, .algorithm = rate_algorithm::token_bucket}};
    constexpr std::size_t keys = 100'000;
    static_cast<void>(limiter.try_acquire("user-warm"));
    auto const before = used_memory(all);
    std::vector<std::string> names;
    for (std::size_t i = 0; i != keys; ++i) {
        names.push_back(fmt::format("user-{}", i));
        if (names.size() != 1'000) continue;
        std::vector<std::string_view> const some(names.begin(), names.end());
        static_cast<void>(limiter.try_acquire_all(some));
        names.clear();
    }
    all.rows.add({.name = name, .value = (used_memory(all) - before) / static_cast<double>(keys), .unit = "bytes", .kind = bar_kind::value_at_most, .bar = 150});
}

}  // namespace lockstep::bench
