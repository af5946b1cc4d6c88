#include "lease/visitor.hpp"

#include "core/core.hpp"
#include "lease/gate.hpp"

#include <lockstep/error.hpp>

#include <string>
#include <utility>

namespace lockstep::engine {

visitor::visitor(std::shared_ptr<gate> at, terms how) noexcept : generation(how.generation), gate_(std::move(at)), how_(how) {}

visitor::~visitor() {
    if (stage_ == stage::outside) return;
    auto const owner = gate_->owner();
    if (!owner->same_process()) return;
    owner->home().in_turn([this, &owner] {
        if (stage_ == stage::inside) gate_->leave(*this);
        owner->home().take_back(*this);  // it may be about to arrive
        owner->home().disarm(*this);
        if (std::exchange(parked_, false)) cancel_->unpark();
    });
}

bool visitor::begin() {
    stage_ = stage::arriving;
    if (gate_->owner()->home().hand_in(*this)) return true;
    stage_ = stage::outside;
    error_ = make_error(errc::cancelled, "the client is closed");
    return false;
}

void visitor::arrive() noexcept {
    if (stage_ == stage::resuming) {
        stage_ = stage::outside;
        return awaiting_.resume();
    }
    stage_ = stage::inside;
    auto& owner = *gate_->owner();
    since_ = owner.home().now();
    if (owner.closed()) return fail(errc::cancelled, "the client is closed");
    if (cancel_ != nullptr) {
        if (!cancel_->park(*this)) return fail(errc::cancelled, "it was cancelled before it began");
        parked_ = true;
    }
    if (how_.deadline != clock::time_point::max()) owner.home().arm(*this, how_.deadline);
    gate_->enter(*this);
}

void visitor::finish(std::optional<gate_word> how) noexcept {
    outcome_ = how;
    resume_soon();
}

void visitor::fail(errc reason, std::string_view why) noexcept {
    error_ = make_error(reason, std::string{why});
    resume_soon();
}

void visitor::resume_soon() noexcept {
    auto& home = gate_->owner()->home();
    home.disarm(*this);
    if (std::exchange(parked_, false)) cancel_->unpark();
    unlink();
    stage_ = stage::resuming;
    home.hand_in(*this);  // and not here: the gate may be about to set others free
}

void visitor::fire() noexcept {
    gate_->leave(*this);
    finish(std::nullopt);
}

void visitor::cancel_requested(std::shared_ptr<detail::cancel_state> state) noexcept {
    gate_->owner()->home().post([state = std::move(state)] { state->deliver(); });
}

void visitor::cancel_here() noexcept {
    parked_ = false;  // it has let go of us already
    gate_->leave(*this);
    fail(errc::cancelled, "waiting was cancelled");
}

}  // namespace lockstep::engine
