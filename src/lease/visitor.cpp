#include "lease/visitor.hpp"

#include "lease/gate.hpp"

#include <utility>

namespace lockstep::engine {

visitor::visitor(std::shared_ptr<gate> at, terms how) noexcept : generation(how.generation), gate_(std::move(at)), how_(how) {}

std::shared_ptr<detail::core> const& visitor::owner() const noexcept { return gate_->owner(); }

void visitor::enter() { gate_->enter(*this); }
void visitor::leave() noexcept { gate_->leave(*this); }

void visitor::finish(std::optional<gate_word> how) noexcept {
    outcome_ = how;
    resume_soon();
}

}  // namespace lockstep::engine
