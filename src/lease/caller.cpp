#include "lease/caller.hpp"

#include "core/core.hpp"
#include "lease/room.hpp"

#include <lockstep/error.hpp>

#include <fmt/format.h>

namespace lockstep::engine {

caller::~caller() {
    auto const owner = hold_.what()->where->owner();
    if (stage_ != stage::outside && owner->same_process()) {
        owner->home().in_turn([this, &owner] {
            if (hold_.heard_by == this) hold_.heard_by = nullptr;
            owner->home().take_back(*this);
        });
    }
    hold_.let_go();
}

bool caller::begin() {
    stage_ = stage::arriving;
    if (hold_.what()->where->owner()->home().hand_in(*this)) return true;
    stage_ = stage::outside;
    problem_ = make_error(errc::cancelled, "the client is closed");
    return false;
}

void caller::arrive() noexcept {
    if (stage_ == stage::resuming) {
        stage_ = stage::outside;
        return awaiting_.resume();
    }
    stage_ = stage::inside;
    auto& room = *hold_.what()->where;
    // Its time is over, and the alarm has said so: it does not become a good end because the server is still in time.
    if (hold_.tenancy() == tenancy_ && !hold_.is_valid(tenancy_)) hold_.lose("its time is over");
    if (hold_.tenancy() != tenancy_) {
        return finish(make_error(errc::lease_lost, fmt::format("the lease of '{}' was lost", room.name())));
    }
    if (hold_.heard_by != nullptr && wish_ != wish::release) {
        return finish(make_error(errc::invalid_argument, "another request of this lease is under way; wait for its end first"));
    }
    if (hold_.heard_by != nullptr) hold_.settle_caller(make_error(errc::not_held, "the lease was released meanwhile"));
    hold_.heard_by = this;
    if (wish_ == wish::release) return room.released(hold_);
    hold_.prolong(*this, length_);
}

void caller::finish(std::exception_ptr problem) noexcept {
    problem_ = std::move(problem);
    stage_ = stage::resuming;
    hold_.what()->where->owner()->home().hand_in(*this);
}

}  // namespace lockstep::engine
