// The life of a lease: at risk, lost when the server is gone, and handed from one program to another.
#include <lockstep/lockstep.hpp>

#include <chrono>
#include <iostream>
#include <optional>
#include <semaphore>
#include <stop_token>
#include <string>
#include <string_view>

using namespace std::chrono_literals;

namespace {

void hand_over(std::string const& url) {
    lockstep::client here{url};
    lockstep::client there{url};  // as if it were another program
    std::string const token = lockstep::mutex{here, "import"}.acquire().detach();
    auto adopted = lockstep::lease::adopt(there, token);
    std::cout << "adopted   " << adopted.name() << '\n';
    adopted.release();
}

void lose_the_server() {
    auto server = std::make_optional<lockstep::embedded_server>();
    lockstep::client client{server->url()};
    auto const lease = lockstep::mutex{client, "report", {.ttl = 300ms}}.acquire();

    std::binary_semaphore at_risk{0};
    std::binary_semaphore lost{0};
    std::stop_callback const first{lease.at_risk_token(), [&] { at_risk.release(); }};
    std::stop_callback const then{lease.stop_token(), [&] { lost.release(); }};
    server.reset();
    at_risk.acquire();
    std::cout << "at risk   finish soon\n";
    lost.acquire();
    std::cout << "lost      stop; valid is " << std::boolalpha << lease.valid() << '\n';
}

}  // namespace

int main() try {
    lockstep::set_log_hook([](lockstep::log_level, std::string_view) {});  // the loss would be logged too
    lockstep::embedded_server const server;
    hand_over(server.url());
    lose_the_server();
} catch (lockstep::error const& problem) {
    std::cerr << "lease: " << problem.what() << '\n';
    return 1;
}
