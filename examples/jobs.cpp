// Jobs: some work, some fail at first, one is cancelled.
#include <lockstep/lockstep.hpp>

#include <chrono>
#include <iostream>
#include <stdexcept>
#include <string>

using namespace std::chrono_literals;

int main() try {
    lockstep::embedded_server const server;
    lockstep::client client{server.url()};
    lockstep::job_client jobs{client, "shop"};

    lockstep::job_worker worker{client, "shop", {.concurrency = 4}};
    worker.handle<std::string>("greet", [](lockstep::job_context& job, std::string const& who) {
        if (job.attempt() == 1 && who == "Bob") throw std::runtime_error("Bob is busy");
        return "Hello, " + who + "!";
    });
    worker.start();

    auto const never = jobs.schedule("greet", std::string{"nobody"}, {.delay = 1h});
    auto const alice = jobs.schedule("greet", std::string{"Alice"});
    auto const bob = jobs.schedule("greet", std::string{"Bob"}, {.backoff = 50ms});
    bool const is_cancelled = jobs.cancel(never.id);
    for (auto const* const one : {&alice, &bob}) {
        auto const end = jobs.wait(one->id, 10s);
        if (!end || end->state != lockstep::job_state::completed) return 1;
        std::cout << end->result << '\n';
    }
    std::cout << jobs.find(bob.id)->failures.size() << " try failed before that\n";
    return is_cancelled ? 0 : 1;
} catch (lockstep::error const& problem) {
    std::cerr << "jobs: " << problem.what() << '\n';
    return 1;
}
