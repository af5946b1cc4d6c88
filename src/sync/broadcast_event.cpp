#include <lockstep/broadcast_event.hpp>

#include "core/core.hpp"
#include "lease/gate.hpp"
#include "lease/pause.hpp"
#include "scripts/all.hpp"

#include <lockstep/error.hpp>

#include <fmt/format.h>

namespace lockstep {
namespace {

using engine::gate;
using engine::gate_answer;
using engine::gate_target;
using engine::gate_word;
using std::chrono::milliseconds;
using target = std::shared_ptr<gate_target const>;

class event_gate final : public gate {
public:
    using gate::gate;
    std::string_view purpose(engine::visitor const&) const noexcept override { return "set"; }

private:
    task<gate_answer> ask(std::string id, clock::time_point until) override {
        // Always as one who just came: then "open" means "set now", and the generation tells who came before it was last set.
        return call(scripts::broadcast_wait, {id, "", latest(until), rules()}, until);
    }
    bool frees(gate_answer const& said, engine::visitor& who) noexcept override {
        if (said.what == gate_word::open) return true;
        if (said.what != gate_word::waiting) return false;
        if (who.generation < 0) who.generation = said.value;
        return who.generation < said.value;
    }
    scripts::script const* leaving() const noexcept override { return &scripts::broadcast_leave; }
};

task<void> change(target what, scripts::script const& how) {
    auto counted = engine::count_once(what->where, how, what->rules);
    co_await std::move(counted);
}

task<bool> look(target what) {
    auto const until = what->where->owner()->deadline({});
    engine::pause turn{what->where->owner(), milliseconds{0}};
    co_await turn;
    while (true) {
        auto question = what->where->call(scripts::broadcast_wait, {"", "", what->where->latest(until), what->rules}, until);
        auto const said = co_await std::move(question);
        if (said.what != gate_word::late) co_return said.what == gate_word::open;
    }
}

task<void> wait_within_limit(target what) {
    auto waiting = engine::wait_at(what->where, engine::limit_of(what->how));
    bool const is_set = co_await std::move(waiting);
    if (!is_set) throw timeout_error(fmt::format("'{}' was not set within {} ms", what->where->name(), what->how.wait_limit.count()));
}

}  // namespace

broadcast_event::broadcast_event(client& by, std::string_view name, lease_options const& options)
    : what_(std::make_shared<gate_target const>(engine::gate_target_for<event_gate>(by, "broadcast", name, options))) {}

void broadcast_event::set(std::stop_token token) {
    engine::require_blocking(*what_->where);
    sync_wait(async_set(), std::move(token));
}
task<void> broadcast_event::async_set() {
    engine::require_usable(*what_->where);
    return change(what_, scripts::broadcast_set);
}

void broadcast_event::clear(std::stop_token token) {
    engine::require_blocking(*what_->where);
    sync_wait(async_clear(), std::move(token));
}
task<void> broadcast_event::async_clear() {
    engine::require_usable(*what_->where);
    return change(what_, scripts::broadcast_clear);
}

bool broadcast_event::is_set(std::stop_token token) const {
    engine::require_blocking(*what_->where);
    return sync_wait(async_is_set(), std::move(token));
}
task<bool> broadcast_event::async_is_set() const {
    engine::require_usable(*what_->where);
    return look(what_);
}

void broadcast_event::wait(std::stop_token token) const {
    engine::require_blocking(*what_->where);
    sync_wait(async_wait(), std::move(token));
}
task<void> broadcast_event::async_wait() const {
    engine::require_usable(*what_->where);
    return wait_within_limit(what_);
}

bool broadcast_event::wait_until_steady(std::chrono::steady_clock::time_point until, std::stop_token token) const {
    engine::require_blocking(*what_->where);
    return sync_wait(async_wait_until_steady(until), std::move(token));
}
task<bool> broadcast_event::async_wait_until_steady(std::chrono::steady_clock::time_point until) const {
    engine::require_usable(*what_->where);
    if (until <= std::chrono::steady_clock::now()) return look(what_);
    return engine::wait_at(what_->where, until);
}

}  // namespace lockstep
