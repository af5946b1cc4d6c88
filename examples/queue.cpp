// Orders are enqueued by one program and shipped by another; one of them can't be shipped and ends as a dead letter.
#include <lockstep/json.hpp>
#include <lockstep/queue.hpp>
#include <lockstep/lockstep.hpp>

#include <atomic>
#include <chrono>
#include <iostream>
#include <stdexcept>
#include <string>
#include <thread>

using namespace std::chrono_literals;

struct order {
    int id = 0;
    std::string to;
};
BOOST_DESCRIBE_STRUCT(order, (), (id, to))

int main() try {
    lockstep::embedded_server const server;
    lockstep::client shop{server.url()};
    lockstep::client warehouse{server.url()};
    lockstep::queue<order> sent{shop, "orders"};
    lockstep::queue<order> received{warehouse, "orders", {.max_deliveries = 2}};

    std::atomic<int> shipped{0};
    auto worker = received.consume({.concurrency = 4, .backoff = 10ms}, [&](order const& one) {
        if (one.to == "nowhere") throw std::runtime_error("no such address");
        ++shipped;
    });
    for (int i = 0; i != 20; ++i) sent.enqueue(order{i, i == 7 ? "nowhere" : "Anna"});
    while (shipped != 19 || sent.counts().dead != 1) std::this_thread::yield();
    worker.stop();

    auto const letter = sent.dead_letters().at(0);
    std::cout << shipped << " orders shipped; order " << letter.value().id << " was not: " << letter.reason << '\n';
    return letter.value().id == 7 ? 0 : 1;
} catch (lockstep::error const& problem) {
    std::cerr << "queue: " << problem.what() << '\n';
    return 1;
}
