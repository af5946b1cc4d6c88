#include "cli/guard.hpp"

#include <fcntl.h>
#include <linux/close_range.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <set>
#include <system_error>

namespace lockstep::cli {
namespace {

[[noreturn]] void stand_guard(int line) {
    ::setsid();  // what the terminal sends is not for it
    sigset_t all;
    sigfillset(&all);
    ::sigprocmask(SIG_SETMASK, &all, nullptr);
    ::prctl(PR_SET_NAME, "lockstep-guard");
    // Whoever waits for the end of our output must not wait for this process, nor does it keep any file in use.
    if (::chdir("/") != 0) ::_exit(1);
    if (line > 0) ::close_range(0, static_cast<unsigned>(line - 1), 0);
    ::close_range(static_cast<unsigned>(line + 1), ~0U, 0);
    std::set<pid_t> groups;
    while (true) {
        pid_t next = 0;
        auto const got = ::read(line, &next, sizeof next);
        if (got < 0 && errno == EINTR) continue;
        if (got != sizeof next) break;  // the other end is closed: by ~guard, or because the process is gone
        if (next > 1) groups.insert(next);
        else if (next < 0) groups.erase(-next);
        else groups.clear();
    }
    for (auto const group : groups) ::kill(-group, SIGKILL);
    ::_exit(0);
}

}  // namespace

guard::guard() {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) throw std::system_error{errno, std::generic_category(), "pipe"};
    pid_ = ::fork();
    if (pid_ == 0) {
        ::close(ends[1]);
        stand_guard(ends[0]);
    }
    int const problem = errno;
    ::close(ends[0]);
    line_ = ends[1];
    if (pid_ < 0) {
        ::close(line_);
        throw std::system_error{problem, std::generic_category(), "can't start a process"};
    }
}

void guard::watch(pid_t group) noexcept {
    // The reader lives as long as we do; should somebody have killed it, a signal would be one too many.
    sigset_t pipe;
    sigset_t before;
    sigemptyset(&pipe);
    sigaddset(&pipe, SIGPIPE);
    ::pthread_sigmask(SIG_BLOCK, &pipe, &before);
    [[maybe_unused]] auto const written = ::write(line_, &group, sizeof group);
    timespec const at_once{};
    if (written < 0) ::sigtimedwait(&pipe, nullptr, &at_once);
    ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

// What it still watches over then is killed: nobody has said that it ended in order.
guard::~guard() {
    ::close(line_);
    while (::waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
    }
}

}  // namespace lockstep::cli
