#include "lease/room.hpp"

#include "core/core.hpp"
#include "lease/hub.hpp"
#include "redis/slot.hpp"

#include <lockstep/log.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace lockstep::engine {
namespace {

using std::chrono::milliseconds;

/// Whether a lease obtained for one can be given to another.
bool same_terms(settings const& left, settings const& right) noexcept {
    return left.ttl == right.ttl && left.renew == right.renew && left.renew_every == right.renew_every && left.max_hold == right.max_hold;
}

/// What the one who asked is told: of what, and what is allowed. The first word of a server's error stays the first.
std::string explain(target const& what, errc reason, std::string_view why) {
    auto const& where = *what.where;
    if (reason != errc::server) return fmt::format("{} '{}': {}", where.kind().word, where.name(), why);
    if (!why.starts_with("LOCKSTEP_WAITERS")) return fmt::format("{} ({} '{}')", why, where.kind().word, where.name());
    return fmt::format("LOCKSTEP_WAITERS {} '{}' has all the waiters that it may have: {} (max_waiters)", where.kind().word, where.name(),
                       what.how.max_waiters);
}

}  // namespace

room::room(std::shared_ptr<detail::core> owner, hub& home, engine::kind const& what, std::string key, std::string name)
    : owner_(std::move(owner)), hub_(home), kind_(what), key_(std::move(key)), name_(std::move(name)),
      slot_(static_cast<std::int16_t>(redis::key_slot(key_))), clock_(owner_->is_cluster() ? nullptr : &hub_.offset_ms) {}

room::~room() {
    if (!owner_->same_process()) return;
    hub_.forget(*this);
    if (!listening_) return;
    owner_->home().in_turn(
        [this] { owner_->way()->listening().remove(redis::channel_kind::shard, channel() + hub_.client_id(), *this); });
}

std::string room::channel() const { return hub_.channel_of(key_); }

void room::learn(std::int64_t server_ms) noexcept {
    last_contact_ = owner_->home().now();
    clock_.learn(server_ms);
}

std::int64_t room::server_now() const noexcept { return clock_.now(); }

// ---- waiters

bool room::shares(waiter const& who) const noexcept {
    return !kind_.is_pool && who.how().queues && who.what().how.has_cohort();
}

void room::enter(waiter& who) {
    if (owner_->closed()) return who.fail(errc::cancelled, "the client is closed");
    if (!owner_->is_cluster() && (who.how().queues || kind_.is_election)) hub_.listen();
    if (shares(who)) {
        waiting_.push_back(who);
        hub_.changed();
        if (asker_ == nullptr && tenant_ == nullptr) return ask_for_all();
        return tell_waiting(trace_what::queued, who);
    }
    if (!who.how().queues && who.how().token.empty() && tenant_ != nullptr && tenant_->is_valid(tenant_->tenancy())) {
        return who.finish({});  // held in this very process
    }
    auto& own = hub_.new_hold(who.shared_target());
    own.wanted_by = &who;
    who.own = &own;
    own.ask(budget_of(own), who.how().token);
}

void room::leave(waiter& who) noexcept {
    if (auto* const own = std::exchange(who.own, nullptr)) return own->give_up();
    who.unlink();
    if (waiting_.empty() && asker_ != nullptr) std::exchange(asker_, nullptr)->give_up();
}

void room::ask_for_all() noexcept {
    asker_ = &hub_.new_hold(waiting_.front().shared_target());
    asker_->ask(budget_of(*asker_));
}

milliseconds room::budget_of(hold const& held) const noexcept {
    auto const now = owner_->home().now();
    auto const most = std::min(longest_budget, std::chrono::ceil<milliseconds>(owner_->deadline({}) - now));
    if (held.wanted_by == nullptr || held.wanted_by->how().deadline == waiter::clock::time_point::max()) return most;
    auto const left = std::chrono::ceil<milliseconds>(held.wanted_by->how().deadline - now);
    return std::clamp(left, milliseconds{10}, std::max(most, milliseconds{10}));
}

void room::fail_all(errc reason, std::string_view why) noexcept {
    while (!waiting_.empty()) waiting_.front().fail(reason, why);
    if (asker_ != nullptr) std::exchange(asker_, nullptr)->give_up();
}

// ---- what the server says

void room::granted(hold& held, answer const& said) noexcept {
    if (kind_.is_election) hear();  // a leader may be asked for a renewal
    if (!kind_.is_pool) {  // a grant shows that the lock went on; of a pool's permits it shows nothing
        look_by_ = waiter::clock::time_point::max();
        stop_watching();
    }
    no_longer_queued(held);
    bool const for_all = asker_ == &held;
    if (for_all) asker_ = nullptr;
    auto* const who = for_all ? (waiting_.empty() ? nullptr : &waiting_.front()) : held.wanted_by;
    held.fence = static_cast<std::uint64_t>(said.fence);
    held.last_fence = held.fence + static_cast<std::uint64_t>(said.fences) - 1;
    held.granted_at = owner_->home().now();
    bool const in_time = held.set_first_end(milliseconds{said.left_ms});
    bool const as_wanted = who != nullptr && same_terms(held.what()->how, who->what().how);
    if (in_time && as_wanted) {
        if (for_all) tenant_ = &held;
        return give(held, *who);
    }
    // Nobody is left who wants it, or wants it like that; or the answer took longer than the lease lasts.
    if (!for_all && who != nullptr) who->own = nullptr;
    held.wanted_by = nullptr;
    held.give_back_unused();
    if (who == nullptr) return;
    if (for_all) return ask_for_all();
    enter(*who);
}

void room::give(hold& held, waiter& who) noexcept {
    held.wanted_by = nullptr;
    who.own = nullptr;
    auto const tenancy = held.begin_tenancy(held.fence);
    count_grant(held, who);
    held.keep();
    who.finish(hold::make_lease(held, tenancy, held.fence));
}

void room::refused(hold& held) noexcept {
    auto* const who = std::exchange(held.wanted_by, nullptr);
    if (who != nullptr) {
        who->own = nullptr;
        who->finish({});
    }
    held.owe_or_finish();
}

void room::queued(hold& held, bool place_is_new) noexcept {
    stop_watching();
    bool const with_others = std::exchange(held.looks_with_others, false);
    bool const lost_its_place = held.was_queued && place_is_new;
    if (!std::exchange(held.was_queued, true)) {
        hub_.changed();
        tell(trace_what::queued, held);
    }
    if (!held.hold_hook::is_linked()) queue_.push_back(held);
    if (lost_its_place && !with_others) look_again_all();  // so may the others have
    if (&queue_.front() == &held) look_in_time(held);
    hear();
}

void room::hear() noexcept {
    if (!owner_->is_cluster() || std::exchange(listening_, true)) return;
    owner_->way()->listening().add(redis::channel_kind::shard, channel() + hub_.client_id(), *this);
}

void room::no_longer_queued(hold& held) noexcept {
    if (!held.hold_hook::is_linked()) return;
    bool const was_first = &queue_.front() == &held;
    queue_.erase(queue_.iterator_to(held));
    if (!queue_.empty() && was_first) return look_in_time(queue_.front());
    bool const unseen = queue_.empty() && look_by_ != waiter::clock::time_point::max();
    if (unseen && watching_ == nullptr && !hub_.is_closing()) gave(held.what());
}

// The first of the queue looks for all: for the end of what is in the way, and whether what was handed on has arrived.
void room::look_in_time(hold& first) noexcept {
    if (first.now() == hold::state::waiting) hub_.schedule(first, std::min(first.agenda_time(), look_by_));
}

void room::look_again_all() noexcept {
    for (auto& one : queue_) {
        if (one.now() != hold::state::waiting) continue;
        one.looks_with_others = true;
        ask_again(one);
    }
}

void room::ask_again(hold& held) noexcept {
    if (owner_->home().now() >= look_by_) look_by_ = waiter::clock::time_point::max();
    held.ask(budget_of(held), held.wanted_by == nullptr ? std::string_view{} : held.wanted_by->how().token);
}

void room::failed(hold& held, errc reason, std::string_view why) noexcept {
    bool const passing = reason == errc::timeout || reason == errc::unavailable || reason == errc::indeterminate;
    auto const now = owner_->home().now();
    auto const patience = owner_->deadline({}) - now;
    auto const has_patience = [&](waiter const& who) {
        return passing && now - std::max(who.since(), last_contact_) < patience;
    };
    auto const outcome = passing ? errc::unavailable : reason;
    auto const kept = held.what();
    auto const tell = [&](waiter& who) { who.fail(outcome, explain(*kept, outcome, why)); };
    if (auto* const who = held.wanted_by) {
        if (has_patience(*who)) return held.ask_later();
        who->own = nullptr;
        tell(*who);
    } else if (asker_ == &held) {
        for (auto at = waiting_.begin(); at != waiting_.end();) {
            auto& one = *at++;
            if (!has_patience(one)) tell(one);
        }
        if (!waiting_.empty()) return held.ask_later();
        asker_ = nullptr;
    }
    held.give_up();
}

// ---- what leases do

bool room::may_pass(hold const& held) const noexcept {
    if (waiting_.empty()) return false;
    auto const& how = held.what()->how;
    auto const& next = waiting_.front().what().how;
    return how.renew && held.passes < how.cohort_passes && held.fence < held.last_fence &&
           owner_->home().now() - held.granted_at < how.cohort_time && same_terms(how, next) && held.left() > how.ttl / 2;
}

void room::released(hold& held) noexcept {
    held.end_tenancy(hold::ending::released);
    count_end(held, trace_what::released);
    if (tenant_ != &held) return held.give_back();
    if (may_pass(held)) {
        ++held.passes;
        ++held.fence;
        if (held.heard_by != nullptr) held.settle_caller(nullptr);
        return give(held, waiting_.front());
    }
    tenant_ = nullptr;
    held.give_back();
    if (!waiting_.empty()) ask_for_all();
}

void room::lost(hold& held) noexcept {
    held.give_back_when_over();
    if (tenant_ != &held) return;
    tenant_ = nullptr;
    if (!waiting_.empty() && !hub_.is_closing()) ask_for_all();
}

void room::detached(hold& held) noexcept {
    count_end(held, trace_what::released, "detached");
    if (tenant_ != &held) return;
    tenant_ = nullptr;
    if (!waiting_.empty()) ask_for_all();
}

bool room::watch(hold& held, answer const& said) noexcept {
    // Of a lock: whoever of ours waits looks by itself, and there is one offer at a time.
    bool const ours = said.offered_to.starts_with(hub_.client_id());
    if (hub_.is_closing() || (!kind_.is_pool && (ours || asker_ != nullptr))) return false;
    // Later than an earlier look would be: the call that handed this on has seen what had not arrived until then.
    look_by_ = owner_->home().now() + held.what()->how.claim_window + milliseconds{10};
    if (!queue_.empty()) {
        look_in_time(queue_.front());
        return false;
    }
    stop_watching();
    watching_ = &held;
    return true;
}

// One look for a burst: it takes the place of the one before, since the call that put more in has looked itself.
void room::gave(std::shared_ptr<target const> what) noexcept { hub_.new_hold(std::move(what)).watch(); }

void room::stop_watching() noexcept {
    if (auto* const watcher = std::exchange(watching_, nullptr)) watcher->owe_or_finish();
}

void room::no_longer_watched(hold& held) noexcept {
    if (watching_ != &held) return;
    watching_ = nullptr;
    look_by_ = waiter::clock::time_point::max();
}

// ---- for people

counts& room::count() { return hub_.counting().open(tally_, kind_, name_); }

// With the time of the turn: nothing is asked of a clock or a server for this.
void room::count_grant(hold& held, waiter& who) noexcept {
    auto const now = owner_->home().now();
    held.tenant_since = now;
    held.trace = std::move(who.trace);
    hub_.changed();
    if (hub_.is_monitored() && held.what()->how.report) {
        auto& sum = count();
        ++sum.acquisitions;
        // Queued here or there: before its hold was asked for, behind another, or at the server.
        if (held.was_queued || held.passes != 0 || who.since() < held.asked_at) ++sum.waits;
        sum.waited.add(now - who.since());
    }
    tell(trace_what::acquired, held, {}, now - who.since());
}

void room::count_end(hold& held, trace_what how, std::string_view why) noexcept {
    hub_.changed();
    if (hub_.is_monitored() && held.what()->how.report) count().held.add(owner_->home().now() - held.tenant_since);
    tell(how, held, why);
}

void room::count_loss(hold& held, std::string_view why) noexcept {
    if (hub_.is_closing()) return count_end(held, trace_what::released, why);
    if (hub_.is_monitored() && held.what()->how.report) ++count().losses;
    count_end(held, trace_what::lost, why);
}

void room::gave_up(waiter const& who, trace_what how) noexcept {
    hub_.changed();
    if (hub_.is_monitored() && how == trace_what::timed_out && who.what().how.report) ++count().timeouts;
    tell_waiting(how, who);
}

void room::tell(trace_what what, hold const& held, std::string_view detail, std::chrono::nanoseconds waited) noexcept {
    if (!hub_.tracing().is_on() || !held.what()->how.report) return;
    bool const has_it = what != trace_what::queued;
    hub_.tracing().tell({.what = what,
                        .kind = kind_.word,
                        .use = use_of(kind_, held.permits),
                        .name = name_,
                        .hold = held.id(),
                        .fence = has_it ? held.fence : 0,
                        .permits = held.permits,
                        .waited = std::chrono::duration_cast<std::chrono::microseconds>(waited),
                        .held = has_it ? std::chrono::duration_cast<std::chrono::microseconds>(owner_->home().now() - held.tenant_since)
                                       : std::chrono::microseconds{0},
                        .at = std::chrono::system_clock::time_point{milliseconds{server_now()}},
                        .trace = held.trace ? std::string_view{*held.trace} : std::string_view{},
                        .detail = detail});
}

void room::tell_signal(std::string_view detail) noexcept {
    if (!hub_.tracing().is_on()) return;
    hub_.tracing().tell({.what = trace_what::signalled,
                         .kind = kind_.word,
                         .name = name_,
                         .at = std::chrono::system_clock::time_point{milliseconds{server_now()}},
                         .detail = detail});
}

void room::tell_waiting(trace_what what, waiter const& who) noexcept {
    if (!hub_.tracing().is_on() || !who.what().how.report) return;
    auto const amount = who.what().amount;
    hub_.tracing().tell({.what = what,
                        .kind = kind_.word,
                        .use = use_of(kind_, amount),
                        .name = name_,
                        .permits = amount,
                        .waited = std::chrono::duration_cast<std::chrono::microseconds>(owner_->home().now() - who.since()),
                        .at = std::chrono::system_clock::time_point{milliseconds{server_now()}},
                        .trace = who.trace ? std::string_view{*who.trace} : std::string_view{}});
}

// ---- pushes in a Cluster

void room::message(std::string_view, std::string_view payload) noexcept { hub_.pushed(payload); }

void room::refused(errc reason, std::string_view why) noexcept {
    if (reason != errc::cancelled) log(log_level::error, fmt::format("no wake-ups for '{}': {}", name_, why));
}

}  // namespace lockstep::engine
