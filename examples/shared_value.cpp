// A configuration that all programs share: one changes it, another reads it without asking the server each time; and a fence keeps out a late writer.
#include <lockstep/lockstep.hpp>
#include <lockstep/atomic_counter.hpp>
#include <lockstep/json.hpp>
#include <lockstep/near_cache.hpp>
#include <lockstep/shared_value.hpp>

#include <chrono>
#include <iostream>
#include <string>
#include <thread>

namespace {

struct settings {
    int workers = 0;
    std::string mode;
};
BOOST_DESCRIBE_STRUCT(settings, (), (workers, mode))

}  // namespace

int main() try {
    lockstep::embedded_server const server;
    lockstep::client client{server.url()};
    lockstep::shared_value<settings> shared{client, "settings"};
    lockstep::near_cache<settings> cache{client};

    shared.set({4, "calm"});
    std::cout << cache.get("settings")->value.workers << " workers\n";
    auto const watching = shared.watch([](auto const& now) {
        if (now) std::cout << "told: " << now->value.mode << '\n';
    });
    shared.update([](std::optional<settings> const& now) { return settings{now->workers * 2, "busy"}; });
    cache.forget("settings");  // it would hear of it a moment later
    std::cout << cache.get("settings")->value.workers << " workers\n";
    for (int i = 0; i != 1000; ++i) static_cast<void>(cache.get("settings"));
    std::cout << cache.statistics().hits << " reads asked nobody\n";

    lockstep::mutex mutex{client, "settings"};
    auto lease = mutex.acquire();
    auto const old = lease.fence();
    lease.release();
    auto const next = mutex.acquire();
    shared.set({1, "by the next holder"}, {.fence = next.fence()});
    try {
        shared.set({9, "too late"}, {.fence = old});
    } catch (lockstep::stale_fence_error const& refused) {
        std::cout << "refused: " << refused.what() << '\n';
    }

    lockstep::atomic_counter orders{client, "orders"};
    orders.add(41);
    std::cout << "order " << orders.add() << '\n';
    return shared.get()->value.workers == 1 ? 0 : 1;
} catch (lockstep::error const& problem) {
    std::cerr << "shared_value: " << problem.what() << '\n';
    return 1;
}
