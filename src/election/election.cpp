#include <lockstep/election.hpp>

#include "election/election_state.hpp"
#include "election/quorum_venue.hpp"
#include "lease/pause.hpp"

#include <lockstep/error.hpp>
#include <lockstep/log.hpp>

#include <fmt/format.h>

#include <exception>
#include <utility>

namespace lockstep {
namespace {

using detail::election_state;
using detail::seat;
using clock = election_state::clock;

void note_failure(election_state const& of, error const& problem) {
    log(log_level::warning, fmt::format("{} can't stand in '{}' for the moment, and tries again: {}", of.id(), of.name(), problem.what()));
}

/// It is given back all the same when its time is over.
void note_silence(election_state const& of, error const& problem) {
    log(log_level::warning, fmt::format("whether {} resigned in '{}' is not known: {}", of.id(), of.name(), problem.what()));
}

task<leadership> as_leadership(task<std::shared_ptr<seat>> work) {
    auto got = co_await std::move(work);
    co_return seat::make_leadership(std::move(got));
}

task<std::optional<leadership>> as_optional(task<std::shared_ptr<seat>> work) {
    auto got = co_await std::move(work);
    if (!got) co_return std::nullopt;
    co_return std::optional<leadership>{seat::make_leadership(std::move(got))};
}

/// The work found out that it leads no more: that is an end like others.
bool is_farewell(seat const& which, std::exception_ptr const& problem) {
    if (!problem || which.remaining() > std::chrono::milliseconds::zero()) return false;
    try {
        std::rethrow_exception(problem);
    } catch (leadership_lost_error const&) {
        return true;
    } catch (...) {
        return false;
    }
}

/// The work has ended. True: it was lost before.
bool is_over(election_state const& of, seat const& which) {
    if (!which.is_lost()) return false;
    log(log_level::warning, fmt::format("{} lost the leadership of '{}' (term {})", of.id(), of.name(), which.term()));
    return true;
}

/// Null: to be tried again.
task<std::shared_ptr<seat>> campaign_or_rest(std::shared_ptr<election_state> self) {
    try {
        auto standing = election_state::campaign(self, clock::time_point::max());
        co_return co_await std::move(standing);
    } catch (error const& problem) {
        if (!detail::is_passing(problem)) throw;
        note_failure(*self, problem);
    }
    engine::pause rest{self->owner(), self->retry_period()};
    co_await rest;
    co_return nullptr;
}

/// What the work threw; null: nothing, or it was cancelled because it leads no more.
task<std::exception_ptr> lead(std::function<task<void>(leadership const&)> const& on_elected, leadership const& leads, std::stop_token token) {
    std::exception_ptr problem;
    try {
        auto work = with_stop_token(on_elected(leads), token);
        co_await std::move(work);
    } catch (cancelled_error const&) {
        if (!token.stop_requested()) problem = std::current_exception();
    } catch (...) {
        problem = std::current_exception();
    }
    co_return problem;
}

/// Resigns when the work is over. True: it leads no more, and did not end that itself.
task<bool> end_term(std::shared_ptr<election_state> self, std::shared_ptr<seat> mine) {
    if (is_over(*self, *mine)) co_return true;
    try {
        auto resigning = seat::resign(mine);
        co_await std::move(resigning);
    } catch (leadership_lost_error const&) {
        co_return is_over(*self, *mine);
    } catch (error const& problem) {
        if (!detail::is_passing(problem)) throw;
        note_silence(*self, problem);
    }
    co_return false;
}

/// On the thread of whoever runs it, since on_lost is the user's. Throws what the work threw.
void conclude(std::shared_ptr<seat> const& mine, bool lost, std::function<void(leadership const&)> const& on_lost, std::exception_ptr const& problem) {
    if (lost && on_lost) on_lost(seat::make_leadership(mine));
    if (problem) std::rethrow_exception(problem);
}

task<void> run_in_coroutine(std::shared_ptr<election_state> self, std::function<task<void>(leadership const&)> on_elected,
                            std::function<void(leadership const&)> on_lost) {
    while (true) {
        auto standing = campaign_or_rest(self);
        auto const mine = co_await std::move(standing);
        if (!mine) continue;
        auto const leads = seat::make_leadership(mine);
        auto leading = lead(on_elected, leads, mine->stop_token());
        auto problem = co_await std::move(leading);
        if (is_farewell(*mine, problem)) problem = nullptr;
        auto ending = end_term(self, mine);
        bool const lost = co_await std::move(ending);
        conclude(mine, lost, on_lost, problem);
    }
}

}  // namespace

election::election(client& by, std::string_view name, election_options const& given) {
    auto const& core = detail::core_access::of(by);
    core->require_same_process();
    auto const options = detail::checked_options(name, given);
    if (options.require_quorum) {
        throw invalid_argument_error(fmt::format("election '{}': require_quorum needs at least {} independent nodes (minimum_nodes), and one client is "
                                                 "one node; make it with redlock_nodes",
                                                 name, options.minimum_nodes));
    }
    auto id = detail::candidate_id(name, options.id);
    auto where = detail::make_server_venue(core, std::string{name}, id, options);
    begin(std::make_shared<election_state>(std::move(where), name, std::move(id), options), options);
}

election::election(redlock_nodes const& nodes, std::string_view name, election_options const& given) {
    auto const options = detail::checked_options(name, given);
    auto id = detail::candidate_id(name, options.id);
    auto where = detail::make_quorum_venue(nodes, nodes.nodes_, std::string{name}, id, options);
    begin(std::make_shared<election_state>(std::move(where), name, std::move(id), options), options);
}

void election::begin(std::shared_ptr<election_state> state, election_options const& options) {
    state_ = std::move(state);
    if (options.healthy) gate_ = std::make_unique<detail::health_gate>(options.healthy, options.health_interval, options.health_timeout, state_->health());
    state_->supervise();
}
election::election(election&&) noexcept = default;
election& election::operator=(election&&) noexcept = default;
election::~election() = default;

std::string const& election::id() const noexcept { return state_->id(); }
std::string const& election::name() const noexcept { return state_->name(); }

leadership election::campaign(std::stop_token token) {
    state_->where().require_blocking();
    return sync_wait(async_campaign(), std::move(token));
}

task<leadership> election::async_campaign() {
    state_->owner()->require_same_process();
    return as_leadership(election_state::campaign(state_, clock::time_point::max()));
}

std::optional<leadership> election::try_until(clock::time_point until, std::stop_token token) {
    state_->where().require_blocking();
    return sync_wait(async_try_until(until), std::move(token));
}

task<std::optional<leadership>> election::async_try_until(clock::time_point until) {
    state_->owner()->require_same_process();
    return as_optional(election_state::campaign(state_, until));
}

void election::resign() noexcept {
    if (auto const leads = state_->current()) leads->step_down("it was asked to resign");
}

std::optional<leader_info> election::leader() const {
    state_->where().require_blocking();
    return sync_wait(async_leader());
}

task<std::optional<leader_info>> election::async_leader() const {
    state_->owner()->require_same_process();
    return state_->where().leader();
}

observation election::observe(std::function<void(leader_change const&)> handler, observe_options const& options) const {
    state_->where().require_blocking();
    return sync_wait(async_observe(std::move(handler), options));
}

task<observation> election::async_observe(std::function<void(leader_change const&)> handler, observe_options const& options) const {
    state_->owner()->require_same_process();
    return state_->where().observe(std::move(handler), std::string{options.after});
}

task<void> election::async_run(std::function<task<void>(leadership const&)> on_elected, std::function<void(leadership const&)> on_lost) {
    state_->owner()->require_same_process();
    if (!on_elected) throw invalid_argument_error(fmt::format("election '{}': run has nothing to do when it leads (on_elected is empty)", name()));
    return run_in_coroutine(state_, std::move(on_elected), std::move(on_lost));
}

void election::run(std::function<void(leadership const&)> on_elected, std::function<void(leadership const&)> on_lost, std::stop_token stop) {
    if (!on_elected) throw invalid_argument_error(fmt::format("election '{}': run has nothing to do when it leads (on_elected is empty)", name()));
    auto const self = state_;
    self->where().require_blocking();
    while (!stop.stop_requested()) {
        std::shared_ptr<seat> mine;
        try {
            mine = sync_wait(campaign_or_rest(self), stop);
        } catch (cancelled_error const&) {
            if (stop.stop_requested()) return;
            throw;
        }
        if (!mine) continue;
        auto const leads = seat::make_leadership(mine);
        std::exception_ptr problem;
        try {
            std::stop_callback const ends{stop, [&mine] { mine->step_down("the program stops it"); }};
            on_elected(leads);
        } catch (...) {
            problem = std::current_exception();
        }
        if (is_farewell(*mine, problem)) problem = nullptr;
        conclude(mine, sync_wait(end_term(self, mine)), on_lost, problem);
    }
}

}  // namespace lockstep
