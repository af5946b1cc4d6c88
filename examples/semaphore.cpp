// Ten coroutines share three permits: never more than three work at a time.
#include <lockstep/lockstep.hpp>

#include <algorithm>
#include <iostream>
#include <vector>

namespace {

struct gauge {  // all coroutines run on the client's I/O thread, so plain numbers do
    int now = 0;
    int most = 0;
};

lockstep::task<void> download(lockstep::counting_semaphore& slots, lockstep::client& client, gauge& busy) {
    auto lease = co_await slots.async_acquire();
    busy.most = std::max(busy.most, ++busy.now);
    co_await client.async_command("INCR", "downloads");  // something that takes a while
    --busy.now;
    co_await lease.async_release();
}

}  // namespace

int main() try {
    lockstep::embedded_server const server;
    lockstep::client client{server.url()};
    auto slots = lockstep::counting_semaphore::create(client, "slots", 3);

    gauge busy;
    std::vector<lockstep::task<void>> all;
    for (int i = 0; i != 10; ++i) all.push_back(download(slots, client, busy));
    lockstep::sync_wait(lockstep::when_all(std::move(all)));
    std::cout << "at most " << busy.most << " at a time, " << slots.available() << " permits are free again\n";
    return busy.most <= 3 ? 0 : 1;
} catch (lockstep::error const& problem) {
    std::cerr << "semaphore: " << problem.what() << '\n';
    return 1;
}
