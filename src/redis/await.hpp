#pragma once

// Asio operations and pauses in our own coroutines, always resumed in a turn.

#include "redis/reactor.hpp"

#include <boost/asio/error.hpp>
#include <boost/system/error_code.hpp>

#include <coroutine>
#include <memory>
#include <tuple>
#include <utility>

namespace lockstep::redis {

/// co_await wait_for(home, [&](auto handler) { socket.async_connect(where, std::move(handler)); });
/// `Results` are what the handler gets after the error code. The coroutine must not be destroyed meanwhile. A handler that is
/// destroyed without having run, because its context goes, resumes the coroutine with `operation_aborted`: it has to end, or
/// nobody would free its frame.
template <class Initiate, class... Results>
class asio_awaiter {
public:
    asio_awaiter(reactor& home, Initiate initiate) : home_(home), initiate_(std::move(initiate)) {}

    bool await_ready() const noexcept { return false; }
    bool await_suspend(std::coroutine_handle<> awaiting) {
        initiating_ = true;
        initiate_(handler{*this, awaiting});
        initiating_ = false;
        return !dropped_;
    }
    auto await_resume() {
        if constexpr (sizeof...(Results) == 0) {
            return std::get<0>(outcome_);
        } else {
            return std::move(outcome_);
        }
    }

private:
    class handler {
    public:
        handler(asio_awaiter& self, std::coroutine_handle<> awaiting)
            : self_(&self), home_(self.home_.shared_from_this()), awaiting_(awaiting) {}
        handler(handler&& other) noexcept
            : self_(other.self_), home_(std::move(other.home_)), awaiting_(std::exchange(other.awaiting_, nullptr)) {}
        ~handler() {
            if (!awaiting_) return;
            if (self_->initiating_) {  // it threw, or its context takes nothing any more
                self_->dropped_ = true;
                self_->outcome_ = {asio::error::operation_aborted, Results{}...};
            } else {
                end(asio::error::operation_aborted, Results{}...);
            }
        }
        void operator()(boost::system::error_code error, Results... results) { end(error, std::move(results)...); }

    private:
        void end(boost::system::error_code error, Results... results) {
            auto const awaiting = std::exchange(awaiting_, nullptr);
            reactor::turn const now{*home_};
            self_->outcome_ = {error, std::move(results)...};
            awaiting.resume();
        }

        asio_awaiter* self_;
        std::shared_ptr<reactor> home_;
        std::coroutine_handle<> awaiting_;
    };

    reactor& home_;
    Initiate initiate_;
    bool initiating_ = false;
    bool dropped_ = false;
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
