#include <lockstep/mutex.hpp>

#include "core/core.hpp"
#include "lease/hub.hpp"
#include "lease/take.hpp"
#include "sync/thread_leases.hpp"

#include <lockstep/error.hpp>

#include <utility>

namespace lockstep {

mutex::mutex(client& by, std::string_view name, lease_options const& options) : held_(std::make_unique<detail::thread_leases>()) {
    auto const& core = detail::core_access::of(by);
    core->require_same_process();
    what_ = engine::hub::of(*core).target_for(core, engine::lock_kind, name, options);
}

mutex::~mutex() = default;
mutex::mutex(mutex&&) noexcept = default;
mutex& mutex::operator=(mutex&&) noexcept = default;

lease mutex::acquire(std::stop_token token) {
    engine::require_blocking(*what_);
    return sync_wait(async_acquire(), std::move(token));
}
task<lease> mutex::async_acquire() { return engine::take(what_); }

std::optional<lease> mutex::try_acquire(std::stop_token token) {
    engine::require_blocking(*what_);
    return sync_wait(async_try_acquire(), std::move(token));
}
task<std::optional<lease>> mutex::async_try_acquire() { return async_try_until({}); }

std::optional<lease> mutex::try_until(std::chrono::steady_clock::time_point until, std::stop_token token) {
    engine::require_blocking(*what_);
    return sync_wait(async_try_until(until), std::move(token));
}
task<std::optional<lease>> mutex::async_try_until(std::chrono::steady_clock::time_point until) { return engine::try_take(what_, until); }

void mutex::lock() {
    held_->require_none();
    held_->put(acquire());
}
bool mutex::try_lock() { return lock_until({}); }
bool mutex::lock_until(std::chrono::steady_clock::time_point until) {
    held_->require_none();
    auto got = try_until(until, {});
    if (!got) return false;
    held_->put(std::move(*got));
    return true;
}
void mutex::unlock() noexcept { detail::release_quietly(held_->take()); }

std::uint64_t mutex::fence() const { return held_->fence(); }
std::stop_token mutex::stop_token() const { return held_->stop_token(); }

}  // namespace lockstep
