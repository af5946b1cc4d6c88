#include "lease/awaiter.hpp"

#include "core/core.hpp"

#include <string>
#include <utility>

namespace lockstep::engine {

void awaiter::withdraw() noexcept {
    if (!begun_) return;
    auto const kept = owner();
    if (!kept->same_process()) return;
    kept->home().in_turn([this, &kept] {
        if (stage_ == stage::inside) leave();
        kept->home().take_back(*this);  // it may be about to arrive
        kept->home().disarm(*this);
        if (std::exchange(parked_, false)) cancel_->unpark();
    });
}

bool awaiter::begin(std::coroutine_handle<> awaiting, detail::cancel_state* cancel) {
    awaiting_ = awaiting;
    cancel_ = cancel;
    stage_ = stage::arriving;
    begun_ = true;
    if (owner()->home().hand_in(*this)) return true;
    stage_ = stage::outside;
    begun_ = false;
    error_ = make_error(errc::cancelled, "the client is closed");
    return false;
}

void awaiter::arrive() noexcept {
    if (stage_ == stage::resuming) {
        stage_ = stage::outside;
        begun_ = false;
        return awaiting_.resume();
    }
    stage_ = stage::inside;
    auto& home = owner()->home();
    since_ = home.now();
    if (cancel_ != nullptr) {
        if (!cancel_->park(*this)) return fail(errc::cancelled, "it was cancelled before it began");
        parked_ = true;
    }
    if (auto const until = deadline(); until != clock::time_point::max()) home.arm(*this, until);
    try {
        enter();
    } catch (std::bad_alloc const&) {
        fail(errc::unavailable, "there is no memory for another one that waits");
    }
}

void awaiter::fail(std::exception_ptr problem) noexcept {
    error_ = std::move(problem);
    resume_soon();
}

void awaiter::fail(errc reason, std::string_view why) noexcept { fail(make_error(reason, std::string{why})); }

void awaiter::resume_soon() noexcept {
    auto& home = owner()->home();
    home.disarm(*this);
    if (std::exchange(parked_, false)) cancel_->unpark();
    unlink();
    stage_ = stage::resuming;
    home.hand_in(*this);  // and not here: whoever lets it go may have more to do, and must not run what it does next
}

void awaiter::fire() noexcept {
    leave();
    time_is_over();
}

void awaiter::cancel_requested(std::shared_ptr<detail::cancel_state> state) noexcept {
    owner()->home().post([state = std::move(state)] { state->deliver(); });
}

void awaiter::cancel_here() noexcept {
    parked_ = false;  // it has let go of us already
    leave();
    is_cancelled();
    fail(errc::cancelled, "waiting was cancelled");
}

}  // namespace lockstep::engine
