#include "child_process.hpp"

#include "eventually.hpp"
#include "spawner.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <fstream>
#include <system_error>

namespace lockstep::test {

namespace {

// 'R', 'S', 'T', 'Z' and so on as in proc(5); 0 when there is no such process.
char state_of(pid_t pid) {
    std::ifstream file{"/proc/" + std::to_string(pid) + "/stat"};
    std::string line;
    std::getline(file, line);
    auto const name_end = line.rfind(')');  // the name in parentheses may itself hold spaces and parentheses
    return name_end == std::string::npos || name_end + 2 >= line.size() ? '\0' : line[name_end + 2];
}

std::vector<std::string> environment_with(std::vector<std::pair<std::string, std::string>> const& additions) {
    std::vector<std::string> all;
    for (char** entry = environ; *entry != nullptr; ++entry) {
        std::string const text{*entry};
        auto const replaced = [&text](auto const& added) { return text.starts_with(added.first + "="); };
        if (std::none_of(additions.begin(), additions.end(), replaced)) all.push_back(text);
    }
    for (auto const& [name, value] : additions) all.push_back(name + "=" + value);
    return all;
}

[[noreturn]] void fail(char const* what) { throw std::system_error{errno, std::generic_category(), what}; }

// Closes what the child got, once it has it.
struct descriptor {
    ~descriptor() {
        if (value >= 0) ::close(value);
    }
    int value = -1;
};

}  // namespace

child_process::child_process(std::vector<std::string> arguments, child_options const& options) {
    descriptor input;
    descriptor output;
    if (options.output_file.empty()) {
        int out[2];
        int in[2];
        if (::pipe2(out, O_CLOEXEC) != 0) fail("pipe2");
        output_ = out[0];
        output.value = out[1];
        // A socket, not a pipe: writing to a program that is gone must be an error here, not a SIGPIPE.
        if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, in) != 0) fail("socketpair");
        input_ = in[0];
        input.value = in[1];
    } else {
        input.value = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
        output.value = ::open(options.output_file.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
        if (input.value < 0 || output.value < 0) fail(options.output_file.c_str());
    }
    try {
        pid_ = spawn({.arguments = std::move(arguments),
                      .environment = environment_with(options.environment),
                      .input = input.value,
                      .output = output.value,
                      .error = options.capture_stderr ? output.value : STDERR_FILENO});
    } catch (...) {
        release();
        throw;
    }
}

child_process::~child_process() { release(); }

child_process::child_process(child_process&& other) noexcept { *this = std::move(other); }

child_process& child_process::operator=(child_process&& other) noexcept {
    std::swap(pid_, other.pid_);
    std::swap(input_, other.input_);
    std::swap(output_, other.output_);
    std::swap(unread_, other.unread_);
    std::swap(ended_, other.ended_);
    return *this;
}

void child_process::release() noexcept {
    if (pid_ > 0 && !ended_) {
        ::kill(pid_, SIGKILL);
        while (::waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
        }
    }
    if (output_ >= 0) ::close(output_);
    if (input_ >= 0) ::close(input_);
    pid_ = input_ = output_ = -1;
}

bool child_process::running() {
    if (pid_ <= 0 || ended_) return false;
    int status = 0;
    if (::waitpid(pid_, &status, WNOHANG) != pid_) return true;
    ended_.emplace();
    if (WIFEXITED(status)) ended_->code = WEXITSTATUS(status);
    if (WIFSIGNALED(status)) ended_->signal = WTERMSIG(status);
    return false;
}

// Only a process not yet reaped is signalled: its pid can't have been given to another.
void child_process::kill(int signal) {
    if (running()) ::kill(pid_, signal);
}

void child_process::stop() {
    kill(SIGSTOP);
    if (!eventually([this] { return !running() || state_of(pid_) == 'T'; })) fail("the process does not stop");
}

void child_process::cont() { kill(SIGCONT); }

std::optional<exit_status> child_process::wait(std::chrono::milliseconds timeout) {
    if (!eventually([this] { return !running(); }, timeout)) return std::nullopt;
    return ended_;
}

std::optional<std::string> child_process::read_line(std::chrono::milliseconds timeout) {
    auto const deadline = now_ms() + timeout.count();
    while (true) {
        if (auto const end = unread_.find('\n'); end != std::string::npos) {
            auto line = unread_.substr(0, end);
            unread_.erase(0, end + 1);
            return line;
        }
        pollfd ready{.fd = output_, .events = POLLIN, .revents = 0};
        auto const left = static_cast<int>(std::max<std::int64_t>(0, deadline - now_ms()));
        auto const count = ::poll(&ready, 1, left);
        if (count < 0 && errno == EINTR) continue;
        if (count <= 0) return std::nullopt;
        char buffer[4096];
        auto const got = ::read(output_, buffer, sizeof buffer);
        if (got <= 0) return std::nullopt;
        unread_.append(buffer, static_cast<std::size_t>(got));
    }
}

bool child_process::write_line(std::string const& line) {
    auto const text = line + "\n";
    return ::send(input_, text.data(), text.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(text.size());
}

void child_process::close_input() {
    if (input_ >= 0) ::close(input_);
    input_ = -1;
}

bool process_alive(pid_t pid) {
    auto const state = state_of(pid);
    return state != '\0' && state != 'Z' && state != 'X';
}

}  // namespace lockstep::test
