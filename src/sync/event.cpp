#include <lockstep/event.hpp>

#include "lease/key_keepalive.hpp"
#include "lease/take.hpp"
#include "scripts/all.hpp"
#include "sync/targets.hpp"

#include <lockstep/error.hpp>

#include <fmt/format.h>

namespace lockstep {
namespace {

using target_pointer = std::shared_ptr<engine::target const>;

// A signal is taken when it is granted. The lease that is left is only the record of that, for a reply that was lost.
task<void> run_wait(target_pointer what) {
    auto work = engine::take(std::move(what));
    auto const taken = co_await std::move(work);
}

task<bool> run_wait_until(target_pointer what, std::chrono::steady_clock::time_point until) {
    auto work = engine::try_take(std::move(what), until);
    auto const taken = co_await std::move(work);
    co_return taken.has_value();
}

task<void> run_set(target_pointer what) {
    auto work = engine::change_once(what, scripts::pool_add, {1, what->rules});
    auto const said = co_await std::move(work);
    what->where->tell_signal("set");
    if (!said[2].text().empty()) what->where->gave(what);
}

task<std::int64_t> run_clear(target_pointer what) {
    auto work = engine::change_once(what, scripts::pool_clear, {what->rules});
    auto const said = co_await std::move(work);
    co_return said[1].integer();
}

task<bool> run_is_set(target_pointer what) {
    auto work = engine::call(*what, scripts::pool_read, {});
    auto const found = co_await std::move(work);
    co_return found[0].integer() > 0 && found[1].integer() > 0;
}

}  // namespace

event::event(client& by, std::string_view name, lease_options const& options) {
    auto made = detail::target_of(by, engine::event_kind, name, options);
    made.mode = "consume";
    made.kept = engine::key_keepalive::keep(*made.where->owner(), made.where->key(), made.how.retention);
    what_ = std::make_shared<engine::target const>(std::move(made));
}

void event::set(std::stop_token token) {
    engine::require_blocking(*what_);
    sync_wait(async_set(), std::move(token));
}
task<void> event::async_set() {
    engine::require_usable(*what_);
    return run_set(what_);
}

std::int64_t event::clear(std::stop_token token) {
    engine::require_blocking(*what_);
    return sync_wait(async_clear(), std::move(token));
}
task<std::int64_t> event::async_clear() {
    engine::require_usable(*what_);
    return run_clear(what_);
}

bool event::is_set(std::stop_token token) const {
    engine::require_blocking(*what_);
    return sync_wait(async_is_set(), std::move(token));
}
task<bool> event::async_is_set() const {
    engine::require_usable(*what_);
    return run_is_set(what_);
}

void event::wait(std::stop_token token) {
    engine::require_blocking(*what_);
    sync_wait(async_wait(), std::move(token));
}
task<void> event::async_wait() {
    engine::require_usable(*what_);
    return run_wait(what_);
}

bool event::wait_until_steady(std::chrono::steady_clock::time_point until, std::stop_token token) {
    engine::require_blocking(*what_);
    return sync_wait(async_wait_until_steady(until), std::move(token));
}
task<bool> event::async_wait_until_steady(std::chrono::steady_clock::time_point until) {
    engine::require_usable(*what_);
    return run_wait_until(what_, until);
}

}  // namespace lockstep
