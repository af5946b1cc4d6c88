#include <lockstep/circuit_breaker.hpp>

#include "state/breaker_state.hpp"

#include <lockstep/error.hpp>

#include <fmt/format.h>

namespace lockstep {
namespace {

using namespace std::chrono_literals;
using state = std::shared_ptr<detail::breaker_state>;

void check(std::string_view name, circuit_breaker_options const& how) {
    auto const require = [&](bool is_met, std::string_view what) {
        if (!is_met) throw invalid_argument_error(fmt::format("circuit breaker '{}': {}", name, what));
    };
    require(how.failure_threshold >= 0 && how.failure_threshold <= 1'000'000'000, "failure_threshold must be 0 to 10^9");
    require(how.failure_ratio >= 0 && how.failure_ratio <= 1, "failure_ratio must be 0 to 1");
    require(how.failure_threshold > 0 || how.failure_ratio > 0, "it needs a failure_threshold or a failure_ratio");
    require(how.minimum_calls >= 1 && how.minimum_calls <= 1'000'000'000, "minimum_calls must be 1 to 10^9");
    require(how.sampling >= 100ms && how.sampling <= 24h, "sampling must be 100 ms to 1 day");
    require(how.recovery_timeout >= 1ms && how.recovery_timeout <= 24h, "recovery_timeout must be 1 ms to 1 day");
    require(how.half_open_probes >= 1 && how.half_open_probes <= 1'000, "half_open_probes must be 1 to 1,000");
    require(how.successes_to_close >= 1 && how.successes_to_close <= 1'000, "successes_to_close must be 1 to 1,000");
    require(how.probe_lease >= 10ms && how.probe_lease <= 24h, "probe_lease must be 10 ms to 1 day");
    require(how.quorum_of_reporters >= 1 && how.quorum_of_reporters <= 1'000, "quorum_of_reporters must be 1 to 1,000");
    require(how.report_interval >= 1ms && how.report_interval <= 1min, "report_interval must be 1 ms to 1 min");
    require(how.max_age >= 10ms && how.max_age <= 24h, "max_age must be 10 ms to 1 day");
    require(how.server_timeout >= 10ms && how.server_timeout <= 24h, "server_timeout must be 10 ms to 1 day");
}

task<std::optional<circuit_permit>> allowed(task<circuit_permit> asking) {
    try {
        auto permit = co_await std::move(asking);
        co_return std::move(permit);
    } catch (circuit_open_error const&) {
        co_return std::nullopt;
    }
}

task<circuit_status> look_at(state at) {
    auto looking = detail::breaker_state::look(at);
    co_await std::move(looking);
    co_return at->status();
}

task<detail::breaker_pass> passed(detail::breaker_pass pass) { co_return std::move(pass); }

bool is_cancellation(std::exception_ptr const& problem) noexcept {
    try {
        std::rethrow_exception(problem);
    } catch (cancelled_error const&) {
        return true;
    } catch (...) {
        return false;
    }
}

}  // namespace

std::string_view to_string(circuit state) noexcept {
    switch (state) {
        case circuit::open: return "open";
        case circuit::half_open: return "half_open";
        case circuit::closed: break;
    }
    return "closed";
}

namespace detail {

breaker_pass admit(breaker_state& by, std::stop_token token) {
    if (auto const generation = by.passes()) return {.generation = *generation};
    auto judged = by.judge();
    if (judged.what == breaker_state::verdict::go) return std::move(judged.pass);
    if (judged.what == breaker_state::verdict::refused) by.refuse(judged);
    by.object().require_blocking();
    return sync_wait(breaker_state::admit(by.shared_from_this()), std::move(token));
}

std::optional<breaker_pass> try_admit(breaker_state& by, std::stop_token token) {
    if (auto const generation = by.passes()) return breaker_pass{.generation = *generation};
    auto judged = by.judge();
    if (judged.what == breaker_state::verdict::refused) return std::nullopt;
    if (judged.what == breaker_state::verdict::go) return std::move(judged.pass);
    by.object().require_blocking();
    try {
        return sync_wait(breaker_state::admit(by.shared_from_this()), std::move(token));
    } catch (circuit_open_error const&) {
        return std::nullopt;
    }
}

task<breaker_pass> async_admit(std::shared_ptr<breaker_state> by) {
    if (auto const generation = by->passes()) return passed({.generation = *generation});
    by->object().require_usable();
    return breaker_state::admit(std::move(by));
}

task<std::optional<breaker_pass>> async_try_admit(std::shared_ptr<breaker_state> by) {
    auto asking = async_admit(std::move(by));
    try {
        auto pass = co_await std::move(asking);
        co_return std::move(pass);
    } catch (circuit_open_error const&) {
        co_return std::nullopt;
    }
}

void settle(breaker_state& by, breaker_pass& pass, breaker_outcome how) noexcept {
    if (!pass.probe.empty()) return by.settle(pass.probe, how);
    if (how != breaker_outcome::none) by.count(pass.generation, how == breaker_outcome::ok);
}

breaker_outcome outcome_of(breaker_state& by, std::exception_ptr const& problem, bool is_stopped) noexcept {
    if (is_stopped && is_cancellation(problem)) return breaker_outcome::none;
    if (!by.how().counts) return breaker_outcome::failed;
    try {
        return by.how().counts(problem) ? breaker_outcome::failed : breaker_outcome::ok;
    } catch (...) {
        return breaker_outcome::failed;
    }
}

}  // namespace detail

task<circuit_permit> circuit_permit::from(std::shared_ptr<detail::breaker_state> by) {
    auto asking = detail::async_admit(by);
    auto pass = co_await std::move(asking);
    co_return circuit_permit{std::move(by), std::move(pass)};
}

circuit_breaker::circuit_breaker(client& by, std::string_view name, circuit_breaker_options options) {
    check(name, options);
    state_ = std::make_shared<detail::breaker_state>(by, name, std::move(options));
}
circuit_breaker::~circuit_breaker() {
    if (!state_ || !state_->object().owner()->same_process() || !state_->has_counts()) return;
    start(detail::breaker_state::flush(state_), [](std::exception_ptr) {});
}

circuit_permit circuit_breaker::allow() { return circuit_permit{state_, detail::admit(*state_)}; }
std::optional<circuit_permit> circuit_breaker::try_allow() {
    auto pass = detail::try_admit(*state_);
    if (!pass) return std::nullopt;
    return circuit_permit{state_, std::move(*pass)};
}
task<circuit_permit> circuit_breaker::async_allow() {
    state_->object().require_usable();
    return circuit_permit::from(state_);
}
task<std::optional<circuit_permit>> circuit_breaker::async_try_allow() { return allowed(async_allow()); }

circuit_status circuit_breaker::state() const { return state_->status(); }
circuit_status circuit_breaker::look(std::stop_token token) {
    state_->object().require_blocking();
    return sync_wait(async_look(), std::move(token));
}
task<circuit_status> circuit_breaker::async_look() {
    state_->object().require_usable();
    return look_at(state_);
}

void circuit_breaker::open(std::optional<std::chrono::milliseconds> time, std::stop_token token) {
    state_->object().require_blocking();
    sync_wait(async_open(time), std::move(token));
}
task<void> circuit_breaker::async_open(std::optional<std::chrono::milliseconds> time) {
    state_->object().require_usable();
    if (time && (*time < 1ms || *time > 366 * 24h)) {
        throw invalid_argument_error(fmt::format("circuit breaker '{}': it can be opened for 1 ms to 366 days, not for {} ms", state_->object().name(), time->count()));
    }
    return detail::breaker_state::set(state_, "open", time ? time->count() : -1);
}

void circuit_breaker::close(std::stop_token token) {
    state_->object().require_blocking();
    sync_wait(async_close(), std::move(token));
}
task<void> circuit_breaker::async_close() {
    state_->object().require_usable();
    return detail::breaker_state::set(state_, "closed", 0);
}

void circuit_breaker::flush(std::stop_token token) {
    state_->object().require_blocking();
    sync_wait(async_flush(), std::move(token));
}
task<void> circuit_breaker::async_flush() {
    state_->object().require_usable();
    return detail::breaker_state::flush(state_);
}

}  // namespace lockstep
