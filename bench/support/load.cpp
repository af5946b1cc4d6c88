#include "support/load.hpp"

#include "support/cpu.hpp"

namespace lockstep::bench {
namespace {

// Gets onto the client's thread first, so that all workers begin in one turn there and the clocks are that thread's.
worker start_workers(load& work, client& through, std::size_t depth, make_worker const& make) {
    co_await through.async_command("PING");
    work.begin();
    for (std::size_t i = 0; i != depth; ++i) make(work, through, i);
}

}  // namespace

void load::begin() noexcept {
    seconds_ = -wall_seconds();
    cpu_ = -thread_cpu_seconds();
}

void load::ended(std::exception_ptr problem) noexcept {
    if (problem) problem_ = std::move(problem);
    bool const none_began = seconds_ == 0;  // the one that starts them failed
    if (--workers_ != 0 && !none_began) return;
    cpu_ += thread_cpu_seconds();
    seconds_ += wall_seconds();
    // Notified under the lock: this object may be gone as soon as the waiting thread can see the result.
    std::lock_guard const guard{mutex_};
    done_ = true;
    changed_.notify_one();
}

measurement load::result() {
    std::unique_lock guard{mutex_};
    changed_.wait(guard, [this] { return done_; });
    if (problem_) std::rethrow_exception(problem_);
    return {.operations = operations_, .seconds = seconds_, .client_cpu = cpu_};
}

measurement run_load(client& through, load_size size, make_worker const& make) {
    load work{size.depth + 1, size.operations};  // and the one that starts them
    start_workers(work, through, size.depth, make);
    return work.result();
}

}  // namespace lockstep::bench
