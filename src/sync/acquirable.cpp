#include <lockstep/detail/acquirable.hpp>

#include "lease/take.hpp"
#include "sync/thread_leases.hpp"

#include <utility>

namespace lockstep::detail {

lease acquirable::acquire(std::stop_token token) {
    engine::require_blocking(*what_);
    return sync_wait(async_acquire(), std::move(token));
}
task<lease> acquirable::async_acquire() { return engine::take(what_); }

std::optional<lease> acquirable::try_until(std::chrono::steady_clock::time_point until, std::stop_token token) {
    engine::require_blocking(*what_);
    return sync_wait(async_try_until(until), std::move(token));
}
task<std::optional<lease>> acquirable::async_try_until(std::chrono::steady_clock::time_point until) {
    return engine::try_take(what_, until);
}

lockable::lockable(std::shared_ptr<engine::target const> what)
    : acquirable(std::move(what)), held_(std::make_unique<thread_leases>()) {}
lockable::~lockable() = default;
lockable::lockable(lockable&&) noexcept = default;
lockable& lockable::operator=(lockable&&) noexcept = default;

void lockable::lock() {
    held_->require_none();
    held_->put(acquire());
}
bool lockable::lock_until(std::chrono::steady_clock::time_point until) {
    held_->require_none();
    auto got = try_until(until, {});
    if (!got) return false;
    held_->put(std::move(*got));
    return true;
}
void lockable::unlock() noexcept { release_quietly(held_->take()); }

std::uint64_t lockable::fence() const { return held_->fence(); }
std::stop_token lockable::stop_token() const { return held_->stop_token(); }

}  // namespace lockstep::detail
