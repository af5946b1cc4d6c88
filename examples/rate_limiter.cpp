// Two processes' worth of callers share one limit: 5 at once, and then one every 20 ms.
#include <lockstep/lockstep.hpp>
#include <lockstep/rate_limiter.hpp>

#include <chrono>
#include <iostream>

int main() try {
    using namespace std::chrono_literals;
    lockstep::embedded_server const server;
    lockstep::client here{server.url()};
    lockstep::client there{server.url()};
    lockstep::rate_limit_options const how{.limit = 50, .per = 1s, .algorithm = lockstep::rate_algorithm::token_bucket, .burst = 5};
    lockstep::rate_limiter mine{here, "api", how};
    lockstep::rate_limiter yours{there, "api", how};

    int admitted = 0;
    for (int i = 0; i != 10; ++i) {
        auto const decision = (i % 2 == 0 ? mine : yours).try_acquire("user-7");
        if (decision.allowed) ++admitted;
        else std::cout << "refused, again in " << decision.retry_after.count() << " us\n";
    }
    std::cout << admitted << " of 10 admitted\n";
    auto const decision = mine.acquire("user-7");  // waits for its turn
    std::cout << "and one more, " << decision.remaining << " left\n";
    return admitted >= 5 && decision.allowed ? 0 : 1;
} catch (lockstep::error const& problem) {
    std::cerr << "rate_limiter: " << problem.what() << '\n';
    return 1;
}
