#pragma once

// A pause that anybody can end early. One coroutine waits at a time.

#include "core/core.hpp"
#include "lease/pause.hpp"

#include <lockstep/error.hpp>
#include <lockstep/task.hpp>

#include <chrono>
#include <memory>
#include <mutex>
#include <stop_token>
#include <utility>

namespace lockstep::detail {

class doorbell {
public:
    /// From any thread. A ring that nobody waits for is heard by the next who does.
    void ring() noexcept {
        std::unique_lock guard{mutex_};
        rung_ = true;
        auto waking = waiting_;
        guard.unlock();
        waking.request_stop();
    }

    /// Until it rings, or so long; it goes on in a turn, unless it has rung already. Throws `cancelled_error` when the client closes.
    static task<void> wait(std::shared_ptr<core> owner, doorbell& at, std::chrono::milliseconds time) {
        std::stop_source mine;
        {
            std::lock_guard const guard{at.mutex_};
            if (std::exchange(at.rung_, false)) co_return;
            at.waiting_ = mine;
        }
        try {
            auto resting = with_stop_token(rest(std::move(owner), time), mine.get_token());
            co_await std::move(resting);
        } catch (cancelled_error const&) {
            if (!mine.stop_requested()) throw;
        }
        std::lock_guard const guard{at.mutex_};
        at.waiting_ = std::stop_source{std::nostopstate};
        at.rung_ = false;
    }

private:
    static task<void> rest(std::shared_ptr<core> owner, std::chrono::milliseconds time) {
        engine::pause pausing{std::move(owner), time};
        co_await pausing;
    }

    std::mutex mutex_;
    bool rung_ = false;
    std::stop_source waiting_{std::nostopstate};
};

}  // namespace lockstep::detail
