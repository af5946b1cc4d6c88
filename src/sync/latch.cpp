#include <lockstep/latch.hpp>

#include "core/core.hpp"
#include "lease/gate.hpp"
#include "lease/pause.hpp"
#include "scripts/all.hpp"

#include <lockstep/error.hpp>

#include <fmt/format.h>

#include <algorithm>

namespace lockstep {
namespace {

using engine::gate;
using engine::gate_answer;
using engine::gate_word;
using std::chrono::milliseconds;

/// In a turn: makes the latch, or finds that it is there with the same count. The answer has what is left.
task<gate_answer> create(std::shared_ptr<gate> at, std::int64_t count, std::string rules, gate::clock::time_point until) {
    while (true) {
        auto request = at->call(scripts::latch_create, {count, at->latest(until), rules}, until);
        auto const said = co_await std::move(request);
        if (said.what != gate_word::late) co_return said;
    }
}

class latch_gate final : public gate {
public:
    using gate::gate;
    std::string_view purpose(engine::visitor const&) const noexcept override { return "open"; }
    std::int64_t count = 0;  ///< with which it was last found

private:
    task<gate_answer> ask(std::string id, clock::time_point until) override {
        auto question = call(scripts::latch_wait, {id, latest(until), rules()}, until);
        auto said = co_await std::move(question);
        if (said.what != gate_word::absent) co_return said;
        // The server has lost it, and nobody can have opened what is not there.
        auto creation = create(shared_from_this(), count, rules(), until);
        co_await std::move(creation);
        question = call(scripts::latch_wait, {id, latest(until), rules()}, until);
        co_return co_await std::move(question);
    }
    bool frees(gate_answer const& said, engine::visitor&) noexcept override { return said.what == gate_word::open; }
    scripts::script const* leaving() const noexcept override { return &scripts::latch_leave; }
};

}  // namespace

struct detail::latch_state {
    engine::gate_target what;
    std::int64_t count;
    bool known = false;  ///< it was found with our count; in turns

    latch_gate& where() const noexcept { return static_cast<latch_gate&>(*what.where); }
};

namespace {

using state = std::shared_ptr<detail::latch_state>;

/// Goes on in a turn, when the latch is there with the right count.
task<gate_answer> find(state latch, gate::clock::time_point limit = gate::clock::time_point::max()) {
    auto const until = std::min(limit, latch->what.where->owner()->deadline({}));
    engine::pause turn{latch->what.where->owner(), milliseconds{0}};
    co_await turn;
    auto creation = create(latch->what.where, latch->count, latch->what.rules, until);
    auto const said = co_await std::move(creation);
    latch->known = true;
    latch->where().count = latch->count;
    co_return said;
}

task<bool> look(state latch) {
    auto finding = find(std::move(latch));
    auto const said = co_await std::move(finding);
    co_return said.value == 0;
}

task<std::int64_t> count_down(state latch, std::int64_t n) {
    engine::pause turn{latch->what.where->owner(), milliseconds{0}};
    co_await turn;
    while (true) {
        if (!latch->known) {
            auto finding = find(latch);
            co_await std::move(finding);
        }
        auto counting = engine::count_once(latch->what.where, scripts::latch_count_down, latch->what.rules, n);
        auto const said = co_await std::move(counting);
        if (said.what != gate_word::absent) co_return said.value;
        latch->known = false;
    }
}

task<void> only_count_down(state latch, std::int64_t n) {
    auto counting = count_down(std::move(latch), n);
    co_await std::move(counting);
}

task<bool> wait_until_open(state latch, gate::clock::time_point until) {
    engine::pause turn{latch->what.where->owner(), milliseconds{0}};
    co_await turn;
    if (!latch->known) {
        try {
            auto finding = find(latch, until);
            auto const said = co_await std::move(finding);
            if (said.value == 0) co_return true;
        } catch (timeout_error const&) {
            if (until <= gate::clock::now()) co_return false;
            throw;
        }
    }
    auto waiting = engine::wait_at(latch->what.where, until);
    co_return co_await std::move(waiting);
}

task<void> wait_within_limit(state latch, std::int64_t n) {
    if (n != 0) {
        auto counting = count_down(latch, n);
        auto const left = co_await std::move(counting);
        if (left == 0) co_return;
    }
    auto waiting = wait_until_open(latch, engine::limit_of(latch->what.how));
    bool const is_open = co_await std::move(waiting);
    auto const limit = latch->what.how.wait_limit.count();
    if (!is_open) throw timeout_error(fmt::format("'{}' was not open within {} ms", latch->what.where->name(), limit));
}

void check_step(detail::latch_state const& latch, std::int64_t n) {
    if (n >= 1) return;
    throw invalid_argument_error(fmt::format("latch '{}': it is counted down by at least 1, not by {}", latch.what.where->name(), n));
}

}  // namespace

latch::latch(client& by, std::string_view name, std::int64_t count, lease_options const& options) {
    if (count < 0 || count > 1'000'000'000'000) {
        throw invalid_argument_error(fmt::format("latch '{}': the count must be 0 to 10^12, not {}", name, count));
    }
    state_ = std::make_shared<detail::latch_state>(engine::gate_target_for<latch_gate>(by, "latch", name, options), count);
}

void latch::count_down(std::int64_t n, std::stop_token token) {
    engine::require_blocking(*state_->what.where);
    sync_wait(async_count_down(n), std::move(token));
}
task<void> latch::async_count_down(std::int64_t n) {
    engine::require_usable(*state_->what.where);
    check_step(*state_, n);
    return only_count_down(state_, n);
}

bool latch::try_wait(std::stop_token token) const {
    engine::require_blocking(*state_->what.where);
    return sync_wait(async_try_wait(), std::move(token));
}
task<bool> latch::async_try_wait() const {
    engine::require_usable(*state_->what.where);
    return look(state_);
}

void latch::wait(std::stop_token token) const {
    engine::require_blocking(*state_->what.where);
    sync_wait(async_wait(), std::move(token));
}
task<void> latch::async_wait() const {
    engine::require_usable(*state_->what.where);
    return wait_within_limit(state_, 0);
}

void latch::arrive_and_wait(std::int64_t n, std::stop_token token) {
    engine::require_blocking(*state_->what.where);
    sync_wait(async_arrive_and_wait(n), std::move(token));
}
task<void> latch::async_arrive_and_wait(std::int64_t n) {
    engine::require_usable(*state_->what.where);
    check_step(*state_, n);
    return wait_within_limit(state_, n);
}

bool latch::wait_until_steady(std::chrono::steady_clock::time_point until, std::stop_token token) const {
    engine::require_blocking(*state_->what.where);
    return sync_wait(async_wait_until_steady(until), std::move(token));
}
task<bool> latch::async_wait_until_steady(std::chrono::steady_clock::time_point until) const {
    engine::require_usable(*state_->what.where);
    if (until <= std::chrono::steady_clock::now()) return look(state_);
    return wait_until_open(state_, until);
}

}  // namespace lockstep
