#include "election/election_state.hpp"

#include "base/host.hpp"
#include "base/names.hpp"
#include "election/who.hpp"
#include "lease/hub.hpp"
#include "lease/kind.hpp"
#include "redis/command.hpp"
#include "scripts/all.hpp"

#include <lockstep/error.hpp>
#include <lockstep/log.hpp>

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

namespace lockstep::detail {
namespace {

using std::chrono::milliseconds;
using namespace std::chrono_literals;

void check_times(std::string_view name, election_options const& how) {
    auto const refuse = [name](std::string const& why) { throw invalid_argument_error(fmt::format("election '{}': {}", name, why)); };
    if (!(how.ttl > how.renew_deadline && how.renew_deadline > how.retry_period && how.retry_period >= 1ms)) {
        refuse(fmt::format("ttl > renew_deadline > retry_period > 0 must hold, and {} ms > {} ms > {} ms > 0 does not; the defaults are 15 s, 10 s and 2 s",
                           how.ttl.count(), how.renew_deadline.count(), how.retry_period.count()));
    }
    if (how.priority < 0 || how.priority > 1000) refuse(fmt::format("priority must be 0 to 1000, not {}", how.priority));
    auto const at_least = [&](milliseconds time, milliseconds least, std::string_view option) {
        if (time < least || time > 30 * 24h) refuse(fmt::format("{} must be {} ms to 30 days, not {} ms", option, least.count(), time.count()));
    };
    at_least(how.heartbeat_interval, 10ms, "heartbeat_interval");
    at_least(how.health_interval, 10ms, "health_interval");
    at_least(how.health_timeout, 10ms, "health_timeout");
    at_least(how.replica_timeout, 1ms, "replica_timeout");
}

std::string checked_id(std::string_view name, std::string_view id) {
    if (id.empty()) return fmt::format("{}-{}", base::host_name(), ::getpid());
    bool const clean = std::none_of(id.begin(), id.end(), [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; });
    if (id.size() <= 256 && clean) return std::string{id};
    throw invalid_argument_error(fmt::format("election '{}': id must be 1 to 256 bytes without control characters, not {} bytes{}", name, id.size(),
                                             clean ? "" : " with some"));
}

/// As in election_acquire.lua.
std::string describe(std::string const& id) {
    auto host = base::host_name();
    std::replace_if(host.begin(), host.end(), [](char c) { return static_cast<unsigned char>(c) <= 0x20; }, '_');
    return fmt::format("{} {} {}", ::getpid(), host.empty() ? "?" : host, id);
}

std::shared_ptr<engine::target const> make_target(std::shared_ptr<core> const& owner, std::string_view name, std::string const& id,
                                                  election_options const& how) {
    lease_options const terms{.ttl = how.ttl,
                              .renew = true,
                              .renew_every = 0ms,
                              .max_hold = 0ms,
                              .wait_limit = 0ms,
                              .attempts = 0U,
                              .cohort_passes = 0U,
                              .claim_window = how.claim_window,
                              .retention = how.retention,
                              .max_waiters = 1'000U};  // as many as election_state.lua looks at
    auto made = engine::hub::of(*owner).target_for(owner, engine::election_kind, name, terms);
    made.how.renew_every = how.retry_period;
    made.how.trust_for = how.renew_deadline;
    made.changes = base::key_name(owner->options().prefix, name, "changes");
    made.who = describe(id);
    made.priority = how.priority;
    return std::make_shared<engine::target const>(std::move(made));
}

}  // namespace

bool is_passing(error const& problem) noexcept {
    switch (problem.reason()) {
        case errc::timeout:
        case errc::unavailable:
        case errc::indeterminate:
        case errc::server: return true;
        default: return false;
    }
}

election_state::election_state(std::shared_ptr<core> owner, std::string_view name, election_options const& options)
    : owner_(std::move(owner)), name_(name), id_(checked_id(name, options.id)), options_(options) {
    check_times(name, options);
    options_.id = {};
    options_.healthy = {};
    what_ = make_target(owner_, name, id_, options);
    if (options.healthy) {
        health_ = std::make_shared<verdict>(options.health_timeout);
        stands_ = false;
    }
}

std::shared_ptr<seat> election_state::current() const {
    std::lock_guard const guard{mutex_};
    return current_.lock();
}

task<reply> election_state::script(scripts::script const& which, std::string_view hold) const {
    auto const& room = *what_->where;
    std::string_view const keys[] = {room.key(), what_->changes};
    argument const words[] = {argument{hold}, argument{what_->rules}};
    redis::command_terms const terms{.deadline = owner_->deadline({}), .slot = room.slot(), .repeatable = true};
    return redis::run_script(owner_->way(), which, std::span{keys}.first(which.keys), words, terms);
}

task<std::optional<leader_info>> election_state::leader(std::shared_ptr<election_state> self) {
    auto const& room = *self->what_->where;
    std::string_view const keys[] = {room.key()};
    argument const words[] = {argument{""}};
    redis::command_terms const terms{.deadline = self->owner_->deadline({}), .slot = room.slot(), .repeatable = true};
    auto asking = redis::run_script(self->owner_->way(), scripts::election_read, keys, words, terms);
    auto const said = co_await std::move(asking);
    if (said.size() < 8) co_return std::nullopt;
    leader_info found;
    found.candidates = static_cast<std::size_t>(said[1].integer());
    found.term = std::stoull(std::string{said[4].text()});
    found.since = std::chrono::system_clock::time_point{milliseconds{said[5].integer()}};
    found.remaining = milliseconds{said[6].integer()};
    read_who(said[7].text(), found.pid, found.host, found.id);
    co_return std::optional<leader_info>{std::move(found)};
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
    if (!health_ && !options_.give_way) return;
    auto const often = health_ ? options_.health_interval : options_.heartbeat_interval;
    start(watch(owner_, weak_from_this(), std::clamp(often / 4, 5ms, 100ms)), [](std::exception_ptr) {});
}

task<bool> election_state::outranked(std::shared_ptr<election_state> self) {
    bool higher = false;
    try {
        auto const& room = *self->what_->where;
        std::string_view const keys[] = {room.key()};
        argument const words[] = {argument{"1"}};
        redis::command_terms const terms{.deadline = self->owner_->deadline({}), .slot = room.slot(), .repeatable = true};
        auto asking = redis::run_script(self->owner_->way(), scripts::election_read, keys, words, terms);
        auto const said = co_await std::move(asking);
        higher = said[2].integer() > self->options_.priority;
    } catch (error const& problem) {
        if (!is_passing(problem)) throw;
    }
    co_return higher;
}

task<void> election_state::watch(std::shared_ptr<core> owner, std::weak_ptr<election_state> which, milliseconds every) {
    auto looked = clock::now();
    while (true) {
        engine::pause rest{owner, every};
        co_await rest;
        auto const self = which.lock();
        if (!self) co_return;
        if (self->health_) self->set_permission(self->health_->is_healthy());
        if (!self->options_.give_way || clock::now() - looked < self->options_.heartbeat_interval) continue;
        looked = clock::now();
        auto const leads = self->current();
        if (!leads || leads->remaining() == 0ms) continue;
        auto looking = outranked(self);
        bool const higher = co_await std::move(looking);
        if (higher) leads->step_down("a candidate of higher priority stands in line");
    }
}

}  // namespace lockstep::detail
