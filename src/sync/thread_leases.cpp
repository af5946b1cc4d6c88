#include "sync/thread_leases.hpp"

#include "lease/hold.hpp"
#include "lease/take.hpp"

#include <lockstep/error.hpp>
#include <lockstep/log.hpp>
#include <lockstep/task.hpp>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <iterator>
#include <memory>

namespace lockstep::detail {

void thread_leases::require_none() const {
    if (reentrant_) return;
    std::lock_guard const guard{mutex_};
    auto const me = std::this_thread::get_id();
    for (auto const& [thread, held] : held_) {
        if (thread == me && held.valid()) {
            throw would_deadlock_error("this thread has locked this mutex already; use recursive_mutex for re-entry");
        }
    }
}

void thread_leases::put(lease held) {
    std::lock_guard const guard{mutex_};
    auto const me = std::this_thread::get_id();
    if (!reentrant_) std::erase_if(held_, [me](auto const& one) { return one.first == me; });  // one that was lost
    held_.emplace_back(me, std::move(held));
}

lease thread_leases::take() noexcept {
    std::lock_guard const guard{mutex_};
    auto const me = std::this_thread::get_id();
    auto const found = std::find_if(held_.rbegin(), held_.rend(), [me](auto const& one) { return one.first == me; });
    if (found == held_.rend()) return {};
    auto mine = std::move(found->second);
    held_.erase(std::next(found).base());
    return mine;
}

lease const& thread_leases::mine() const {
    auto const me = std::this_thread::get_id();
    for (auto const& [thread, held] : held_) {
        if (thread == me) return held;
    }
    throw not_held_error("this thread has not locked this mutex");
}

std::uint64_t thread_leases::fence() const {
    std::lock_guard const guard{mutex_};
    return mine().fence();
}

std::stop_token thread_leases::stop_token() const {
    std::lock_guard const guard{mutex_};
    return mine().stop_token();
}

void release_quietly(lease held) noexcept {
    if (!held) return;
    struct outcome {
        std::mutex mutex;
        std::condition_variable changed;
        bool done = false;
    };
    try {
        engine::require_blocking(*engine::hold::of(held)->what());
        auto const shared = std::make_shared<outcome>();
        start(held.async_release(), [shared](std::exception_ptr) {
            std::lock_guard const guard{shared->mutex};
            shared->done = true;
            shared->changed.notify_one();
        });
        std::unique_lock guard{shared->mutex};
        shared->changed.wait_for(guard, std::chrono::seconds{1}, [&] { return shared->done; });
    } catch (would_deadlock_error const&) {  // its destructor queues the release
    } catch (std::exception const& problem) {
        log(log_level::warning, std::string{"unlock: "} + problem.what());
    }
}

}  // namespace lockstep::detail
