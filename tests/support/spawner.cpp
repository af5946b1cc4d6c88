#include "spawner.hpp"

#include <fcntl.h>
#include <linux/close_range.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <condition_variable>
#include <csignal>
#include <deque>
#include <future>
#include <mutex>
#include <system_error>
#include <thread>

namespace lockstep::test {

namespace {

// Everything the child needs is laid out before the fork: after it, only async-signal-safe calls are allowed, since
// another thread may have held the allocator's lock at that moment.
struct prepared {
    explicit prepared(spawn_request const& from) : request{from} {
        for (auto const& text : request.arguments) arguments.push_back(const_cast<char*>(text.c_str()));
        for (auto const& text : request.environment) environment.push_back(const_cast<char*>(text.c_str()));
        arguments.push_back(nullptr);
        environment.push_back(nullptr);
    }
    spawn_request const& request;
    std::vector<char*> arguments;
    std::vector<char*> environment;
};

[[noreturn]] void become(prepared const& program, pid_t parent, int report) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != parent) ::_exit(127);  // the parent died before the line above took effect
    sigset_t none;
    ::sigemptyset(&none);
    ::sigprocmask(SIG_SETMASK, &none, nullptr);
    ::signal(SIGPIPE, SIG_DFL);
    ::dup2(program.request.input, STDIN_FILENO);
    ::dup2(program.request.output, STDOUT_FILENO);
    ::dup2(program.request.error, STDERR_FILENO);
    // A socket of the test that leaked into a server would keep a connection open that the test believes closed.
    ::close_range(STDERR_FILENO + 1, ~0U, CLOSE_RANGE_CLOEXEC);
    ::execvpe(program.arguments[0], program.arguments.data(), program.environment.data());
    auto const reason = errno;
    [[maybe_unused]] auto const written = ::write(report, &reason, sizeof reason);
    ::_exit(127);
}

pid_t fork_and_exec(spawn_request const& request) {
    prepared const program{request};
    int report[2];
    if (::pipe2(report, O_CLOEXEC) != 0) throw std::system_error{errno, std::generic_category(), "pipe2"};
    auto const parent = ::getpid();
    auto const child = ::fork();
    if (child == 0) become(program, parent, report[1]);
    auto const fork_error = errno;
    ::close(report[1]);
    int reason = 0;  // stays 0 when exec succeeds: the pipe closes with it
    auto const got = child < 0 ? 0 : ::read(report[0], &reason, sizeof reason);
    ::close(report[0]);
    if (child < 0) throw std::system_error{fork_error, std::generic_category(), "fork"};
    if (got > 0) {
        ::waitpid(child, nullptr, 0);
        throw std::system_error{reason, std::generic_category(), "can't start " + request.arguments[0]};
    }
    return child;
}

class spawner_thread {
public:
    spawner_thread() {
        std::thread{[this] { run(); }}.detach();
    }

    pid_t spawn(spawn_request const& request) {
        std::packaged_task<pid_t()> job{[&request] { return fork_and_exec(request); }};
        auto result = job.get_future();
        {
            std::lock_guard const lock{mutex_};
            jobs_.push_back(std::move(job));
        }
        arrived_.notify_one();
        return result.get();
    }

private:
    [[noreturn]] void run() {
        while (true) {
            std::unique_lock lock{mutex_};
            arrived_.wait(lock, [this] { return !jobs_.empty(); });
            auto job = std::move(jobs_.front());
            jobs_.pop_front();
            lock.unlock();
            job();
        }
    }

    std::mutex mutex_;
    std::condition_variable arrived_;
    std::deque<std::packaged_task<pid_t()>> jobs_;
};

}  // namespace

pid_t spawn(spawn_request const& request) {
    static auto& thread = *new spawner_thread;  // never destroyed: its end would end the children
    return thread.spawn(request);
}

}  // namespace lockstep::test
