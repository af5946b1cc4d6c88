// Two candidates, each with a client of its own as if they were two programs. One leads, resigns, and the other one follows.
#include <lockstep/lockstep.hpp>

#include <atomic>
#include <chrono>
#include <iostream>
#include <string>
#include <thread>

using namespace std::chrono_literals;

namespace {

std::atomic<int> terms_left{4};

void stand(std::string const& url, std::string const& id, std::stop_source stop) {
    lockstep::client client{url};
    lockstep::election election{client, "scheduler", {.id = id}};
    election.run(
        [&](lockstep::leadership const& leads) {
            leads.check();                                  // before a step that only the leader may take
            std::this_thread::sleep_for(10ms);              // what it writes carries leads.term(): smaller ones are refused there
            if (--terms_left == 0) stop.request_stop();
        },
        stop.get_token());
}

}  // namespace

int main() try {
    lockstep::embedded_server const server;
    lockstep::client client{server.url()};
    auto const watching = lockstep::election{client, "scheduler"}.observe([](lockstep::leader_change const& change) {
        std::cout << to_string(change.what) << ' ' << change.id << ", term " << change.term << '\n';
    });
    std::stop_source stop;
    {
        std::jthread const one{[&] { stand(server.url(), "node-1", stop); }};
        std::jthread const other{[&] { stand(server.url(), "node-2", stop); }};
    }
    return terms_left <= 0 ? 0 : 1;
} catch (lockstep::error const& problem) {
    std::cerr << "election: " << problem.what() << '\n';
    return 1;
}
