#include "lease/shared_calls.hpp"

#include "core/core.hpp"
#include "lease/pause.hpp"

#include <lockstep/error.hpp>

#include <chrono>

namespace lockstep::engine {
namespace {

void ignore(std::exception_ptr) noexcept {}

/// With room for so many: whoever has left the line must not be lost where there is no memory.
std::shared_ptr<shared_call> empty_call(std::size_t places) {
    auto made = std::make_shared<shared_call>();
    made->aboard.reserve(places);
    return made;
}

}  // namespace

void shared_call::leave(passenger const& who) noexcept {
    bool is_wanted = false;
    for (auto*& one : aboard) {
        if (one == &who) one = nullptr;
        is_wanted = is_wanted || one != nullptr;
    }
    if (!is_wanted) unwanted.request_stop();
}

void shared_call::fail_all(std::exception_ptr const& why) noexcept {
    for (auto*& one : aboard) {
        if (auto* const who = std::exchange(one, nullptr)) who->fail(why);
    }
}

void shared_calls::enter(passenger& who) {
    if (owner_->closed()) return who.fail(errc::cancelled, "the client is closed");
    bool const is_first = waiting_.empty();
    waiting_.push_back(who);
    if (is_first) start(send_waiting(shared_from_this()), ignore);
}

task<void> shared_calls::send_waiting(std::shared_ptr<shared_calls> self) {
    auto& waiting = self->waiting_;
    try {
        pause turn{self->owner_, std::chrono::milliseconds{0}};  // behind all who come in this one
        co_await turn;
        while (!waiting.empty()) {
            auto const count = self->count_together(waiting);
            auto const what = empty_call(count);
            while (what->aboard.size() != count) {
                what->aboard.push_back(&waiting.front());
                waiting.pop_front();
            }
            self->dispatch(what);
        }
    } catch (...) {
        while (!waiting.empty()) waiting.front().fail(std::current_exception());
    }
}

void shared_calls::dispatch(std::shared_ptr<shared_call> const& what) noexcept {
    for (auto* const one : what->aboard) one->in_ = what;
    try {
        start(carry(shared_from_this(), what), ignore);
    } catch (...) {
        what->fail_all(std::current_exception());
    }
}

task<void> shared_calls::carry(std::shared_ptr<shared_calls> self, std::shared_ptr<shared_call> what) {
    try {
        auto sending = with_stop_token(self->send(*what), what->unwanted.get_token());
        co_await std::move(sending);
    } catch (...) {
        what->fail_all(std::current_exception());
    }
}

void shared_calls::send_each(shared_call& what) {
    for (auto*& one : what.aboard) {
        if (one == nullptr) continue;
        auto const alone = empty_call(1);
        alone->aboard.push_back(std::exchange(one, nullptr));
        dispatch(alone);
    }
}

void passenger::leave() noexcept {
    unlink();
    if (auto const call = std::move(in_)) call->leave(*this);
}

}  // namespace lockstep::engine
