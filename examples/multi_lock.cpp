// Two workers move money in opposite directions. Each holds both accounts at once, and they don't deadlock.
#include <lockstep/lockstep.hpp>

#include <array>
#include <atomic>
#include <iostream>
#include <string>
#include <thread>
#include <vector>

namespace {

// Atomic because threads of one process stand for two programs here, and the compiler does not know of the locks.
using accounts = std::array<std::atomic<int>, 2>;

void transfer(std::string const& url, accounts& all, std::size_t from, std::size_t to) {
    lockstep::client client{url};
    std::vector<std::string> const names{"account-" + std::to_string(from), "account-" + std::to_string(to)};
    lockstep::multi_lock both{client, names};
    for (int i = 0; i != 50; ++i) {
        auto const leases = both.acquire();
        all[from] = all[from] - 1;
        all[to] = all[to] + 1;
    }
}

}  // namespace

int main() try {
    lockstep::embedded_server const server;
    accounts all{100, 100};
    {
        std::jthread const there{[&] { transfer(server.url(), all, 0, 1); }};
        std::jthread const back{[&] { transfer(server.url(), all, 1, 0); }};
    }
    std::cout << "account 0 has " << all[0] << ", account 1 has " << all[1] << '\n';
    return all[0] == 100 && all[1] == 100 ? 0 : 1;
} catch (lockstep::error const& problem) {
    std::cerr << "multi_lock: " << problem.what() << '\n';
    return 1;
}
