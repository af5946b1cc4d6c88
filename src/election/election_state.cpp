#include "election/election_state.hpp"

#include "base/host.hpp"
#include "lease/pause.hpp"

#include <lockstep/error.hpp>
#include <lockstep/log.hpp>

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

namespace lockstep::detail {
using std::chrono::milliseconds;
using namespace std::chrono_literals;

namespace {

/// The defaults are 15 s, 10 s and 2 s. What the user sets keeps these proportions, and where that leaves no room, what was left out gives way.
void fill_in_times(election_options& options) {
    if (!options.ttl) options.ttl = std::max({milliseconds{15s}, options.renew_deadline.value_or(0ms) / 2 * 3, options.retry_period.value_or(0ms) * 3});
    auto const most = *options.ttl - *options.ttl / 10;  // of the deadline: what a lease is trusted for
    if (!options.renew_deadline) options.renew_deadline = std::max(*options.ttl * 2 / 3, std::min(options.retry_period.value_or(0ms) * 2, most));
    if (!options.retry_period) options.retry_period = std::min(*options.ttl * 2 / 15, *options.renew_deadline / 5);
    if (!options.replica_timeout) options.replica_timeout = std::clamp(*options.renew_deadline - *options.retry_period, 1ms, milliseconds{1s});
}

}  // namespace

election_options checked_options(std::string_view name, election_options options) {
    auto const refuse = [name](std::string const& why) { throw invalid_argument_error(fmt::format("election '{}': {}", name, why)); };
    auto const at_least = [&](milliseconds time, milliseconds least, std::string_view option) {
        if (time < least || time > 30 * 24h) refuse(fmt::format("{} must be {} ms to 30 days, not {} ms", option, least.count(), time.count()));
    };
    // Before anything is computed from them.
    at_least(options.ttl.value_or(15s), 10ms, "ttl");
    at_least(options.renew_deadline.value_or(10s), 1ms, "renew_deadline");
    at_least(options.retry_period.value_or(2s), 1ms, "retry_period");
    fill_in_times(options);
    if (!(*options.ttl > *options.renew_deadline && *options.renew_deadline > *options.retry_period && *options.retry_period >= 1ms)) {
        refuse(fmt::format("ttl > renew_deadline > retry_period > 0 must hold, and {} ms > {} ms > {} ms > 0 does not; the defaults are 15 s, 10 s and 2 s, "
                           "and what you leave out follows from what you set",
                           options.ttl->count(), options.renew_deadline->count(), options.retry_period->count()));
    }
    if (options.priority < 0 || options.priority > 1000) refuse(fmt::format("priority must be 0 to 1000, not {}", options.priority));
    at_least(options.heartbeat_interval, 10ms, "heartbeat_interval");
    at_least(options.health_interval, 10ms, "health_interval");
    at_least(options.health_timeout, 10ms, "health_timeout");
    at_least(*options.replica_timeout, 1ms, "replica_timeout");
    auto const room = *options.renew_deadline - *options.retry_period;
    if (options.min_replicas != 0 && *options.replica_timeout > room) {
        refuse(fmt::format("with min_replicas, replica_timeout must be at most renew_deadline less retry_period ({} ms), not {} ms: a leader that asks its "
                           "replicas every retry_period steps down when they have not heard of it for renew_deadline",
                           room.count(), options.replica_timeout->count()));
    }
    return options;
}

std::string candidate_id(std::string_view name, std::string_view id) {
    if (id.empty()) return fmt::format("{}-{}", base::host_name(), ::getpid());
    bool const clean = std::none_of(id.begin(), id.end(), [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; });
    if (id.size() <= 256 && clean) return std::string{id};
    throw invalid_argument_error(fmt::format("election '{}': id must be 1 to 256 bytes without control characters, not {} bytes{}", name, id.size(),
                                             clean ? "" : " with some"));
}

std::string describe_candidate(std::string const& id) {
    auto host = base::host_name();
    std::replace_if(host.begin(), host.end(), [](char c) { return static_cast<unsigned char>(c) <= 0x20; }, '_');
    return fmt::format("{} {} {}", ::getpid(), host.empty() ? "?" : host, id);
}

bool is_passing(error const& problem) noexcept {
    switch (problem.reason()) {
        case errc::timeout:
        case errc::unavailable:
        case errc::indeterminate:
        case errc::server: return true;
        default: return false;
    }
}

election_state::election_state(std::shared_ptr<venue> where, std::string_view name, std::string id, election_options const& options)
    : where_(std::move(where)), name_(name), id_(std::move(id)), options_(options) {
    options_.id = {};
    options_.healthy = {};
    if (options.healthy) {
        health_ = std::make_shared<health_verdict>(options.health_timeout);
        stands_ = false;
    }
}

std::shared_ptr<seat> election_state::current() const {
    std::lock_guard const guard{mutex_};
    return current_.lock();
}

// ---- the gate, and those of higher priority

election_state::permission election_state::ask_gate() const {
    std::lock_guard const guard{mutex_};
    return {stands_, standing_.get_token()};
}

void election_state::set_permission(bool stands) {
    std::stop_source before;
    std::shared_ptr<seat> leads;
    {
        std::lock_guard const guard{mutex_};
        if (stands == std::exchange(stands_, stands)) return;
        before = std::exchange(standing_, std::stop_source{});
        leads = current_.lock();
    }
    if (stands) return;
    before.request_stop();
    if (leads) leads->step_down("its health gate says that it is unhealthy");
}

void election_state::supervise() {
    if (health_) start(watch_health(owner(), weak_from_this(), std::clamp(options_.health_interval / 4, 5ms, 100ms)), [](std::exception_ptr) {});
    if (options_.give_way) start(watch_ranks(owner(), weak_from_this(), options_.heartbeat_interval), [](std::exception_ptr) {});
}

task<bool> election_state::is_outranked(std::shared_ptr<election_state> self) {
    bool higher = false;
    try {
        auto asking = self->where_->highest_in_line();
        higher = co_await std::move(asking) > self->options_.priority;
    } catch (error const& problem) {
        if (!is_passing(problem)) throw;
    }
    co_return higher;
}

task<void> election_state::watch_health(std::shared_ptr<core> owner, std::weak_ptr<election_state> which, milliseconds every) {
    while (true) {
        engine::pause rest{owner, every};
        co_await rest;
        auto const self = which.lock();
        if (!self) co_return;
        self->set_permission(self->health_->is_healthy());
    }
}

task<void> election_state::watch_ranks(std::shared_ptr<core> owner, std::weak_ptr<election_state> which, milliseconds every) {
    while (true) {
        engine::pause rest{owner, every};
        co_await rest;
        auto const self = which.lock();
        if (!self) co_return;
        auto const leads = self->current();
        if (!leads || leads->remaining() == 0ms) continue;
        auto looking = is_outranked(self);
        bool const higher = co_await std::move(looking);
        if (higher) leads->step_down("a candidate of higher priority stands in line");
    }
}

// ---- standing

/// False: its time is over. The gate's first word is waited for in any case.
task<bool> election_state::wait_for_permission(std::shared_ptr<election_state> self, clock::time_point until) {
    auto const begun = clock::now();
    while (!self->ask_gate().stands) {
        bool const spoke = !self->health_ || self->health_->has_spoken() || clock::now() - begun >= self->options_.health_timeout;
        if (self->health_) self->set_permission(self->health_->is_healthy());
        if (self->ask_gate().stands) break;
        if (spoke && until != clock::time_point::max() && clock::now() >= until) co_return false;
        engine::pause rest{self->owner(), 10ms};
        co_await rest;
    }
    co_return true;
}

std::shared_ptr<seat> election_state::sit(std::unique_ptr<tenure> held) {
    auto const announce = held->announce();
    auto made = std::make_shared<seat>(seat::place{owner(), name_, id_, options_.renew_deadline.value()}, std::move(held));
    {
        std::lock_guard const guard{mutex_};
        current_ = made;
    }
    log(log_level::info, fmt::format("{} leads '{}' (term {})", id_, name_, made->term()));
    announce(made);
    return made;
}

task<std::shared_ptr<seat>> election_state::campaign(std::shared_ptr<election_state> self, clock::time_point until) {
    while (true) {
        auto waiting = wait_for_permission(self, until);
        bool const may = co_await std::move(waiting);
        if (!may) co_return nullptr;
        auto const allowed = self->ask_gate();
        if (!allowed.stands) continue;
        std::unique_ptr<tenure> held;
        try {
            auto standing = with_stop_token(self->where_->stand(until), allowed.withdrawn);
            held = co_await std::move(standing);
        } catch (cancelled_error const&) {
            if (!allowed.withdrawn.stop_requested()) throw;
        }
        if (allowed.withdrawn.stop_requested()) continue;  // unhealthy meanwhile: what it may have got is given back
        if (!held) co_return nullptr;
        co_return self->sit(std::move(held));
    }
}

}  // namespace lockstep::detail
