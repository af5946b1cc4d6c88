// A worker of jobs of the type "mail" in a process of its own.
//   job_runner <url> <name> <lease ms> <mode>
//     hang  says "begun <payload> <delivery>" and hangs
//     say   says that, waits for a line of its input, and returns its payload and its delivery as the result
//     run   says that, and returns
//     fire  handles nothing: fires schedules. When it dies another one does so after <lease ms>
//     log   appends 'begin <process> <payload>' and, after a moment, 'end ...' to the list "log"; the payload "hang" has no end but a stop
// The end of its input ends it, in order.
#include <lockstep/client.hpp>
#include <lockstep/job_worker.hpp>

#include <algorithm>
#include <chrono>
#include <exception>
#include <iostream>
#include <mutex>
#include <string>
#include <thread>

#include <unistd.h>

int main(int count, char** arguments) try {
    if (count != 5) return 2;
    std::string const mode = arguments[4];
    lockstep::client client{arguments[1]};
    std::chrono::milliseconds const lease{std::stol(arguments[3])};
    auto const takeover = std::max(lease, std::chrono::milliseconds{100});
    lockstep::job_worker worker{client, arguments[2], {.concurrency = 4, .lease = lease, .fires_crons = mode == "fire", .cron_takeover = takeover}};
    std::mutex mutex;
    if (mode != "fire") worker.handle<std::string>("mail", [&](lockstep::job_context& job, std::string const& what) {
        if (mode == "log") {
            auto const who = std::to_string(::getpid()) + ' ' + what;
            client.command("RPUSH", "log", "begin " + who);
            do std::this_thread::sleep_for(std::chrono::milliseconds{3});
            while (what == "hang" && !job.stop_token().stop_requested());
            client.command("RPUSH", "log", "end " + who);
            return what;
        }
        auto const text = what + ' ' + std::to_string(job.deliveries());
        {
            std::lock_guard const guard{mutex};
            std::cout << "begun " << text << std::endl;
        }
        if (mode == "hang") std::this_thread::sleep_for(std::chrono::hours{1});
        std::string line;
        if (mode == "say") std::getline(std::cin, line);
        return text;
    });
    worker.start();
    if (mode == "fire") std::cout << "ready" << std::endl;
    if (mode == "run" || mode == "fire" || mode == "log") {
        std::string line;
        std::getline(std::cin, line);
    } else {
        while (worker.completed() == 0) std::this_thread::sleep_for(std::chrono::milliseconds{10});
    }
    worker.stop();
    std::cout << "completed " << worker.completed() << std::endl;
    return 0;
} catch (std::exception const& failure) {
    std::cerr << "failed: " << failure.what() << std::endl;
    return 1;
}
