#include "spawn.hpp"

#include "files.hpp"

#include <lockstep/error.hpp>

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/close_range.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>

namespace lockstep::embedded {
namespace {

constexpr int first_kept = STDERR_FILENO + 1;

// Everything the child needs, laid out before the fork: after it only async-signal-safe calls are allowed, since another
// thread may have held any lock (the allocator's, say) at that moment.
class launch {
public:
    explicit launch(program const& program) : path_{program.arguments.at(0)} {
        for (auto const& text : program.arguments) arguments_.push_back(const_cast<char*>(text.c_str()));
        arguments_.push_back(nullptr);
        if (program.environment) {
            for (auto const& text : *program.environment) environment_.push_back(const_cast<char*>(text.c_str()));
            environment_.push_back(nullptr);
        }
        null_ = high(descriptor{::open("/dev/null", O_RDWR | O_CLOEXEC)});
        log_ = high(descriptor{
            ::open(program.log_file.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0600)});
        for (int const kept : program.keep) keep_.push_back(above_targets(kept));
        int ends[2];
        if (::pipe2(ends, O_CLOEXEC) != 0) fail(errno);
        report_read_ = descriptor{ends[0]};
        report_write_ = high(descriptor{ends[1]});
        rlimit limit{};
        ::getrlimit(RLIMIT_NOFILE, &limit);
        max_descriptor_ = static_cast<int>(std::min<rlim_t>(limit.rlim_cur, 65'536));
        parent_ = ::getpid();
    }

    // In the child. Never returns.
    [[noreturn]] void become_bound() const noexcept {
        ::prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (::getppid() != parent_) ::_exit(127);  // the parent died before the line above took effect
        ::setpgid(0, 0);
        execute();
    }

    // In the child: a grandchild goes on, so that nobody here has to wait for it.
    [[noreturn]] void become_detached() const noexcept {
        auto const grandchild = ::fork();
        if (grandchild < 0) report(errno);
        if (grandchild != 0) ::_exit(0);
        ::setsid();
        execute();
    }

    // In the parent: returns when the program runs.
    void wait_for_exec() {
        report_write_.close();
        int reason = 0;
        ssize_t got = 0;
        do {
            got = ::read(report_read_.get(), &reason, sizeof reason);
        } while (got < 0 && errno == EINTR);
        if (got > 0) fail(reason);  // exec closes the pipe, so nothing comes when it succeeds
    }

    [[noreturn]] void fail(int reason) const {
        throw unavailable_error{fmt::format("can't start {}: {}", path_, std::strerror(reason))};
    }

private:
    // Above every number that the child assigns, so that no assignment hits another's source.
    descriptor above_targets(int fd) const {
        descriptor copy{::fcntl(fd, F_DUPFD_CLOEXEC, 16)};
        if (!copy) fail(errno);
        return copy;
    }
    descriptor high(descriptor fd) const { return above_targets(fd.get()); }

    [[noreturn]] void execute() const noexcept {
        // Handlers first, then the mask: a signal that waits must find the default, not this program's code.
        for (int number = 1; number < NSIG; ++number) ::signal(number, SIG_DFL);
        sigset_t none;
        ::sigemptyset(&none);
        ::sigprocmask(SIG_SETMASK, &none, nullptr);
        ::umask(077);
        if (::chdir("/") != 0) report(errno);
        ::dup2(null_.get(), STDIN_FILENO);
        ::dup2(log_.get(), STDOUT_FILENO);
        ::dup2(log_.get(), STDERR_FILENO);
        int next = first_kept;
        for (auto const& kept : keep_) ::dup2(kept.get(), next++);
        if (::close_range(static_cast<unsigned>(next), ~0U, CLOSE_RANGE_CLOEXEC) != 0) {  // before Linux 5.11
            for (int fd = next; fd < max_descriptor_; ++fd) ::fcntl(fd, F_SETFD, FD_CLOEXEC);
        }
        ::execve(path_.c_str(), arguments_.data(), environment_.empty() ? environ : environment_.data());
        report(errno);
    }

    [[noreturn]] void report(int reason) const noexcept {
        [[maybe_unused]] auto const written = ::write(report_write_.get(), &reason, sizeof reason);
        ::_exit(127);
    }

    std::string const& path_;
    std::vector<char*> arguments_;
    std::vector<char*> environment_;
    std::vector<descriptor> keep_;
    descriptor null_;
    descriptor log_;
    descriptor report_read_;
    descriptor report_write_;
    int max_descriptor_ = 0;
    pid_t parent_ = 0;
};

// The program may have its own ideas about SIGCHLD and reap everything: then there is nothing left to wait for.
void reap(pid_t pid) {
    while (::waitpid(pid, nullptr, 0) < 0 && errno == EINTR) {
    }
}

}  // namespace

pid_t spawn_bound(program const& program) {
    launch launch{program};
    auto const child = ::fork();
    if (child == 0) launch.become_bound();
    if (child < 0) launch.fail(errno);
    try {
        launch.wait_for_exec();
    } catch (...) {
        reap(child);
        throw;
    }
    return child;
}

void spawn_detached(program const& program) {
    launch launch{program};
    auto const child = ::fork();
    if (child == 0) launch.become_detached();
    if (child < 0) launch.fail(errno);
    reap(child);
    launch.wait_for_exec();
}

}  // namespace lockstep::embedded
