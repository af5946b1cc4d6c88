#include "lease/waiter.hpp"

#include "core/core.hpp"
#include "lease/hub.hpp"
#include "lease/room.hpp"

#include <lockstep/error.hpp>

#include <utility>

namespace lockstep::engine {

waiter::waiter(std::shared_ptr<target const> what, terms how) noexcept : target_(std::move(what)), how_(how) {}

waiter::~waiter() {
    if (stage_ == stage::outside) return;
    auto const owner = target_->where->owner();
    if (!owner->same_process()) return;
    owner->home().in_turn([this, &owner] {
        if (stage_ == stage::inside) leave();
        owner->home().take_back(*this);  // it may be about to arrive
        owner->home().disarm(*this);
        if (std::exchange(parked_, false)) cancel_->unpark();
    });
}

bool waiter::begin() {
    stage_ = stage::arriving;
    if (target_->where->owner()->home().hand_in(*this)) return true;
    stage_ = stage::outside;
    error_ = make_error(errc::cancelled, "the client is closed");
    return false;
}

void waiter::arrive() noexcept {
    if (stage_ == stage::resuming) {
        stage_ = stage::outside;
        return awaiting_.resume();
    }
    stage_ = stage::inside;
    auto& owner = *target_->where->owner();
    since_ = owner.home().now();
    if (owner.closed()) return fail(errc::cancelled, "the client is closed");
    if (cancel_ != nullptr) {
        if (!cancel_->park(*this)) return fail(errc::cancelled, "it was cancelled before it began");
        parked_ = true;
    }
    if (how_.deadline != clock::time_point::max()) owner.home().arm(*this, how_.deadline);
    try {
        target_->where->enter(*this);
    } catch (std::bad_alloc const&) {
        fail(errc::unavailable, "there is no memory for another waiter");
    }
}

void waiter::finish(lease granted) noexcept {
    lease_ = std::move(granted);
    resume_soon();
}

void waiter::fail(errc reason, std::string_view why) noexcept {
    error_ = make_error(reason, std::string{why});
    resume_soon();
}

void waiter::resume_soon() noexcept {
    auto& home = target_->where->owner()->home();
    home.disarm(*this);
    if (std::exchange(parked_, false)) cancel_->unpark();
    unlink();
    stage_ = stage::resuming;
    home.hand_in(*this);  // and not here: whoever passes a lease on must not run what the next one does with it
}

void waiter::leave() noexcept { target_->where->leave(*this); }

void waiter::fire() noexcept {
    leave();
    if (target_->where->home().is_connected()) return finish({});
    fail(errc::unavailable, "no server could be reached in the time allowed");
}

void waiter::cancel_requested(std::shared_ptr<detail::cancel_state> state) noexcept {
    target_->where->owner()->home().post([state = std::move(state)] { state->deliver(); });
}

void waiter::cancel_here() noexcept {
    parked_ = false;  // it has let go of us already
    leave();
    fail(errc::cancelled, "waiting was cancelled");
}

}  // namespace lockstep::engine
