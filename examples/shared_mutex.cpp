// Many readers or one writer: a writer becomes a reader with nobody in between, and the only reader becomes a writer again.
#include <lockstep/lockstep.hpp>

#include <iostream>
#include <mutex>
#include <shared_mutex>
#include <utility>

int main() try {
    lockstep::embedded_server const server;
    lockstep::client client{server.url()};
    lockstep::shared_mutex catalogue{client, "catalogue"};

    auto writing = catalogue.acquire();
    std::cout << "a reader beside the writer: " << (catalogue.try_acquire_shared() ? "yes" : "no") << '\n';

    auto reading = catalogue.downgrade(std::move(writing));
    auto other = catalogue.acquire_shared();
    auto upgrade = catalogue.try_upgrade(std::move(reading));
    std::cout << "upgraded with another reader: " << (upgrade.done ? "yes" : "no") << '\n';

    other.release();
    upgrade = catalogue.try_upgrade(std::move(upgrade.held));
    std::cout << "upgraded as the only reader:  " << (upgrade.done ? "yes" : "no") << '\n';
    upgrade.held.release();

    std::shared_lock const guard{catalogue};  // the standard library's guards work too
} catch (lockstep::error const& problem) {
    std::cerr << "shared_mutex: " << problem.what() << '\n';
    return 1;
}
