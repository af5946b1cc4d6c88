// Rate limiters against redis-benchmark and rate-limiter-flexible, what a bucket takes of memory, and what a near cache's hit and a closed circuit breaker cost.
// docs/bench.md says how to read it.

#include "state/cases.hpp"
#include "support/settings.hpp"

namespace lockstep::bench {
namespace {

void measure(settings const& chosen) {
    measure_cases(chosen, "state", {{"rate_limiter, token bucket, 64 in flight", token_bucket},
                                       {"rate_limiter, sliding window, 64 in flight", sliding_window},
                                       {"rate_limiter, sliding log, 64 in flight", sliding_log},
                                       {"rate_limiter, sliding log of a short window, 64 in flight", sliding_log_full},
                                       {"rate_limiter, token bucket, memory of a key", bucket_memory},
                                       {"near_cache, hit", near_cache_hit},
                                       {"circuit_breaker, closed", closed_breaker}});
}

}  // namespace
}  // namespace lockstep::bench

int main(int argc, char** argv) {
    return lockstep::bench::run_bench(argc, argv, "Rate limiters, near caches and circuit breakers", lockstep::bench::measure);
}
