#include "demo/worker.hpp"

#include <lockstep/barrier.hpp>
#include <lockstep/counting_semaphore.hpp>
#include <lockstep/error.hpp>
#include <lockstep/mutex.hpp>
#include <lockstep/shared_mutex.hpp>

#include <fmt/format.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <functional>
#include <map>
#include <mutex>
#include <random>
#include <stop_token>
#include <thread>

namespace lockstep::demo {
namespace {

using std::chrono::milliseconds;

/// Each line begins with when it was said, by a clock that all processes of this machine share: lines of several come here in any order.
void say(std::string_view what) {
    static std::mutex one_at_a_time;
    std::lock_guard const guard{one_at_a_time};
    auto const now = std::chrono::steady_clock::now().time_since_epoch();
    auto const line = fmt::format("{} {}\n", std::chrono::duration_cast<std::chrono::nanoseconds>(now).count(), what);
    [[maybe_unused]] auto const written = ::write(STDOUT_FILENO, line.data(), line.size());
}

class worker {
public:
    worker(client& by, std::stop_token stop) : by_(by), stop_(std::move(stop)) {}

    void ledger() {
        mutex only{by_, "ledger"};
        auto const held = only.acquire(stop_);
        rest(150, 600);
    }
    void licence() {
        auto some = counting_semaphore::create(by_, "licences", 2);
        auto const held = some.acquire(1, stop_);
        rest(300, 900);
    }
    void catalogue() {
        shared_mutex both{by_, "catalogue"};
        if (between(1, 5) == 1) {
            auto const held = both.acquire(stop_);
            rest(200, 500);
        } else {
            auto const held = both.acquire_shared(stop_);
            rest(200, 500);
        }
    }
    void round() {
        rest(200, 900);
        try {
            barrier{by_, "round", 3}.arrive_and_wait(stop_);
            say(R"({"what":"met","kind":"barrier","name":"round"})");
        } catch (broken_barrier_error const&) {
            say(R"({"what":"broken","kind":"barrier","name":"round"})");
        }
    }
    void rest(int least, int most) {
        auto const until = std::chrono::steady_clock::now() + milliseconds{between(least, most)};
        while (!stop_.stop_requested() && std::chrono::steady_clock::now() < until) std::this_thread::sleep_for(milliseconds{10});
    }

private:
    int between(int least, int most) { return std::uniform_int_distribution{least, most}(random_); }

    client& by_;
    std::stop_token stop_;
    std::mt19937 random_{std::random_device{}()};
};

}  // namespace

int run_worker(worker_options const& how) {
    static std::map<std::string, void (worker::*)()> const roles{
        {"ledger", &worker::ledger}, {"licences", &worker::licence}, {"catalogue", &worker::catalogue}, {"round", &worker::round}};
    auto const role = roles.find(how.role);
    if (role == roles.end()) return 64;
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);  // whatever ends the demo, no worker stays
    ::signal(SIGINT, SIG_IGN);           // Ctrl-C is the demo's, which then ends its workers
    std::stop_source stop;
    std::jthread const input{[&] {
        for (char ignored = 0; ::read(STDIN_FILENO, &ignored, 1) > 0;) {
        }
        stop.request_stop();
    }};
    client by{{.url = how.url,
               .name = how.name,
               .defaults = {.ttl = milliseconds{ttl_ms}},
               .trace = [](trace_record const& one) { say(to_json(one)); },
               .record = true}};  // for the history in the dashboard
    worker self{by, stop.get_token()};
    while (!stop.stop_requested()) {
        try {
            (self.*role->second)();
            self.rest(50, 200);
        } catch (cancelled_error const&) {
            break;
        } catch (error const& problem) {
            std::fprintf(stderr, "%s: %s\n", how.name.c_str(), problem.what());
            self.rest(200, 400);
        }
    }
    return 0;
}

}  // namespace lockstep::demo
