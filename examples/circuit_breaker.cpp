// What one process finds broken, the other does not call any more; a probe finds out when it works again.
#include <lockstep/lockstep.hpp>
#include <lockstep/circuit_breaker.hpp>

#include <chrono>
#include <iostream>
#include <stdexcept>
#include <thread>

int main() try {
    using namespace std::chrono_literals;
    lockstep::embedded_server const server;
    lockstep::client here{server.url()};
    lockstep::client there{server.url()};
    lockstep::circuit_breaker_options how{.failure_threshold = 3, .recovery_timeout = 50ms};
    lockstep::circuit_breaker mine{here, "payments", how};
    lockstep::circuit_breaker yours{there, "payments", how};
    bool works = false;
    auto const pay = [&] {
        if (!works) throw std::runtime_error("no answer");
        return 7;
    };

    std::cout << "yours: " << yours.execute(pay, [] { return -1; }) << '\n';
    for (int i = 0; i != 3; ++i) mine.execute(pay, [] { return -1; });
    mine.flush();
    yours.look();  // it would be told by itself, a moment later
    std::cout << "yours is " << to_string(yours.state().state) << '\n';
    works = true;
    int paid = -1;
    while (paid < 0) {
        paid = yours.execute(pay, [] { return -1; });
        std::this_thread::sleep_for(5ms);
    }
    std::cout << "paid: " << paid << '\n';
    return paid == 7 ? 0 : 1;
} catch (lockstep::error const& problem) {
    std::cerr << "circuit_breaker: " << problem.what() << '\n';
    return 1;
}
