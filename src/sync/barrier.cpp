#include <lockstep/barrier.hpp>

#include "core/core.hpp"
#include "lease/pause.hpp"
#include "sync/participant.hpp"

#include <lockstep/error.hpp>

#include <fmt/format.h>

#include <algorithm>

namespace lockstep {
namespace {

using detail::participant;
using detail::presence;
using engine::gate_word;
using std::chrono::milliseconds;
using clock = engine::gate::clock;
using state = std::shared_ptr<detail::barrier_state const>;

enum class result : std::uint8_t { passed, out_of_time, runs };

struct meeting {
    presence mine;
    result how;
};

/// Waits until the completion function of those who have all arrived is done.
task<bool> wait_for_the_next(state at, clock::time_point until, std::uint64_t changes, milliseconds look_again) {
    auto const& where = at->what.where;
    auto const look_at = where->owner()->home().now() + look_again + milliseconds{10};
    engine::visitor here{where, {.deadline = std::min(until, look_at), .changes = changes, .any_change = true}};
    co_await here;
    co_return here.outcome().has_value() || clock::now() < until;
}

/// Arrives, and waits for the end of the generation, or until it has to run the completion function.
task<meeting> meet(state at, clock::time_point until, bool dropping) {
    engine::pause turn{at->what.where->owner(), milliseconds{0}};
    co_await turn;
    presence mine{std::make_shared<participant>(at, dropping)};
    auto& where = mine->where();
    where.listen();
    while (true) {
        auto const changes = where.changes();
        auto arriving = mine->arrive(until);
        auto const said = co_await std::move(arriving);
        bool in_time = true;
        switch (said.what) {
            case gate_word::waiting: {
                if (dropping) co_return meeting{std::move(mine), result::passed};
                auto waiting = mine->wait_for_end(until, changes);
                bool const complete = co_await std::move(waiting);
                co_return meeting{std::move(mine), complete ? result::passed : result::out_of_time};
            }
            case gate_word::run: co_return meeting{std::move(mine), result::runs};
            case gate_word::complete: co_return meeting{std::move(mine), result::passed};
            case gate_word::broken:
                if (dropping) co_return meeting{std::move(mine), result::passed};
                throw broken_barrier_error(fmt::format("the meeting at '{}' is broken: a participant died or gave up", where.name()));
            case gate_word::full: {
                auto waiting = wait_for_the_next(at, until, changes, milliseconds{said.look_again});
                in_time = co_await std::move(waiting);
                break;
            }
            default: in_time = clock::now() < until; break;  // late, or another generation than was thought
        }
        if (!in_time) co_return meeting{std::move(mine), result::out_of_time};
    }
}

std::exception_ptr run_completion(detail::barrier_state const& at) noexcept {
    try {
        at.completion();
        return nullptr;
    } catch (...) {
        return std::current_exception();
    }
}

/// Tells the server that the completion function was run. Throws `problem`, its own exception.
task<void> finish(state at, presence mine, std::exception_ptr problem) {
    mine.ran = problem == nullptr;
    engine::pause turn{at->what.where->owner(), milliseconds{0}};
    gate_word how = gate_word::broken;
    try {
        co_await turn;
        auto finishing = mine->finish(*mine.ran);
        auto const said = co_await std::move(finishing);
        how = said.what;
    } catch (error const&) {
        if (!problem) throw;
    }
    if (problem) std::rethrow_exception(problem);
    if (how != gate_word::complete) {
        throw broken_barrier_error(fmt::format("the meeting at '{}' broke while the completion function ran", at->what.where->name()));
    }
}

bool pass(state const& at, clock::time_point until, bool dropping, std::stop_token token) {
    engine::require_blocking(*at->what.where);
    auto met = sync_wait(meet(at, until, dropping), std::move(token));
    if (met.how == result::runs) {
        auto const problem = run_completion(*at);
        sync_wait(finish(at, std::move(met.mine), problem));
    }
    return met.how != result::out_of_time;
}

task<bool> async_pass(state at, clock::time_point until, bool dropping) {
    auto meeting_all = meet(at, until, dropping);
    auto met = co_await std::move(meeting_all);
    if (met.how == result::runs) {
        auto const problem = run_completion(*at);
        auto finishing = finish(at, std::move(met.mine), problem);
        co_await std::move(finishing);
    }
    co_return met.how != result::out_of_time;
}

task<bool> begin(state const& at, clock::time_point until, bool dropping) {
    engine::require_usable(*at->what.where);
    return async_pass(at, until, dropping);
}

void require_in_time(bool passed, detail::barrier_state const& at) {
    if (passed) return;
    throw timeout_error(fmt::format("not all met at '{}' within {} ms", at.what.where->name(), at.what.how.wait_limit.count()));
}

task<void> async_pass_within_limit(state at, bool dropping) {
    auto passing = async_pass(at, dropping ? clock::time_point::max() : engine::limit_of(at->what.how), dropping);
    bool const passed = co_await std::move(passing);
    require_in_time(passed, *at);
}

}  // namespace

barrier::barrier(client& by, std::string_view name, std::int64_t parties, lease_options const& options)
    : barrier(by, name, parties, nullptr, options) {}

barrier::barrier(client& by, std::string_view name, std::int64_t parties, std::function<void()> completion, lease_options const& options) {
    if (parties < 1 || parties > 2000) {
        throw invalid_argument_error(fmt::format("barrier '{}': 1 to 2,000 can meet, not {}", name, parties));
    }
    auto what = engine::gate_target_for<detail::barrier_gate>(by, "barrier", name, options);
    state_ = std::make_shared<detail::barrier_state const>(std::move(what), parties, std::move(completion));
}

void barrier::arrive_and_wait(std::stop_token token) {
    require_in_time(pass(state_, engine::limit_of(state_->what.how), false, std::move(token)), *state_);
}
task<void> barrier::async_arrive_and_wait() {
    engine::require_usable(*state_->what.where);
    return async_pass_within_limit(state_, false);
}

bool barrier::meet_until(std::chrono::steady_clock::time_point until, std::stop_token token) {
    return pass(state_, until, false, std::move(token));
}
task<bool> barrier::async_meet_until(std::chrono::steady_clock::time_point until) { return begin(state_, until, false); }

void barrier::arrive_and_drop(std::stop_token token) { pass(state_, clock::time_point::max(), true, std::move(token)); }
task<void> barrier::async_arrive_and_drop() {
    engine::require_usable(*state_->what.where);
    return async_pass_within_limit(state_, true);
}

}  // namespace lockstep
