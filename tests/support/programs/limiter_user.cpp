// Asks a rate limiter for one key as fast as it can: `limiter_user <url> <algorithm> <limit> <per_us> <burst> <decisions> <in flight>`. Says
// "ready", waits for a line, then prints the server's time (us) of each decision that admitted it, and "end".
#include <lockstep/rate_limiter.hpp>

#include <iostream>
#include <string>
#include <vector>

namespace {

lockstep::task<void> ask(lockstep::rate_limiter& limiter, int times, std::vector<std::int64_t>& admitted) {
    for (int i = 0; i < times; ++i) {
        auto asking = limiter.async_try_acquire("shared");
        auto const made = co_await std::move(asking);
        if (made.allowed) admitted.push_back(std::chrono::floor<std::chrono::microseconds>(made.at.time_since_epoch()).count());
    }
}

}  // namespace

int main(int, char** arguments) {
    auto const number = [&](int i) { return std::stoll(arguments[i]); };
    std::string const algorithm = arguments[2];
    using enum lockstep::rate_algorithm;
    lockstep::client client{{.url = arguments[1], .command_timeout = std::chrono::seconds{40}}};
    lockstep::rate_limiter limiter{client,
                                   "api",
                                   {.limit = number(3),
                                    .per = std::chrono::microseconds{number(4)},
                                    .algorithm = algorithm == "log" ? sliding_log : algorithm == "window" ? sliding_window : token_bucket,
                                    .burst = number(5),
                                    .block_cache = 0,
                                    .command_timeout = std::chrono::seconds{10}}};
    static_cast<void>(limiter.peek("shared"));
    std::cout << "ready" << std::endl;
    std::string line;
    std::getline(std::cin, line);
    std::vector<std::int64_t> admitted;
    std::vector<lockstep::task<void>> all;
    auto const in_flight = static_cast<int>(number(7));
    for (int i = 0; i < in_flight; ++i) all.push_back(ask(limiter, static_cast<int>(number(6)) / in_flight, admitted));
    lockstep::sync_wait(lockstep::when_all(std::move(all)));
    for (auto const one : admitted) std::cout << one << '\n';
    std::cout << "end" << std::endl;
}
