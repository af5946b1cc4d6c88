#include "lease/waiter.hpp"

#include "base/current_trace.hpp"
#include "lease/hub.hpp"
#include "lease/room.hpp"

#include <fmt/format.h>

#include <utility>

namespace lockstep::engine {

waiter::waiter(std::shared_ptr<target const> what, terms how) : target_(std::move(what)), how_(how) {
    if (auto const id = base::current_trace(); !id.empty()) trace = std::make_unique<std::string>(id);
}

std::shared_ptr<detail::core> const& waiter::owner() const noexcept { return target_->where->owner(); }

void waiter::enter() { target_->where->enter(*this); }
void waiter::leave() noexcept { target_->where->leave(*this); }

void waiter::finish(lease granted) noexcept {
    lease_ = std::move(granted);
    resume_soon();
}

void waiter::is_cancelled() noexcept { target_->where->gave_up(*this, trace_what::cancelled); }

void waiter::time_is_over() noexcept {
    target_->where->gave_up(*this, trace_what::timed_out);
    if (target_->where->home().is_connected(target_->where->slot())) return finish({});
    auto const& where = *target_->where;
    fail(errc::unavailable, fmt::format("{} '{}': no server could be reached in the time allowed", where.kind().word, where.name()));
}

}  // namespace lockstep::engine
