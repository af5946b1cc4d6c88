// A worker of jobs of the type "mail" in a process of its own.
//   job_runner <url> <name> <lease ms> <mode>
//     hang  says "begun <payload> <delivery>" and hangs
//     progress   tells of progress, says that, and hangs
//     say   says that, waits for a line of its input, and returns its payload and its delivery as the result
//     run   says that, and returns
//     return, retry, reject   one at a time: says that, waits for a line of its input, and returns, throws or rejects; until it is killed
//     flow  handles nothing: waits for a line of its input, adds 1,000 jobs that follow one, and one that follows them, and says "added"
//     fire  handles nothing: fires schedules. When it dies another one does so after <lease ms>
//     log   appends 'begin <process> <payload>' and, after a moment, 'end ...' to the list "log"; the payload "hang" has no end but a stop
//     die   returns, but for the payload "die", which kills it; a job that did so twice has failed
// The end of its input ends it, in order.
#include <lockstep/client.hpp>
#include <lockstep/consumer.hpp>
#include <lockstep/job_client.hpp>
#include <lockstep/job_worker.hpp>

#include <algorithm>
#include <chrono>
#include <exception>
#include <iostream>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>

#include <unistd.h>

namespace {

void add_flow(lockstep::client& client, char const* name) {
    lockstep::job_flow flow;
    flow.add("first", "mail", std::string{"first"});
    flow.add("last", "mail", std::string{"last"});
    for (int i = 0; i < 1'000; ++i) {
        auto const one = std::to_string(i);
        flow.add(one, "mail", one).after(one, "first").after("last", one);
    }
    client.command("PING");
    std::cout << "ready" << std::endl;
    std::string line;
    std::getline(std::cin, line);
    lockstep::job_client{client, name}.add_flow(flow);
    std::cout << "added" << std::endl;
}

}  // namespace

int main(int count, char** arguments) try {
    if (count != 5) return 2;
    std::string const mode = arguments[4];
    lockstep::client client{arguments[1]};
    if (mode == "flow") {
        add_flow(client, arguments[2]);
        return 0;
    }
    bool const is_slow = mode == "return" || mode == "retry" || mode == "reject";
    std::chrono::milliseconds const lease{std::stol(arguments[3])};
    auto const takeover = std::max(lease, std::chrono::milliseconds{100});
    lockstep::job_worker worker{client, arguments[2], {.concurrency = is_slow || mode == "die" ? 1U : 4U, .lease = lease, .max_crashes = mode == "die" ? 2 : 5, .fires_crons = mode == "fire", .cron_takeover = takeover}};
    std::mutex mutex;
    if (mode != "fire") worker.handle<std::string>("mail", [&](lockstep::job_context& job, std::string const& what) {
        if (mode == "die") {
            if (what == "die") ::_exit(1);
            return what;
        }
        if (mode == "log") {
            auto const who = std::to_string(::getpid()) + ' ' + what;
            client.command("RPUSH", "log", "begin " + who);
            do std::this_thread::sleep_for(std::chrono::milliseconds{3});
            while (what == "hang" && !job.stop_token().stop_requested());
            client.command("RPUSH", "log", "end " + who);
            return what;
        }
        if (mode == "progress") job.progress("so far");
        auto const text = what + ' ' + std::to_string(job.deliveries());
        {
            std::lock_guard const guard{mutex};
            std::cout << "begun " << text << std::endl;
        }
        if (mode == "hang" || mode == "progress") std::this_thread::sleep_for(std::chrono::hours{1});
        std::string line;
        if (mode == "say" || is_slow) std::getline(std::cin, line);
        if (mode == "retry") throw std::runtime_error("it does not want to");
        if (mode == "reject") throw lockstep::reject("it does not like it");
        return text;
    });
    worker.start();
    if (mode == "fire") std::cout << "ready" << std::endl;
    if (mode == "run" || mode == "fire" || mode == "log" || mode == "die") {
        std::string line;
        std::getline(std::cin, line);
    } else {
        while (is_slow || worker.completed() == 0) std::this_thread::sleep_for(std::chrono::milliseconds{10});
    }
    worker.stop();
    std::cout << "completed " << worker.completed() << std::endl;
    return 0;
} catch (std::exception const& failure) {
    std::cerr << "failed: " << failure.what() << std::endl;
    return 1;
}
