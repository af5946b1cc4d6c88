#pragma once

// A pause that anybody can end early, of any number of coroutines.

#include "core/core.hpp"
#include "lease/pause.hpp"

#include <lockstep/error.hpp>
#include <lockstep/task.hpp>

#include <chrono>
#include <exception>
#include <memory>
#include <mutex>
#include <stop_token>
#include <utility>
#include <vector>

namespace lockstep::detail {

class doorbell {
public:
    /// From any thread. All who wait hear it. A ring that nobody waits for is heard by the next who does: whoever heard what concerns others too rings again.
    void ring() noexcept {
        std::unique_lock guard{mutex_};
        rung_ = true;
        auto waking = std::exchange(waiting_, {});
        guard.unlock();
        for (auto& one : waking) one.request_stop();
    }

    /// Until it rings, or so long; it goes on in a turn, unless it has rung already. Throws `cancelled_error` when the client closes.
    static task<void> wait(std::shared_ptr<core> owner, doorbell& at, std::chrono::milliseconds time) {
        std::stop_source mine;
        {
            std::lock_guard const guard{at.mutex_};
            if (std::exchange(at.rung_, false)) co_return;
            at.waiting_.push_back(mine);
        }
        std::exception_ptr problem;
        try {
            auto resting = with_stop_token(rest(std::move(owner), time), mine.get_token());
            co_await std::move(resting);
        } catch (cancelled_error const&) {
            if (!mine.stop_requested()) problem = std::current_exception();
        }
        std::lock_guard const guard{at.mutex_};
        std::erase(at.waiting_, mine);
        if (problem) std::rethrow_exception(problem);
        at.rung_ = false;
    }

private:
    static task<void> rest(std::shared_ptr<core> owner, std::chrono::milliseconds time) {
        engine::pause pausing{std::move(owner), time};
        co_await pausing;
    }

    std::mutex mutex_;
    bool rung_ = false;
    std::vector<std::stop_source> waiting_;
};

}  // namespace lockstep::detail
