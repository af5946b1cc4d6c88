#include "cli/child.hpp"

#include "cli/context.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <string_view>
#include <system_error>

namespace lockstep::cli {
namespace {

std::string reason(int number) { return std::generic_category().message(number); }

/// 0, or why it can't be executed.
int check_program(std::string const& path) {
    struct stat about {};
    if (::stat(path.c_str(), &about) != 0) return errno;
    if (S_ISDIR(about.st_mode)) return EISDIR;
    return ::access(path.c_str(), X_OK) == 0 ? 0 : errno;
}

[[noreturn]] void refuse(std::string const& word, int problem) {
    if (problem == ENOENT || problem == ENOTDIR)
        throw failure{exit_code::not_found, fmt::format("there is no command {}", printable(word)), "what stands behind -- is run as it is, without a shell"};
    auto const hint = problem == ENOEXEC ? "a script needs a first line such as #!/bin/sh" : "";
    throw failure{exit_code::not_executable, fmt::format("can't run {}: {}", printable(word), reason(problem)), hint};
}

bool is_pipe(int descriptor) {
    struct stat about {};
    return ::fstat(descriptor, &about) == 0 && (S_ISFIFO(about.st_mode) || S_ISSOCK(about.st_mode));
}

/// Of the variables that Lockstep reads, those that may hold a password or a token.
bool is_secret(std::string_view name) {
    if (name == "LOCKSTEP_URL" || name == "REDIS_URL") return true;
    return name.starts_with("LOCKSTEP_") && (name.find("PASSWORD") != std::string_view::npos || name.find("TOKEN") != std::string_view::npos);
}

std::vector<std::string> environment_of(command_line const& command) {
    auto const is_passed_on = [&command](std::string_view name) {
        if (name == "LOCKSTEP_DASHBOARD_TOKEN") return false;  // it is for the dashboard, and no command is one
        if (!command.knows_server && is_secret(name)) return false;
        return std::none_of(command.added.begin(), command.added.end(), [name](auto const& pair) { return pair.first == name; });
    };
    std::vector<std::string> all;
    for (char** entry = environ; *entry != nullptr; ++entry) {
        std::string_view const text{*entry};
        if (is_passed_on(text.substr(0, text.find('=')))) all.emplace_back(text);
    }
    for (auto const& [name, value] : command.added) all.push_back(name + "=" + value);
    if (!command.knows_server) all.emplace_back("LOCKSTEP_URL=none:");  // not nothing: it would use this user's embedded server
    return all;
}

std::vector<char*> pointers(std::vector<std::string> const& texts) {
    std::vector<char*> all;
    for (auto const& text : texts) all.push_back(const_cast<char*>(text.c_str()));
    all.push_back(nullptr);
    return all;
}

/// In the child of a process with threads: system calls only.
[[noreturn]] void become(command_line const& what, char* const* words, char* const* variables, pid_t parent, int tty, sigset_t const& mask, int report,
                         int guard) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != parent) ::_exit(127);  // it died before the line above took effect
    ::setpgid(0, 0);
    auto const group = ::getpid();
    if (::write(guard, &group, sizeof group) != sizeof group) ::_exit(127);  // from here on it does not outlive us unseen
    if (tty >= 0) ::tcsetpgrp(tty, ::getpid());  // SIGTTOU is blocked still
    for (int i = 0; i != 3; ++i) {
        if (int const stream = what.streams[static_cast<std::size_t>(i)]; stream >= 0) ::dup2(stream, i);
    }
    ::pthread_sigmask(SIG_SETMASK, &mask, nullptr);
    ::execve(what.path.c_str(), words, variables);
    int const problem = errno;
    [[maybe_unused]] auto const written = ::write(report, &problem, sizeof problem);
    ::_exit(127);
}

}  // namespace

std::string find_program(std::string const& word) {
    if (word.empty()) refuse(word, ENOENT);
    if (word.find('/') != std::string::npos) {
        if (int const problem = check_program(word); problem != 0) refuse(word, problem);
        return word;
    }
    auto const* const path = std::getenv("PATH");
    std::string_view rest = path != nullptr ? path : "/usr/local/bin:/usr/bin:/bin";
    int worst = ENOENT;
    while (true) {
        auto const end = std::min(rest.find(':'), rest.size());
        auto const folder = rest.substr(0, end);
        auto candidate = fmt::format("{}/{}", folder.empty() ? "." : folder, word);
        int const problem = check_program(candidate);
        if (problem == 0) return candidate;
        if (problem == EACCES) worst = problem;
        if (end == rest.size()) break;
        rest.remove_prefix(end + 1);
    }
    refuse(word, worst);
}

terminal::terminal() : descriptor_(::open("/dev/tty", O_RDWR | O_CLOEXEC)), shared_(is_pipe(0) || is_pipe(1)) {}

terminal::~terminal() {
    take_back();
    if (descriptor_ >= 0) ::close(descriptor_);
}

bool terminal::ours() const noexcept { return descriptor_ >= 0 && ::tcgetpgrp(descriptor_) == ::getpgrp(); }

void terminal::give(pid_t group) noexcept {
    if (descriptor_ >= 0 && ::tcsetpgrp(descriptor_, group) == 0) given_ = true;
}

void terminal::take_back() noexcept {
    if (std::exchange(given_, false)) ::tcsetpgrp(descriptor_, ::getpgrp());
}

pid_t launch(command_line const& what, terminal* on, sigset_t const& mask, int guard) {
    auto const environment = environment_of(what);
    auto const words = pointers(what.words);
    auto const variables = pointers(environment);
    int report[2];  // closed by a successful exec, else it brings the reason
    if (::pipe2(report, O_CLOEXEC) != 0) throw std::system_error{errno, std::generic_category(), "pipe"};
    bool const give = on != nullptr && on->ours() && !on->shared();
    auto const parent = ::getpid();
    auto const pid = ::fork();
    if (pid == 0) become(what, words.data(), variables.data(), parent, give ? on->descriptor() : -1, mask, report[1], guard);
    int problem = pid < 0 ? errno : 0;
    ::close(report[1]);
    if (pid > 0) {
        ::setpgid(pid, pid);  // here too: whichever of the two comes first
        if (give) on->give(pid);
        while (::read(report[0], &problem, sizeof problem) < 0 && errno == EINTR) {
        }
    }
    ::close(report[0]);
    if (pid < 0) throw std::system_error{problem, std::generic_category(), "can't start a process"};
    if (problem != 0) {
        ::waitpid(pid, nullptr, 0);
        if (give) on->take_back();
        refuse(what.words.front(), problem);
    }
    return pid;
}

}  // namespace lockstep::cli
