#pragma once

// Blocking work on a thread of its own, for which a coroutine waits: a name look-up, the start of the embedded server.
//
// Nobody can hurry such work, so nobody waits for the thread: it has a share in the result, and in nothing else. The wait can be given
// up, and ends with the reactor; what the thread finds after that is dropped.

#include "base/quiet_thread.hpp"
#include "redis/reactor.hpp"

#include <boost/asio/executor_work_guard.hpp>

#include <coroutine>
#include <exception>
#include <memory>
#include <optional>
#include <utility>

namespace lockstep::redis {

/// aside<T> look{home}; std::optional<T> found = co_await look.at(work);
/// `work` returns the T, must not throw, and must not refer to anything that it does not own. Nothing: given up. Throws std::system_error where there can be no further thread. In turns.
template <class T>
class aside {
public:
    explicit aside(reactor& home) : state_(std::make_shared<state>(home)) {}

    template <class F>
    auto at(F work) {
        return awaiter<F>{state_, std::move(work)};
    }
    /// Ends the wait, in a turn of its own.
    void give_up() noexcept {
        state_->home->post([state = state_] { state->end(); });
    }

private:
    struct state final : reactor::outside {
        explicit state(reactor& where) : home(where.shared_from_this()) {}
        void end() noexcept override {
            this->unlink();
            work.reset();
            if (auto const waiting = std::exchange(awaiting, nullptr)) waiting.resume();
        }

        std::shared_ptr<reactor> home;
        std::coroutine_handle<> awaiting;
        std::optional<T> result;
        std::exception_ptr problem;  // why there is no thread
        std::optional<asio::executor_work_guard<asio::any_io_executor>> work;  // `run()` goes on meanwhile
    };

    template <class F>
    struct awaiter {
        std::shared_ptr<state> shared;
        F work;

        ~awaiter() {  // whoever waits may go before the work ends
            shared->home->locked([this] { shared->awaiting = nullptr; });
        }
        bool await_ready() const noexcept { return false; }
        bool await_suspend(std::coroutine_handle<> awaiting) {
            if (!shared->home->wait_outside(*shared)) return false;
            shared->work.emplace(shared->home->executor());
            try {
                begin();
            } catch (...) {  // no thread
                shared->problem = std::current_exception();
                shared->end();
                return false;
            }
            shared->awaiting = awaiting;
            return true;
        }
        void begin() {
            base::quiet_thread([shared = shared, work = std::move(work)]() mutable {
                auto found = work();
                shared->home->post([shared, found = std::move(found)]() mutable {
                    shared->result = std::move(found);
                    shared->end();
                });
            }).detach();
        }
        std::optional<T> await_resume() {
            if (shared->problem) std::rethrow_exception(std::exchange(shared->problem, nullptr));
            return std::move(shared->result);
        }
    };

    std::shared_ptr<state> state_;
};

}  // namespace lockstep::redis
