#include "base/names.hpp"
#include "base/stored_time.hpp"
#include "core/session.hpp"
#include "election/observation.hpp"
#include "election/venue.hpp"
#include "election/who.hpp"
#include "lease/hold.hpp"
#include "lease/hub.hpp"
#include "lease/kind.hpp"
#include "lease/pause.hpp"
#include "lease/room.hpp"
#include "lease/take.hpp"
#include "redis/command.hpp"
#include "scripts/all.hpp"

#include <lockstep/error.hpp>
#include <lockstep/lease.hpp>
#include <lockstep/log.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <utility>

// An election at one server: a lease of its own kind (lease/kind.hpp), whose scripts keep who leads and every change.

namespace lockstep::detail {
namespace {

using std::chrono::milliseconds;
using namespace std::chrono_literals;

class server_venue;

class lease_tenure final : public tenure {
public:
    using clock = venue::clock;

    lease_tenure(std::shared_ptr<server_venue const> where, lease held)
        : where_(std::move(where)), lease_(std::move(held)), hold_(engine::hold::of(lease_)->id()) {}
    /// Its id at the server.
    std::string const& hold() const noexcept { return hold_; }
    bool is_valid() const noexcept { return lease_.valid(); }
    /// From then on replicas have it.
    void heard(clock::time_point when) noexcept { heard_ = when; }

private:
    std::uint64_t term() const noexcept override { return lease_.fence(); }
    milliseconds remaining() const noexcept override { return lease_.remaining(); }
    std::stop_token stop_token() const override { return lease_.stop_token(); }
    announcement announce() const override;
    task<void> release() override { return lease_.async_release(); }

    std::shared_ptr<server_venue const> where_;
    lease lease_;
    std::string hold_;
    clock::time_point heard_{};
};

/// Its options are checked_options(), where no time is left out.
engine::target make_target(std::shared_ptr<core> const& owner, engine::kind const& kind, std::string const& name, std::string const& id,
                           election_options const& how) {
    lease_options const terms{.ttl = how.ttl.value(),
                              .renew = true,
                              .renew_every = 0ms,
                              .max_hold = 0ms,
                              .wait_limit = 0ms,
                              .attempts = 0U,
                              .cohort_passes = 0U,
                              .claim_window = how.claim_window,
                              .retention = how.retention,
                              .max_waiters = 1'000U};  // as many as election_state.lua looks at
    auto made = engine::hub::of(*owner).target_for(owner, kind, name, terms);
    made.how.renew_every = how.retry_period.value();
    made.how.trust_for = how.renew_deadline.value();
    made.changes = base::key_name(owner->options().prefix, name, kind.word == "election" ? "changes" : fmt::format("{}:changes", kind.word));
    made.who = describe_candidate(id);
    made.priority = how.priority;
    return made;
}

class server_venue final : public venue, public std::enable_shared_from_this<server_venue> {
public:
    server_venue(std::shared_ptr<core> owner, engine::kind const& kind, std::string const& name, std::string const& id, election_options const& how)
        : owner_(std::move(owner)), what_(std::make_shared<engine::target const>(make_target(owner_, kind, name, id, how))), id_(id),
          replicas_(how.min_replicas), replica_timeout_(how.replica_timeout.value()), pause_(how.retry_period.value()) {}

    std::shared_ptr<core> const& owner() const noexcept override { return owner_; }
    void require_blocking() const override { owner_->require_blocking_is_allowed(); }

    task<std::unique_ptr<tenure>> stand(clock::time_point until) override { return stand_for(shared_from_this(), until); }
    task<std::optional<leader_info>> leader() override { return read_leader(shared_from_this()); }
    task<int> highest_in_line() override { return read_highest(shared_from_this()); }
    task<observation> observe(std::function<void(leader_change const&)> handler, std::string after) override {
        return begin_observation(owner_, what_->changes, std::move(handler), std::move(after));
    }

    void announce(std::shared_ptr<seat> const& leads, std::string const& hold, clock::time_point heard) const {
        if (replicas_ > 0) {
            auto const until = std::make_shared<clock::time_point>(heard + trusted());
            start(step_down_in_time(shared_from_this(), leads, until), [](std::exception_ptr) {});
            start(stay_replicated(shared_from_this(), leads, hold, until), [](std::exception_ptr) {});
        }
        // Should it fail, the next renewal takes along what is not written yet.
        start(ask(scripts::election_announce, hold, what_->rules), [](std::exception_ptr, std::optional<reply>) {});
    }

private:
    using self = std::shared_ptr<server_venue const>;

    template <class... Words>
    task<reply> ask(scripts::script const& script, Words const&... words) const {
        auto const& room = *what_->where;
        std::string_view const keys[] = {room.key(), what_->changes};
        argument const list[] = {argument{words}...};
        redis::command_terms const terms{.deadline = owner_->deadline({}), .slot = room.slot(), .repeatable = true};
        return redis::run_script(owner_->way(), script, std::span{keys}.first(script.keys), list, terms);
    }

    /// How long a renewal is trusted: as the lease itself.
    milliseconds trusted() const noexcept { return std::min(what_->how.trust_for, what_->how.ttl - what_->how.ttl / 10); }
    /// The end of the rules.
    std::string_view channel() const { return std::string_view{what_->rules}.substr(what_->rules.rfind(' ') + 1); }

    static task<std::optional<leader_info>> read_leader(self of) {
        auto asking = of->ask(scripts::election_read, "");
        auto const said = co_await std::move(asking);
        if (said.size() < 8) co_return std::nullopt;
        leader_info found;
        found.candidates = static_cast<std::size_t>(said[1].integer());
        found.term = said[4].as<std::uint64_t>();
        found.since = base::time_of_ms(said[5].integer());
        found.remaining = milliseconds{said[6].integer()};
        read_who(said[7].text(), found.pid, found.host, found.id);
        co_return std::optional<leader_info>{std::move(found)};
    }

    static task<int> read_highest(self of) {
        auto asking = of->ask(scripts::election_read, "1", of->channel());
        auto const said = co_await std::move(asking);
        co_return static_cast<int>(said[2].integer());
    }

    /// Empty: its time is over.
    static task<lease> stand_in_line(self of, clock::time_point until) {
        if (until == clock::time_point::max()) {
            auto waiting = engine::take(of->what_);
            co_return co_await std::move(waiting);
        }
        auto trying = engine::try_take(of->what_, until);
        auto got = co_await std::move(trying);
        if (!got) co_return lease{};
        co_return std::move(*got);
    }

    /// What WAIT counts are writes of its own connection, so the hold is renewed on that one. Not beyond that time.
    static task<bool> is_replicated(self of, std::string hold, clock::time_point until) {
        auto const& room = *of->what_->where;
        auto const slot = of->owner_->is_cluster() ? room.slot() : std::int16_t{-1};
        auto const state = std::make_shared<session_state>(of->owner_, of->owner_->make_session(slot));
        auto const begin = clock::now();
        redis::command_terms const terms{.deadline = std::min(until, begin + std::max<milliseconds>(2 * of->replica_timeout_, 1s))};
        auto const latest = room.server_now() + std::chrono::floor<milliseconds>(terms.deadline - begin).count();
        auto const& script = scripts::election_renew;
        reply renewed;
        do {  // again when a renewal by the lease itself overtook it: that one was not written on this connection
            auto* const seat = room.home().find_hold(hold);
            if (seat == nullptr) co_return false;
            auto renewing = redis::run(state->way(), terms, "EVAL", script.text, 2, room.key(), of->what_->changes, hold, of->what_->how.ttl.count(),
                                       of->what_->rules, seat->next_set_number(), latest);
            renewed = co_await std::move(renewing);
        } while (renewed[0].text() == "older");
        if (renewed[0].text() != "renewed") co_return false;
        auto const left = std::chrono::floor<milliseconds>(until - clock::now());
        if (left < 1ms) co_return false;  // WAIT 0 is for ever
        auto waiting = redis::run(state->way(), terms, "WAIT", of->replicas_, std::min(of->replica_timeout_, left).count());
        auto const heard = co_await std::move(waiting);
        co_return heard.integer() >= static_cast<std::int64_t>(of->replicas_);
    }

    /// Why it must not lead; empty: it may.
    static task<std::string> objection(self of, std::string hold, clock::time_point until) {
        if (of->replicas_ == 0) co_return std::string{};
        std::string why = "they did not hear of it in time";
        try {
            auto asking = is_replicated(of, std::move(hold), until);
            if (co_await std::move(asking)) why.clear();
        } catch (error const& problem) {
            if (!is_passing(problem)) throw;
            why = problem.what();
        }
        co_return why;
    }

    /// Asks the replicas again and again. What they have heard counts from before they were asked.
    static task<void> stay_replicated(self of, std::weak_ptr<seat> which, std::string hold, std::shared_ptr<clock::time_point> until) {
        while (true) {
            engine::pause rest{of->owner_, of->pause_};
            co_await rest;
            if (auto const leads = which.lock(); !leads || leads->remaining() == 0ms) co_return;
            auto const asked = clock::now();
            auto looking = objection(of, hold, *until);
            auto const why = co_await std::move(looking);
            if (why.empty()) *until = asked + of->trusted();
        }
    }

    /// When they have not heard of it for too long: somebody else may lead where the others are. Whatever is being asked meanwhile.
    static task<void> step_down_in_time(self of, std::weak_ptr<seat> which, std::shared_ptr<clock::time_point> until) {
        while (true) {
            engine::pause rest{of->owner_, std::chrono::ceil<milliseconds>(std::max(*until - clock::now(), clock::duration::zero()))};
            co_await rest;
            auto const leads = which.lock();
            if (!leads || leads->remaining() == 0ms) co_return;
            if (clock::now() < *until) continue;
            leads->step_down(fmt::format("fewer than {} replicas have heard of it for {} ms (renew_deadline)", of->replicas_, of->trusted().count()));
            co_return;
        }
    }

    static task<std::unique_ptr<tenure>> stand_for(self of, clock::time_point until) {
        while (true) {
            auto standing = stand_in_line(of, until);
            auto held = co_await std::move(standing);
            if (!held) co_return nullptr;
            auto made = std::make_unique<lease_tenure>(of, std::move(held));
            auto const asked = clock::now();
            auto looking = objection(of, made->hold(), asked + of->trusted());
            auto why = co_await std::move(looking);
            if (why.empty() && made->is_valid()) {
                made->heard(asked);
                co_return made;
            }
            if (why.empty()) why = "it was lost meanwhile";
            log(log_level::warning, fmt::format("{} was elected in '{}' and does not lead, because {} replicas must hear of it first: {}", of->id_,
                                                of->what_->where->name(), of->replicas_, why));
            made.reset();
            if (until != clock::time_point::max() && clock::now() + of->pause_ >= until) co_return nullptr;
            engine::pause rest{of->owner_, of->pause_};
            co_await rest;
        }
    }

    std::shared_ptr<core> owner_;
    std::shared_ptr<engine::target const> what_;
    std::string id_;
    unsigned replicas_;
    milliseconds replica_timeout_;
    milliseconds pause_;
};

tenure::announcement lease_tenure::announce() const {
    return [where = where_, hold = hold_, heard = heard_](std::shared_ptr<seat> const& leads) { where->announce(leads, hold, heard); };
}

}  // namespace

std::shared_ptr<venue> make_server_venue(std::shared_ptr<core> owner, std::string const& name, std::string const& id, election_options const& how) {
    return make_server_venue(std::move(owner), engine::election_kind, name, id, how);
}
std::shared_ptr<venue> make_server_venue(std::shared_ptr<core> owner, engine::kind const& kind, std::string const& name, std::string const& id,
                                         election_options const& how) {
    return std::make_shared<server_venue>(std::move(owner), kind, name, id, how);
}

}  // namespace lockstep::detail
