#include "cli/groups.hpp"

#include <sys/wait.h>

#include <cerrno>
#include <chrono>
#include <thread>
#include <utility>

namespace lockstep::cli {

using namespace std::chrono_literals;

command_groups::member::member(command_groups& among, command_line const& what, sigset_t const& mask, std::function<bool()> may_go_on)
    : among_(among), may_go_on_(std::move(may_go_on)) {
    std::lock_guard const guard{among.mutex_};  // until it is known: it must not be started while the others are being stopped
    place_ = among.all_.insert(among.all_.end(), this);
    try {
        group_ = launch(what, nullptr, mask, among.watched_.line());
        if (among.kills_) ::kill(-group_, SIGKILL);
    } catch (...) {
        among.all_.erase(place_);
        throw;
    }
}

command_groups::member::~member() {
    if (is_over_) return;
    signal(SIGKILL);
    if (!is_reaped_) reap();
    over();
}

void command_groups::member::over() noexcept {
    is_over_ = true;
    std::lock_guard const guard{among_.mutex_};
    among_.watched_.forget(group_);
    among_.all_.erase(place_);
}

void command_groups::member::signal(int number) noexcept {
    std::lock_guard const guard{among_.mutex_};
    ::kill(-group_, number);
}

bool command_groups::member::has_ended() const noexcept {
    siginfo_t about{};
    return ::waitid(P_PID, static_cast<id_t>(group_), &about, WEXITED | WNOHANG | WNOWAIT) == 0 && about.si_pid == group_;
}

int command_groups::member::reap() noexcept {
    int status = 0;
    while (::waitpid(group_, &status, 0) < 0 && errno == EINTR) {
    }
    is_reaped_ = true;
    return status;
}

bool command_groups::member::has_others() const noexcept { return ::kill(-group_, 0) == 0; }

void command_groups::pause(std::function<void()> const& meanwhile) {
    std::lock_guard const guard{mutex_};
    for (auto const* const one : all_) ::kill(-one->group_, SIGSTOP);
    meanwhile();
    for (auto const* const one : all_) ::kill(-one->group_, one->may_go_on_() ? SIGCONT : SIGKILL);
}

bool command_groups::lock_in_time() noexcept {
    // Not for ever: one that is just being started may be on a disk that does not answer. The guard kills what is left when we are gone.
    // A std::timed_mutex would do, but g++ 12's ThreadSanitizer does not see when it is locked.
    for (auto const until = std::chrono::steady_clock::now() + 1s; !mutex_.try_lock(); std::this_thread::sleep_for(1ms)) {
        if (std::chrono::steady_clock::now() > until) return false;
    }
    return true;
}

std::size_t command_groups::kill_all() noexcept {
    if (!lock_in_time()) return 0;
    std::lock_guard const guard{mutex_, std::adopt_lock};
    kills_ = true;
    for (auto const* const one : all_) ::kill(-one->group_, SIGKILL);
    return all_.size();
}

void command_groups::end() noexcept {
    if (!lock_in_time()) return;
    for (auto const* const one : all_) ::kill(-one->group_, SIGKILL);
    // Locked still.
}

}  // namespace lockstep::cli
