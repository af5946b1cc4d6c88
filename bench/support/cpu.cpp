#include "support/cpu.hpp"

#include <sched.h>
#include <time.h>

#include <cerrno>
#include <system_error>

namespace lockstep::bench {
namespace {

double read_clock(clockid_t clock) {
    timespec now{};
    if (clock_gettime(clock, &now) != 0) throw std::system_error(errno, std::generic_category(), "clock_gettime");
    return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

}  // namespace

cores available_cores() {
    // Asked once: later this thread is pinned and would see one core only.
    static cores const found = [] {
        cpu_set_t allowed;
        CPU_ZERO(&allowed);
        if (sched_getaffinity(0, sizeof allowed, &allowed) != 0)
            throw std::system_error(errno, std::generic_category(), "sched_getaffinity");
        cores result{-1, -1};
        for (int core = 0; core < CPU_SETSIZE && result.client < 0; ++core) {
            if (!CPU_ISSET(core, &allowed)) continue;
            (result.server < 0 ? result.server : result.client) = core;
        }
        if (result.client < 0) result.client = result.server;
        return result;
    }();
    return found;
}

void pin_this_thread(int core) {
    cpu_set_t only;
    CPU_ZERO(&only);
    CPU_SET(core, &only);
    if (sched_setaffinity(0, sizeof only, &only) != 0)
        throw std::system_error(errno, std::generic_category(), "sched_setaffinity");
}

double thread_cpu_seconds() { return read_clock(CLOCK_THREAD_CPUTIME_ID); }

double process_cpu_seconds(pid_t pid) {
    clockid_t clock{};
    if (int const error = clock_getcpuclockid(pid, &clock); error != 0)
        throw std::system_error(error, std::generic_category(), "clock_getcpuclockid");
    return read_clock(clock);
}

double wall_seconds() { return read_clock(CLOCK_MONOTONIC); }

}  // namespace lockstep::bench
