#include "lease/caller.hpp"

#include "core/core.hpp"
#include "lease/room.hpp"

#include <lockstep/error.hpp>

#include <fmt/format.h>

namespace lockstep::engine {

caller::~caller() {
    withdraw();
    hold_.let_go();
}

std::shared_ptr<detail::core> const& caller::owner() const noexcept { return hold_.what()->where->owner(); }

void caller::leave() noexcept {
    if (hold_.heard_by == this) hold_.heard_by = nullptr;
}

void caller::enter() {
    auto& room = *hold_.what()->where;
    // Its time is over, and the alarm has said so: it does not become a good end because the server is still in time.
    if (hold_.tenancy() == tenancy_ && !hold_.is_valid(tenancy_)) hold_.lose("its time is over");
    if (hold_.tenancy() != tenancy_) {
        return finish(make_error(errc::lease_lost, fmt::format("the lease of '{}' was lost", room.name())));
    }
    if (hold_.heard_by != nullptr && wish_ != wish::release) {
        return finish(make_error(
            errc::invalid_argument,
            fmt::format("another request of this lease of '{}' is under way, and it takes one at a time; wait for its end first", room.name())));
    }
    if (hold_.heard_by != nullptr) hold_.settle_caller(make_error(errc::not_held, fmt::format("the lease of '{}' was released meanwhile", room.name())));
    hold_.heard_by = this;
    if (wish_ == wish::release) return room.released(hold_);
    hold_.prolong(*this, length_);
}

}  // namespace lockstep::engine
