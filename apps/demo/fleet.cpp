#include "demo/fleet.hpp"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <system_error>
#include <utility>

namespace lockstep::demo {

fleet::fleet(std::string program, std::string url, std::vector<member> members)
    : program_(std::move(program)), url_(std::move(url)), members_(std::move(members)), pipes_(members_.size()) {}

fleet::~fleet() {
    for (std::size_t i = 0; i < members_.size(); ++i) {
        if (members_[i].pid > 0) {
            ::kill(members_[i].pid, SIGKILL);
            ::waitpid(members_[i].pid, nullptr, 0);
        }
        close(i);
    }
}

std::size_t fleet::index_of(member const& who) const {
    auto const found = std::find_if(members_.begin(), members_.end(), [&](member const& one) { return one.name == who.name; });
    return static_cast<std::size_t>(found - members_.begin());
}

void fleet::close(std::size_t index) noexcept {
    for (int* const end : {&pipes_[index].input, &pipes_[index].output}) {
        if (*end >= 0) ::close(std::exchange(*end, -1));
    }
    pipes_[index].unread.clear();
}

void fleet::start(member const& who) {
    auto const index = index_of(who);
    auto& self = members_[index];
    std::array<int, 2> in{}, out{};
    if (::pipe2(in.data(), O_CLOEXEC) != 0) throw std::system_error{errno, std::generic_category(), "a pipe for a worker"};
    if (::pipe2(out.data(), O_CLOEXEC) != 0) {
        ::close(in[0]);
        ::close(in[1]);
        throw std::system_error{errno, std::generic_category(), "a pipe for a worker"};
    }
    posix_spawn_file_actions_t actions{};
    ::posix_spawn_file_actions_init(&actions);
    ::posix_spawn_file_actions_adddup2(&actions, in[0], STDIN_FILENO);
    ::posix_spawn_file_actions_adddup2(&actions, out[1], STDOUT_FILENO);
    posix_spawnattr_t attributes{};
    ::posix_spawnattr_init(&attributes);
    ::posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK);
    sigset_t none{};
    ::sigemptyset(&none);
    ::posix_spawnattr_setsigmask(&attributes, &none);
    std::vector<std::string> words{program_, "demo-worker", "--url", url_, "--worker", self.name, "--role", self.role};
    std::vector<char*> raw;
    for (auto& one : words) raw.push_back(one.data());
    raw.push_back(nullptr);
    int const problem = ::posix_spawn(&self.pid, program_.c_str(), &actions, &attributes, raw.data(), environ);
    ::posix_spawn_file_actions_destroy(&actions);
    ::posix_spawnattr_destroy(&attributes);
    ::close(in[0]);
    ::close(out[1]);
    pipes_[index] = {in[1], out[0], {}};
    if (problem == 0) return;
    self.pid = -1;
    close(index);
    throw std::system_error{problem, std::generic_category(), "a worker can't be started"};
}

void fleet::kill(member const& who, clock::time_point again, hears const& told) {
    auto const index = index_of(who);
    auto& self = members_[index];
    if (self.pid <= 0) return;
    ::kill(self.pid, SIGKILL);
    ::waitpid(self.pid, nullptr, 0);
    while (drain(index, told)) {
    }
    self.pid = -1;
    self.again = again;
    close(index);
}

bool fleet::drain(std::size_t index, hears const& told) {
    auto& from = pipes_[index];
    if (from.output < 0) return false;
    std::array<char, 4'096> buffer{};
    auto const got = ::read(from.output, buffer.data(), buffer.size());
    if (got <= 0) {
        if (got == 0) ::close(std::exchange(from.output, -1));
        return got < 0 && errno == EINTR;
    }
    from.unread.append(buffer.data(), static_cast<std::size_t>(got));
    for (auto end = from.unread.find('\n'); end != std::string::npos; end = from.unread.find('\n')) {
        auto const line = from.unread.substr(0, end);
        from.unread.erase(0, end + 1);
        told(members_[index], line);
    }
    return true;
}

void fleet::listen(std::chrono::milliseconds most, hears const& told) {
    std::vector<pollfd> ready;
    std::vector<std::size_t> whose;
    for (std::size_t i = 0; i < pipes_.size(); ++i) {
        if (pipes_[i].output < 0) continue;
        ready.push_back({pipes_[i].output, POLLIN, 0});
        whose.push_back(i);
    }
    if (::poll(ready.data(), ready.size(), static_cast<int>(most.count())) <= 0) return;
    for (std::size_t i = 0; i < ready.size(); ++i) {
        if (ready[i].revents != 0) drain(whose[i], told);
    }
}

std::vector<fleet::member> fleet::collect(clock::time_point again, hears const& told) {
    std::vector<member> gone;
    for (std::size_t i = 0; i < members_.size(); ++i) {
        auto& one = members_[i];
        if (one.pid <= 0 || ::waitpid(one.pid, nullptr, WNOHANG) != one.pid) continue;
        gone.push_back(one);
        while (drain(i, told)) {
        }
        one.pid = -1;
        one.again = again;
        close(i);
    }
    return gone;
}

void fleet::finish(std::chrono::milliseconds time, hears const& told) {
    auto const until = clock::now() + time;
    for (auto& one : pipes_) {
        if (one.input >= 0) ::close(std::exchange(one.input, -1));
    }
    auto const some_run = [&] { return std::any_of(members_.begin(), members_.end(), [](member const& one) { return one.pid > 0; }); };
    while (some_run() && clock::now() < until) {
        listen(std::chrono::milliseconds{20}, told);
        collect(clock::time_point::max(), told);
    }
    for (auto const& one : std::vector<member>{members_}) kill(one, clock::time_point::max(), told);
}

}  // namespace lockstep::demo
