#include "lease/pause.hpp"

#include "core/core.hpp"
#include "lease/hub.hpp"

namespace lockstep::engine {

void pause::enter() {
    if (owner_->closed()) return fail(errc::cancelled, "the client is closed");
    if (time_.count() == 0) return resume_soon();
    hub::of(*owner_).rests(*this);
}

}  // namespace lockstep::engine
