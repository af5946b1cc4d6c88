#include "core/session.hpp"
#include "election/election_state.hpp"
#include "lease/hold.hpp"
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
#include <utility>

// How a candidate becomes the leader: it is allowed to stand, stands in line, gets the lease, and has replicas hear of it where that is asked.

namespace lockstep::detail {
namespace {

using std::chrono::milliseconds;
using namespace std::chrono_literals;

class lease_tenure final : public tenure {
public:
    explicit lease_tenure(lease held) noexcept : lease_(std::move(held)) {}

private:
    std::uint64_t term() const noexcept override { return lease_.fence(); }
    milliseconds remaining() const noexcept override { return lease_.remaining(); }
    std::stop_token stop_token() const override { return lease_.stop_token(); }
    task<void> release() override { return lease_.async_release(); }

    lease lease_;
};

}  // namespace

/// False: its time is over.
task<bool> election_state::wait_for_permission(std::shared_ptr<election_state> self, clock::time_point until) {
    while (!self->ask_gate().stands) {
        if (until != clock::time_point::max() && clock::now() >= until) co_return false;
        engine::pause rest{self->owner_, 10ms};
        co_await rest;
    }
    co_return true;
}

/// Empty: its time is over.
task<lease> election_state::stand(std::shared_ptr<election_state> self, clock::time_point until, std::stop_token withdrawn) {
    if (until == clock::time_point::max()) {
        auto waiting = with_stop_token(engine::take(self->what_), std::move(withdrawn));
        co_return co_await std::move(waiting);
    }
    auto trying = with_stop_token(engine::try_take(self->what_, until), std::move(withdrawn));
    auto got = co_await std::move(trying);
    if (!got) co_return lease{};
    co_return std::move(*got);
}

/// What WAIT counts are writes of its own connection, so the hold is renewed on that one.
task<bool> election_state::is_replicated(std::shared_ptr<election_state> self, std::string hold) {
    auto const& how = self->options_;
    auto const& room = *self->what_->where;
    auto const slot = self->owner_->is_cluster() ? room.slot() : std::int16_t{-1};
    auto const state = std::make_shared<session_state>(self->owner_, self->owner_->make_session(slot));
    redis::command_terms const terms{.deadline = clock::now() + std::max<milliseconds>(2 * how.replica_timeout, 1s), .repeatable = false};
    auto const& script = scripts::election_renew;
    auto renewing = redis::run(state->way(), terms, "EVAL", script.text, 2, room.key(), self->what_->changes, hold, how.ttl.count(), self->what_->rules);
    auto const renewed = co_await std::move(renewing);
    if (renewed[0].text() != "renewed") co_return false;
    auto waiting = redis::run(state->way(), terms, "WAIT", how.min_replicas, how.replica_timeout.count());
    auto const heard = co_await std::move(waiting);
    co_return heard.integer() >= static_cast<std::int64_t>(how.min_replicas);
}

std::shared_ptr<seat> election_state::sit(lease held, std::string const& hold) {
    auto made = std::make_shared<seat>(seat::place{owner_, name_, id_, options_.renew_deadline}, std::make_unique<lease_tenure>(std::move(held)));
    {
        std::lock_guard const guard{mutex_};
        current_ = made;
    }
    log(log_level::info, fmt::format("{} leads '{}' (term {})", id_, name_, made->term()));
    // Nobody waits for this. Should it fail, the next renewal takes along what is not written yet.
    start(script(scripts::election_announce, hold), [](std::exception_ptr, std::optional<reply>) {});
    return made;
}

task<std::shared_ptr<seat>> election_state::campaign(std::shared_ptr<election_state> self, clock::time_point until) {
    while (true) {
        auto gate = wait_for_permission(self, until);
        if (!co_await std::move(gate)) co_return nullptr;
        auto const allowed = self->ask_gate();
        if (!allowed.stands) continue;
        lease held;
        try {
            auto standing = stand(self, until, allowed.withdrawn);
            held = co_await std::move(standing);
        } catch (cancelled_error const&) {
            if (!allowed.withdrawn.stop_requested()) throw;
        }
        if (allowed.withdrawn.stop_requested()) continue;  // unhealthy meanwhile: what it may have got is given back
        if (!held) co_return nullptr;
        std::string const hold{engine::hold::of(held)->id()};
        if (self->options_.min_replicas == 0) co_return self->sit(std::move(held), hold);
        std::string why = "too few replicas heard of it in time";
        bool safe = false;
        try {
            auto asking = is_replicated(self, hold);
            safe = co_await std::move(asking);
        } catch (error const& problem) {
            if (!is_passing(problem)) throw;
            why = problem.what();
        }
        if (safe && held.valid()) co_return self->sit(std::move(held), hold);
        log(log_level::warning, fmt::format("{} was elected in '{}' and does not lead, since {} of {} replicas must hear of it: {}", self->id_,
                                            self->name_, self->options_.min_replicas, self->options_.min_replicas, why));
        held = lease{};
        if (until != clock::time_point::max() && clock::now() + self->options_.retry_period >= until) co_return nullptr;
        engine::pause rest{self->owner_, self->options_.retry_period};
        co_await rest;
    }
}

}  // namespace lockstep::detail
