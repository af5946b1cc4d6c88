// News for whoever listens just now, and the same over a stream for those who come later.
#include <lockstep/durable_bus.hpp>
#include <lockstep/embedded_server.hpp>
#include <lockstep/event_bus.hpp>

#include <atomic>
#include <chrono>
#include <iostream>
#include <string>
#include <thread>

int main() try {
    using namespace std::chrono_literals;
    lockstep::embedded_server const server;
    lockstep::client client{server.url()};

    lockstep::event_bus bus{client, "weather"};
    std::atomic<int> heard{0};
    auto const all = bus.subscribe_pattern<int>("temperature.*", [&](int degrees, std::string_view channel) {
        std::cout << channel << ": " << degrees << '\n';
        ++heard;
    });
    bus.publish("temperature.berlin", 21);
    bus.publish("temperature.lima", 17);
    bus.publish("rain.lima", 3);
    while (heard < 2) std::this_thread::sleep_for(10ms);

    lockstep::durable_bus kept{client, "weather"};
    kept.publish("temperature.oslo", -3);
    std::atomic<bool> told{false};
    auto const later = kept.subscribe_pattern<int>("*", [&](int degrees) {
        std::cout << "kept for those who come later: " << degrees << '\n';
        told = true;
    }, {.from = "0"});
    while (!told) std::this_thread::sleep_for(10ms);
    return 0;
} catch (std::exception const& problem) {
    std::cerr << "event_bus: " << problem.what() << '\n';
    return 1;
}
