#include "sync/thread_leases.hpp"

#include "lease/hold.hpp"
#include "lease/take.hpp"

namespace lockstep::detail {

void release_quietly(lease held) noexcept {
    if (!held) return;
    auto const what = engine::hold::of(held)->what();
    release_quietly(std::move(held), [&what] { engine::require_blocking(*what); });
}

}  // namespace lockstep::detail
