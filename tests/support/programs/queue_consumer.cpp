// A program that takes items from a queue, to be killed while it does.
//   queue_consumer <url> <name> wait                     waits for an item
//   queue_consumer <url> <name> take|work|ack|acked <ms>  says "ready" at that step and stays there: as soon as it has the item; when its work is
//                                                        done; after the acknowledgement was answered. ack: says it, begins to acknowledge and kills itself
//   queue_consumer <url> <name> drain <ms>               takes, says "<value> <deliveries>" of each, acknowledges; until there is none for so long
#include <lockstep/queue.hpp>

#include <unistd.h>

#include <chrono>
#include <csignal>
#include <exception>
#include <iostream>
#include <string>

int main(int count, char** arguments) try {
    if (count < 4) return 2;
    lockstep::client client{arguments[1]};
    std::string const step = arguments[3];
    auto const time = std::chrono::milliseconds{count > 4 ? std::stol(arguments[4]) : 30'000};
    auto const ready = [] {
        std::cout << "ready" << std::endl;
        while (true) ::pause();
    };
    if (step == "drain") {
        lockstep::queue<std::string> queue{client, arguments[2], {.visibility = std::chrono::milliseconds{500}}};
        while (auto item = queue.dequeue(time)) {
            std::cout << item->value() << ' ' << item->deliveries() << '\n' << std::flush;
            item->ack();
        }
        std::cout << "end" << std::endl;
        return 0;
    }
    lockstep::queue<std::string> queue{client, arguments[2], {.visibility = time}};
    auto item = queue.dequeue();
    if (step == "take") ready();
    std::string const value = item.value();
    if (step == "work") ready();
    if (step == "ack") {
        std::cout << "ready" << std::endl;
        lockstep::start(item.async_ack(), [](std::exception_ptr) {});
        ::kill(::getpid(), SIGKILL);
    }
    item.ack();
    if (step == "acked") ready();
    return 0;
} catch (std::exception const& failure) {
    std::cout << "failed: " << failure.what() << std::endl;
    return 1;
}
