#include "lease/visitor.hpp"

#include "lease/gate.hpp"

#include <utility>

namespace lockstep::engine {

visitor::visitor(std::shared_ptr<gate> at, terms how) noexcept : generation(how.generation), gate_(std::move(at)), how_(how) {}

std::shared_ptr<detail::core> const& visitor::owner() const noexcept { return gate_->owner(); }

void visitor::enter() { gate_->enter(*this); }
void visitor::leave() noexcept { gate_->leave(*this); }

void visitor::is_cancelled() noexcept { gate_->tell(trace_what::cancelled, this); }

void visitor::finish(std::optional<gate_word> how) noexcept {
    outcome_ = how;
    gate_->tell(how ? trace_what::passed : trace_what::timed_out, this, how == gate_word::broken ? "broken" : "");
    resume_soon();
}

}  // namespace lockstep::engine
