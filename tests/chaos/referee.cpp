#include "referee.hpp"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <system_error>
#include <utility>

namespace lockstep::chaos {

referee::referee(std::string const& history_file)
    : listening_{::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0)}, ending_{::eventfd(0, EFD_CLOEXEC)},
      file_{std::fopen(history_file.c_str(), "we")} {
    sockaddr_un here{};
    here.sun_family = AF_UNIX;
    socket_path().copy(here.sun_path, sizeof here.sun_path - 1);
    if (file_ == nullptr || ::bind(listening_, reinterpret_cast<sockaddr const*>(&here), sizeof here) != 0 ||
        ::listen(listening_, 64) != 0) {
        throw std::system_error{errno, std::generic_category(), "referee"};
    }
    thread_ = std::thread{[this] { run(); }};
}

referee::~referee() {
    if (thread_.joinable()) static_cast<void>(finish());
    for (auto const line : lines_) ::close(line);
    ::close(listening_);
    ::close(ending_);
    std::fclose(file_);
}

history referee::finish() {
    std::uint64_t const one = 1;
    if (::write(ending_, &one, sizeof one) != sizeof one)
        throw std::system_error{errno, std::generic_category(), "eventfd"};
    thread_.join();
    std::fflush(file_);
    std::stable_sort(all_.begin(), all_.end(), [](event const& a, event const& b) { return a.t < b.t; });
    return std::move(all_);
}

void referee::note(event what) {
    std::lock_guard const guard{mutex_};
    for (auto const* const use : {"granted", "adopted", "changed", "arrive", "wait", "processed", "begun"}) {
        if (what.what == use) users_[what.name] = what.who;
    }
    write(std::move(what));
}

std::string referee::last_user(std::string const& name) {
    std::lock_guard const guard{mutex_};
    return users_[name];
}

void referee::write(event what) {
    auto const line = to_json(what) + "\n";
    std::fwrite(line.data(), 1, line.size(), file_);
    all_.push_back(std::move(what));
}

// What is in the lines is heard before it ends.
void referee::run() {
    for (bool ending = false; !ending || !lines_.empty();) {
        std::vector<pollfd> ready{{.fd = ending_, .events = POLLIN, .revents = 0},
                                  {.fd = listening_, .events = POLLIN, .revents = 0}};
        for (auto const line : lines_) ready.push_back({.fd = line, .events = POLLIN, .revents = 0});
        if (::poll(ready.data(), ready.size(), ending ? 0 : -1) == 0) return;
        ending = ending || ready[0].revents != 0;
        for (std::size_t i = 2; i < ready.size(); ++i) {
            if (ready[i].revents != 0) hear(ready[i].fd);
        }
        if (ready[1].revents == 0) continue;
        if (auto const line = ::accept4(listening_, nullptr, nullptr, SOCK_CLOEXEC); line >= 0) lines_.push_back(line);
    }
}

void referee::hear(int from) {
    char buffer[2048];
    auto const size = ::recv(from, buffer, sizeof buffer, 0);
    if (size <= 0) {
        std::erase(lines_, from);
        ::close(from);
        return;
    }
    auto found = from_json({buffer, static_cast<std::size_t>(size)});
    if (!found)
        found = event{.t = boot_ns(),
                      .who = "referee",
                      .what = "left",
                      .name = "a report that is none",
                      .note = {buffer, static_cast<std::size_t>(size)}};
    if (found->what == "access") {
        found->t = boot_ns();
        found->n = lets_in(*found) ? 1 : 0;
        ::send(from, found->n == 1 ? "y" : "n", 1, MSG_NOSIGNAL);
    } else if (found->what == "detached") {
        detached_.push_back(*found);
    } else if (found->what == "wanted") {
        auto const one = hand_out();
        ::send(from, one.data(), one.size(), MSG_NOSIGNAL);
        return;
    }
    note(std::move(*found));
}

bool referee::lets_in(event const& who) {
    auto& highest = highest_[who.name];
    bool const reads = who.note == "read";
    bool const enters = who.fence >= (reads ? highest.of_writers : highest.of_all);
    highest.of_all = std::max(highest.of_all, who.fence);
    if (!reads) highest.of_writers = std::max(highest.of_writers, who.fence);
    return enters;
}

std::string referee::hand_out() {
    if (detached_.empty()) return "none";
    auto const latest = detached_.back();
    bool const again = latest.fence % 4 == 0 && latest.what == "detached";
    detached_.pop_back();
    if (again) {
        detached_.push_back(latest);
        detached_.back().what = "handed out before";
    }
    return to_json(latest);
}

}  // namespace lockstep::chaos
