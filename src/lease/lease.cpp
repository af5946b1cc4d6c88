#include <lockstep/lease.hpp>

#include "core/core.hpp"
#include "lease/caller.hpp"
#include "lease/hub.hpp"
#include "lease/room.hpp"
#include "lease/take.hpp"
#include "lease/token.hpp"

#include <lockstep/error.hpp>

#include <fmt/format.h>

#include <string>
#include <utility>

namespace lockstep {
namespace {

using engine::caller;
using engine::hold;
using std::chrono::milliseconds;
using namespace std::chrono_literals;

// The lease is in the frame: its destructor gives it back if the coroutine never runs, or does not run to its end.
task<void> run_release(lease mine) {
    caller call{*hold::of(mine), hold::tenancy_of(mine), caller::wish::release};
    co_await call;
}

task<void> run_extend(engine::hold_reference held, std::uint64_t tenancy, milliseconds length) {
    caller call{*held, tenancy, caller::wish::extend, length};
    co_await call;
}

task<std::string> run_detach(lease mine) {
    auto& held = *hold::of(mine);
    auto const what = held.what();
    auto const token = engine::write_token({&what->where->kind(), std::string{held.id()}, what->how.ttl, what->how.retention, what->where->name()});
    caller call{held, hold::tenancy_of(mine), caller::wish::detach, what->how.ttl};
    co_await call;
    co_return token;
}

}  // namespace

lease& lease::operator=(lease&& other) noexcept {
    if (this == &other) return *this;
    lease const before = std::move(*this);  // given back here
    hold_ = std::exchange(other.hold_, nullptr);
    tenancy_ = other.tenancy_;
    fence_ = other.fence_;
    return *this;
}

lease::~lease() {
    if (hold_ == nullptr) return;
    auto& held = *std::exchange(hold_, nullptr);
    held.leave(tenancy_);
    held.let_go();
}

hold& lease::required() const {
    if (hold_ == nullptr) throw not_held_error("the lease is empty: it was released, detached or moved from");
    return *hold_;
}

bool lease::valid() const noexcept { return remaining() > milliseconds::zero(); }

milliseconds lease::remaining() const noexcept {
    if (hold_ == nullptr || !hold_->what()->where->owner()->same_process()) return milliseconds::zero();
    return hold_->remaining(tenancy_);
}

std::string lease::name() const { return required().what()->where->name(); }

std::stop_token lease::stop_token() const { return required().stop_token(tenancy_); }

std::stop_token lease::at_risk_token() const { return required().at_risk_token(tenancy_); }

void lease::release() {
    engine::require_blocking(*required().what());
    sync_wait(async_release());
}

task<void> lease::async_release() {
    engine::require_usable(*required().what());
    return run_release(std::move(*this));
}

void lease::extend(milliseconds length) {
    engine::require_blocking(*required().what());
    sync_wait(async_extend(length));
}

task<void> lease::async_extend(milliseconds length) {
    auto& held = required();
    engine::require_usable(*held.what());
    if (length < 10ms || length > 30 * 24h) {
        throw invalid_argument_error(fmt::format("the lease of '{}' can be extended to 10 ms to 30 days from now, not to {} ms",
                                                 held.what()->where->name(), length.count()));
    }
    return run_extend(engine::hold_reference{held}, tenancy_, length);
}

std::string lease::detach() {
    engine::require_blocking(*required().what());
    return sync_wait(async_detach());
}

task<std::string> lease::async_detach() {
    engine::require_usable(*required().what());
    return run_detach(std::move(*this));
}

lease lease::adopt(client& by, std::string_view token) {
    detail::core_access::of(by)->require_blocking_is_allowed();
    return sync_wait(async_adopt(by, token));
}

task<lease> lease::async_adopt(client& by, std::string_view token) {
    auto const& core = detail::core_access::of(by);
    core->require_same_process();
    auto parts = engine::read_token(token);
    auto what = engine::hub::of(*core).target_for(core, *parts.kind, parts.name, {.ttl = parts.ttl, .retention = parts.retention});
    return engine::adopt(std::make_shared<engine::target const>(std::move(what)), std::move(parts.hold));
}

}  // namespace lockstep
