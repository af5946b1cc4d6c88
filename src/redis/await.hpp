#pragma once

// Asio operations and pauses in our own coroutines, always resumed in a turn.

#include "redis/reactor.hpp"

#include <boost/system/error_code.hpp>

#include <coroutine>
#include <memory>
#include <tuple>
#include <utility>

namespace lockstep::redis {

/// co_await wait_for(home, [&](auto handler) { socket.async_connect(where, std::move(handler)); });
/// `Results` are what the handler gets after the error code. The coroutine must not be destroyed meanwhile.
template <class Initiate, class... Results>
class asio_awaiter {
public:
    asio_awaiter(reactor& home, Initiate initiate) : home_(home), initiate_(std::move(initiate)) {}

    bool await_ready() const noexcept { return false; }
    void await_suspend(std::coroutine_handle<> awaiting) {
        initiate_([this, home = home_.shared_from_this(), awaiting](boost::system::error_code error, Results... results) {
            reactor::turn const now{*home};
            outcome_ = {error, std::move(results)...};
            awaiting.resume();
        });
    }
    auto await_resume() {
        if constexpr (sizeof...(Results) == 0) {
            return std::get<0>(outcome_);
        } else {
            return std::move(outcome_);
        }
    }

private:
    reactor& home_;
    Initiate initiate_;
    std::tuple<boost::system::error_code, Results...> outcome_;
};

template <class... Results, class Initiate>
asio_awaiter<Initiate, Results...> wait_for(reactor& home, Initiate initiate) {
    return {home, std::move(initiate)};
}

/// Where a coroutine waits for something to change: `while (!condition) co_await changed.until(time)`. `wake()` in a turn; whoever
/// wakes changes the condition first. One coroutine at a time.
class change final : timer {
public:
    explicit change(reactor& home) noexcept : home_(home) {}

    auto until(reactor::clock::time_point time) noexcept { return awaiter{*this, time}; }
    auto for_ever() noexcept { return until(reactor::clock::time_point::max()); }
    void wake() noexcept {
        home_.disarm(*this);
        if (auto const awaiting = std::exchange(awaiting_, nullptr)) awaiting.resume();
    }

private:
    struct awaiter {
        change& self;
        reactor::clock::time_point time;
        bool await_ready() const noexcept { return false; }
        void await_suspend(std::coroutine_handle<> awaiting) const {
            self.awaiting_ = awaiting;
            if (time != reactor::clock::time_point::max()) self.home_.arm(self, time);
        }
        void await_resume() const noexcept {}
    };
    void fire() noexcept override { wake(); }

    reactor& home_;
    std::coroutine_handle<> awaiting_;
};

}  // namespace lockstep::redis
