// Orders are added to a stream; two workers of a group handle them, one order is broken and ends among the dead letters.
#include <lockstep/consumer.hpp>
#include <lockstep/embedded_server.hpp>
#include <lockstep/idempotency.hpp>
#include <lockstep/json.hpp>
#include <lockstep/stream.hpp>

#include <atomic>
#include <chrono>
#include <iostream>
#include <string>
#include <thread>

namespace shop {

struct order {
    int id;
    std::string item;
};
BOOST_DESCRIBE_STRUCT(order, (), (id, item))

}  // namespace shop

int main() try {
    using namespace std::chrono_literals;
    lockstep::embedded_server const server;
    lockstep::client client{server.url()};
    lockstep::stream orders{client, "orders", {.max_length = 100'000}};
    lockstep::idempotency charged{client, "charged"};

    std::atomic<int> handled{0};
    auto const charge = [&](lockstep::delivery const& what) {
        auto const order = what.as<shop::order>();
        if (order.item.empty()) throw lockstep::reject{"there is no item"};
        charged.run(what.id, [&] { ++handled; });  // once, be it delivered twice
    };
    lockstep::consumer first{client, "orders", charge, {.group = "billing", .concurrency = 4}};
    lockstep::consumer second{client, "orders", charge, {.group = "billing", .concurrency = 4}};

    for (int i = 1; i <= 100; ++i) orders.add_value(shop::order{i, i == 13 ? "" : "book"});
    while (handled < 99 || orders.dead_letters().length() < 1) std::this_thread::sleep_for(10ms);

    first.stop();
    second.stop();
    std::cout << handled << " orders were charged, " << first.backlog().pending << " are pending\n";
    for (auto const& dead : orders.dead_letters().range()) std::cout << "given up: " << dead.payload() << ", because " << *dead.find("dead.reason") << '\n';
    return 0;
} catch (std::exception const& problem) {
    std::cerr << "stream: " << problem.what() << '\n';
    return 1;
}
