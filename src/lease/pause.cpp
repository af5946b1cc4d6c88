#include "lease/pause.hpp"

#include "core/core.hpp"
#include "lease/hub.hpp"

#include <utility>

namespace lockstep::engine {

pause::pause(std::shared_ptr<detail::core> owner, std::chrono::milliseconds time) noexcept : owner_(std::move(owner)), time_(time) {}

pause::~pause() {
    if (!begun_ || !owner_->same_process()) return;
    owner_->home().in_turn([this] {
        owner_->home().take_back(*this);
        owner_->home().disarm(*this);
        if (std::exchange(parked_, false)) cancel_->unpark();
    });
}

bool pause::begin() {
    begun_ = true;
    if (owner_->home().hand_in(*this)) return true;
    begun_ = false;
    cancelled_ = true;
    return false;
}

void pause::arrive() noexcept {
    if (owner_->closed()) return end(true);
    if (time_.count() == 0) return end(cancel_ != nullptr && cancel_->requested());
    if (cancel_ != nullptr) {
        if (!cancel_->park(*this)) return end(true);
        parked_ = true;
    }
    owner_->home().arm(*this, owner_->home().now() + time_);
    hub::of(*owner_).rests(*this);
}

void pause::cancel_requested(std::shared_ptr<detail::cancel_state> state) noexcept {
    owner_->home().post([state = std::move(state)] { state->deliver(); });
}

void pause::cancel_here() noexcept {
    parked_ = false;
    end(true);
}

void pause::end(bool cancelled) noexcept {
    begun_ = false;
    cancelled_ = cancelled;
    unlink();
    owner_->home().disarm(*this);
    if (std::exchange(parked_, false)) cancel_->unpark();
    awaiting_.resume();
}

}  // namespace lockstep::engine
