// A distributed lock is taken, lost and handed over, in about a second. Two processes share a mutex; what it guards is a value that checks the
// fencing token. One of them is paused for longer than its lease lasts, as a long garbage collection or a suspended machine would do.
#include <lockstep/lockstep.hpp>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <string>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

using namespace std::chrono_literals;

namespace {

// A holder that was killed or paused keeps the others waiting for this long: 30 s unless you say otherwise. While it runs, the lease is renewed.
constexpr lockstep::lease_options options{.ttl = 1s};

void write_report(lockstep::client& client, char const* process, lockstep::lease const& lease) {
    try {
        lockstep::shared_value<std::string>{client, "report"}.set(process, {.fence = lease.fence()});
        std::printf("%-7s wrote the report with fencing token %llu\n", process, static_cast<unsigned long long>(lease.fence()));
    } catch (lockstep::stale_fence_error const& refused) {
        std::printf("%-7s was refused: %s\n", process, refused.what());
    }
}

void first_process(char const* url) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);  // it must not stay behind, paused, if the other one fails
    lockstep::client client{url};
    auto lease = lockstep::mutex{client, "nightly-report", options}.acquire();
    std::printf("first   took the lock\n");
    write_report(client, "first", lease);
    lockstep::event{client, "first-holds-the-lock"}.set();
    auto const stop = lease.stop_token();  // trips before another process can have the lock, if this one runs at that time
    while (!stop.stop_requested()) std::this_thread::sleep_for(10ms);
    std::printf("first   runs again: its stop token has tripped, the lock is lost\n");
    write_report(client, "first", lease);  // as a program does that ignores the stop token: only the fencing token can prevent it
}

bool second_process(char const* program) {
    lockstep::embedded_server const server;  // a private one; with `lockstep::client client;` all programs of this user share a server
    lockstep::client client{server.url()};
    pid_t const first = fork();
    if (first == 0) {
        execl("/proc/self/exe", program, server.url().c_str(), nullptr);
        _exit(127);
    }
    if (!lockstep::event{client, "first-holds-the-lock"}.wait_for(30s)) return false;
    kill(first, SIGSTOP);
    std::printf("first   is paused (SIGSTOP), second waits for the lock\n");
    auto const begin = std::chrono::steady_clock::now();
    auto const lease = lockstep::mutex{client, "nightly-report", options}.acquire();  // in a queue at the server, without polling
    auto const waited = std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::steady_clock::now() - begin);
    std::printf("second  took the lock over after %lld ms\n", static_cast<long long>(waited.count()));
    write_report(client, "second", lease);

    kill(first, SIGCONT);
    waitpid(first, nullptr, 0);
    auto const report = lockstep::shared_value<std::string>{client, "report"}.get();
    std::printf("The report is that of the %s process.\n", report->value.c_str());
    return report->value == "second";
}  // its lease is released here

}  // namespace

int main(int argc, char** argv) try {
    std::setvbuf(stdout, nullptr, _IOLBF, 0);  // lines of both processes in their order, also in a pipe
    if (argc < 2) return second_process(argv[0]) ? 0 : 1;
    first_process(argv[1]);
} catch (lockstep::error const& problem) {
    std::fprintf(stderr, "quickstart: %s\n", problem.what());
    return 1;
}
