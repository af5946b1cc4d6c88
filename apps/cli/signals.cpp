#include "cli/signals.hpp"

#include <sys/signalfd.h>
#include <unistd.h>

#include <cerrno>
#include <initializer_list>
#include <system_error>

namespace lockstep::cli {

signals::signals() {
    ::signal(SIGCHLD, SIG_DFL);  // where it is ignored, children are not waited for
    sigset_t wanted;
    sigemptyset(&wanted);
    for (int const one : {SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGWINCH, SIGCONT, SIGTSTP, SIGCHLD}) {
        struct sigaction now {};
        // A blocked signal is kept even where it is ignored.
        if (::sigaction(one, nullptr, &now) == 0 && now.sa_handler != SIG_IGN) sigaddset(&wanted, one);
    }
    auto blocked = wanted;
    sigaddset(&blocked, SIGTTOU);  // to give the terminal away and take it back
    ::pthread_sigmask(SIG_BLOCK, &blocked, &before_);
    descriptor_ = ::signalfd(-1, &wanted, SFD_CLOEXEC | SFD_NONBLOCK);
    if (descriptor_ < 0) throw std::system_error{errno, std::generic_category(), "signalfd"};
}

signals::~signals() {
    while (next()) {
    }
    ::close(descriptor_);
    ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
}

std::optional<int> signals::next() noexcept {
    signalfd_siginfo info{};
    if (::read(descriptor_, &info, sizeof info) != sizeof info) return std::nullopt;
    return static_cast<int>(info.ssi_signo);
}

void signals::suffer(int number, bool whole_group) noexcept {
    sigset_t one;
    sigset_t masked;
    sigemptyset(&one);
    sigaddset(&one, number);
    ::kill(whole_group ? 0 : ::getpid(), number);
    ::pthread_sigmask(SIG_UNBLOCK, &one, &masked);  // here it comes
    ::pthread_sigmask(SIG_SETMASK, &masked, nullptr);
}

}  // namespace lockstep::cli
