#pragma once

// The leases that `lock()` took, by thread: an `unlock()` after a loss must not unlock whoever came next.

#include <lockstep/error.hpp>
#include <lockstep/lease.hpp>
#include <lockstep/log.hpp>
#include <lockstep/task.hpp>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <iterator>
#include <memory>
#include <mutex>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace lockstep::detail {

template <class Lease>
class leases_by_thread {
public:
    /// `what` and `advice`: for errors.
    leases_by_thread(std::string what, std::string advice, bool reentrant = false)
        : what_(std::move(what)), advice_(std::move(advice)), reentrant_(reentrant) {}

    /// Throws would_deadlock_error when this thread has one that is still valid and may not have two.
    void require_none() const {
        if (reentrant_) return;
        std::lock_guard const guard{mutex_};
        auto const me = std::this_thread::get_id();
        for (auto const& [thread, held] : held_) {
            if (thread == me && held.valid()) throw would_deadlock_error("this thread has locked this " + what_ + " already" + advice_);
        }
    }
    void put(Lease held) {
        std::lock_guard const guard{mutex_};
        auto const me = std::this_thread::get_id();
        if (!reentrant_) std::erase_if(held_, [me](auto const& one) { return one.first == me; });  // one that was lost
        held_.emplace_back(me, std::move(held));
    }
    /// The calling thread's (its last), or an empty one.
    Lease take() noexcept {
        std::lock_guard const guard{mutex_};
        auto const me = std::this_thread::get_id();
        auto const found = std::find_if(held_.rbegin(), held_.rend(), [me](auto const& one) { return one.first == me; });
        if (found == held_.rend()) return {};
        auto mine = std::move(found->second);
        held_.erase(std::next(found).base());
        return mine;
    }
    std::uint64_t fence() const {
        std::lock_guard const guard{mutex_};
        return mine().fence();
    }
    std::stop_token stop_token() const {
        std::lock_guard const guard{mutex_};
        return mine().stop_token();
    }

private:
    Lease const& mine() const {  // with the lock held
        auto const me = std::this_thread::get_id();
        for (auto const& [thread, held] : held_) {
            if (thread == me) return held;
        }
        throw not_held_error("this thread has not locked this " + what_);
    }

    std::string what_, advice_;
    bool reentrant_;
    mutable std::mutex mutex_;
    std::vector<std::pair<std::thread::id, Lease>> held_;
};

/// Gives it back and waits for that, a second at most. Where `require_blocking` throws, its destructor gives it back.
template <class Lease>
void release_quietly(Lease held, auto const& require_blocking) noexcept {
    struct outcome {
        std::mutex mutex;
        std::condition_variable changed;
        bool done = false;
    };
    try {
        require_blocking();
        auto const shared = std::make_shared<outcome>();
        start(held.async_release(), [shared](std::exception_ptr) {
            std::lock_guard const guard{shared->mutex};
            shared->done = true;
            shared->changed.notify_one();
        });
        std::unique_lock guard{shared->mutex};
        shared->changed.wait_for(guard, std::chrono::seconds{1}, [&] { return shared->done; });
    } catch (would_deadlock_error const&) {
    } catch (std::exception const& problem) {
        log(log_level::warning, std::string{"unlock: "} + problem.what());
    }
}

class thread_leases : public leases_by_thread<lease> {
public:
    explicit thread_leases(bool reentrant = false) : leases_by_thread("mutex", "; use recursive_mutex for re-entry", reentrant) {}
};

/// Never waits on an I/O thread.
void release_quietly(lease held) noexcept;

}  // namespace lockstep::detail
