// Rate limiters against redis-benchmark and rate-limiter-flexible, what a bucket takes of memory, and what a closed circuit breaker costs.
// docs/bench.md says how to read it.

#include "state/cases.hpp"
#include "support/settings.hpp"

namespace lockstep::bench {
namespace {

void measure(settings const& chosen) {
    report rows{"state"};
    stand all{chosen, rows, "bench_state"};
    peer_kit peers{all};
    auto const run = [&](std::string const& name, auto const& work) {
        if (!chosen.wants(name)) return;
        chosen.progress(name);
        work(all, peers, name);
        all.redis.command({"FLUSHALL"});
    };
    run("rate_limiter, token bucket, 64 in flight", token_bucket);
    run("rate_limiter, sliding window, 64 in flight", sliding_window);
    run("rate_limiter, sliding log, 64 in flight", sliding_log);
    run("rate_limiter, token bucket, memory of a key", bucket_memory);
    run("circuit_breaker, closed", closed_breaker);
    chosen.progress("");
    rows.print(chosen);
}

}  // namespace
}  // namespace lockstep::bench

int main(int argc, char** argv) {
    return lockstep::bench::run_bench(argc, argv, "Rate limiters and circuit breakers", lockstep::bench::measure);
}
