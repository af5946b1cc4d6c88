#include "support/process.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <stdexcept>
#include <system_error>

namespace lockstep::bench {
namespace {

[[noreturn]] void fail(char const* what, int error = errno) {
    throw std::system_error(error, std::generic_category(), what);
}

double seconds(timeval time) { return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6; }

// Between fork and exec in a process with threads: system calls only.
[[noreturn]] void become(char* const* arguments, char* const* variables, int core, int input, int output, int report) {
    cpu_set_t only;
    CPU_ZERO(&only);
    CPU_SET(core, &only);
    bool const ready = sched_setaffinity(0, sizeof only, &only) == 0 && prctl(PR_SET_PDEATHSIG, SIGKILL) == 0 &&
                       dup2(input, STDIN_FILENO) >= 0 && dup2(output, STDOUT_FILENO) >= 0 &&
                       dup2(output, STDERR_FILENO) >= 0;
    if (ready) execvpe(arguments[0], arguments, variables);
    int const error = errno;
    [[maybe_unused]] auto const written = write(report, &error, sizeof error);
    _exit(127);
}

std::vector<char*> pointers(std::vector<std::string>& texts) {
    std::vector<char*> all;
    for (auto& text : texts) all.push_back(text.data());
    all.push_back(nullptr);
    return all;
}

}  // namespace

process::process(std::vector<std::string> const& arguments, int core, environment const& added) {
    auto words = arguments;
    std::vector<std::string> variables;
    for (char** one = environ; *one != nullptr; ++one) variables.emplace_back(*one);
    for (auto const& [name, value] : added) variables.push_back(name + "=" + value);
    auto const argv = pointers(words);
    auto const envp = pointers(variables);

    int input[2];  // a socket and no pipe: telling something to a process that is gone must be an error and no signal
    int output[2];
    int report[2];  // closed by a successful exec, else it brings the reason
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, input) != 0) fail("socketpair");
    if (pipe2(output, O_CLOEXEC) != 0 || pipe2(report, O_CLOEXEC) != 0) fail("pipe2");
    pid_ = fork();
    if (pid_ == 0) become(argv.data(), envp.data(), core, input[1], output[1], report[1]);
    close(input[1]);
    close(output[1]);
    close(report[1]);
    input_ = input[0];
    output_ = output[0];
    int error = pid_ < 0 ? errno : 0;
    if (pid_ > 0 && read(report[0], &error, sizeof error) > 0) waitpid(std::exchange(pid_, -1), nullptr, 0);
    close(report[0]);
    if (error != 0) {
        close(input_);
        close(output_);
        fail(words.front().c_str(), error);
    }
}

process::~process() {
    if (pid_ > 0) {
        kill(pid_, SIGKILL);
        waitpid(pid_, nullptr, 0);
    }
    close(input_);
    close(output_);
}

bool process::running() noexcept {
    if (pid_ > 0 && waitpid(pid_, nullptr, WNOHANG) == pid_) pid_ = -1;
    return pid_ > 0;
}

void process::signal(int number) noexcept {
    if (pid_ > 0) kill(pid_, number);
}

process_end process::wait() {
    process_end end;
    char buffer[4096];
    for (;;) {
        auto const size = read(output_, buffer, sizeof buffer);
        if (size > 0) {
            end.output.append(buffer, static_cast<std::size_t>(size));
        } else if (size == 0 || errno != EINTR) {
            break;
        }
    }
    int status = 0;
    rusage usage{};
    while (wait4(pid_, &status, 0, &usage) < 0) {
        if (errno != EINTR) fail("wait4");
    }
    pid_ = -1;
    if (WIFEXITED(status)) end.code = WEXITSTATUS(status);
    end.cpu_seconds = seconds(usage.ru_utime) + seconds(usage.ru_stime);
    return end;
}

void process::tell(std::string_view line) {
    auto const text = std::string{line} + "\n";
    if (send(input_, text.data(), text.size(), MSG_NOSIGNAL) != static_cast<ssize_t>(text.size()))
        fail("telling a process what to do");
}

std::string process::hear() {
    for (;;) {
        if (auto const end = heard_.find('\n'); end != std::string::npos) {
            auto line = heard_.substr(0, end);
            heard_.erase(0, end + 1);
            return line;
        }
        pollfd ready{.fd = output_, .events = POLLIN, .revents = 0};
        char buffer[64 * 1024];
        if (poll(&ready, 1, 30'000) == 0) throw std::runtime_error("a process of the bench is silent: " + heard_);
        auto const size = read(output_, buffer, sizeof buffer);
        if (size < 0 && errno == EINTR) continue;
        if (size <= 0) throw std::runtime_error("a process of the bench ended: " + heard_);
        heard_.append(buffer, static_cast<std::size_t>(size));
    }
}

}  // namespace lockstep::bench
