#pragma once

/// A thread on which no signal is handled: signals are the program's business, and its handlers expect its own threads.

#include <pthread.h>

#include <csignal>
#include <memory>
#include <thread>
#include <utility>

namespace lockstep::base {

template <class F>
std::thread quiet_thread(F work) {
    sigset_t all;
    sigset_t before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    std::unique_ptr<sigset_t, void (*)(sigset_t*)> const restore{&before, [](sigset_t* old) { pthread_sigmask(SIG_SETMASK, old, nullptr); }};
    return std::thread{std::move(work)};
}

}  // namespace lockstep::base
