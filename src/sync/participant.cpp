#include "sync/participant.hpp"

#include "base/random.hpp"
#include "core/core.hpp"
#include "lease/hub.hpp"
#include "scripts/all.hpp"

#include <lockstep/error.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace lockstep::detail {
namespace {

using std::chrono::milliseconds;
using namespace std::chrono_literals;

constexpr milliseconds cleaning_time = 60s;

bool is_end(engine::gate_word what) noexcept { return what == engine::gate_word::complete || what == engine::gate_word::broken; }

}  // namespace

// ---- the gate

task<engine::gate_answer> barrier_gate::ask(std::string, clock::time_point until) {
    // For all: those who are here arrived in the same generation, or in the one after, for which there is a further question.
    for (auto const& one : visitors()) {
        if (one.how().any_change) continue;
        asked_for_ = one.generation;
        auto question = call(scripts::barrier_ask, {one.how().hold, one.generation, rules()}, until);
        co_return co_await std::move(question);
    }
    co_return engine::gate_answer{};
}

bool barrier_gate::frees(engine::gate_answer const& said, engine::visitor& who) noexcept {
    if (who.how().any_change) return false;
    if (said.what == engine::gate_word::gone) return who.generation == asked_for_;
    return is_end(said.what) && who.generation == said.value;
}

void barrier_gate::forgotten(std::int64_t generation) noexcept {
    asked_for_ = generation;
    answered({.what = engine::gate_word::gone});
}

// ---- arriving

participant::participant(state of, bool dropping) : of_(std::move(of)), hold_(where().new_id()), dropping_(dropping) {}

task<participant::answer> participant::send_arrival(std::int64_t deadline_ms, clock::time_point until) {
    auto const& how = of_->what.how;
    return where().call(scripts::barrier_arrive,
                        {hold_, generation_, of_->parties, how.ttl.count(), deadline_ms, of_->completion ? 1 : 0, dropping_ ? 1 : 0,
                         of_->what.rules},
                        until);
}

bool participant::may_have_been_sent_twice() const noexcept { return where().home().connects() > connects_; }

task<participant::answer> participant::arrive(clock::time_point until) {
    auto& owner = *where().owner();
    generation_ = where().open_generation;
    deadline_ms_ = where().latest(until);
    auto const& home = where().home();
    connects_ = home.connects() + (home.is_connected() ? 0 : 1);
    stage_ = stage::arriving;
    // A little longer than the caller's time: then it is known whether it arrived.
    auto const patience = owner.deadline({});
    auto const longest = until < patience - 1s ? until + 1s : patience;
    answer said;
    try {
        auto request = send_arrival(deadline_ms_, longest);
        said = co_await std::move(request);
    } catch (error const& problem) {
        if (problem.reason() == errc::timeout) {
            throw indeterminate_error(fmt::format("whether it arrived at '{}' is not known: {}", where().name(), problem.what()));
        }
        // Refused, or never sent. Only a cancellation can come between the two.
        if (problem.reason() != errc::cancelled) stage_ = stage::outside;
        throw;
    }
    switch (said.what) {
        case word::forgotten:
            if (may_have_been_sent_twice()) {
                be_over();
                throw indeterminate_error(fmt::format("the answer of '{}' was lost, and it is too late to learn it", where().name()));
            }
            [[fallthrough]];
        case word::behind:
            where().open_generation = said.value;
            stage_ = stage::outside;
            break;
        case word::full:
            where().open_generation = said.value + 1;
            stage_ = stage::outside;
            break;
        case word::waiting:
        case word::run:
            generation_ = said.value;
            where().open_generation = said.value;
            stage_ = stage::inside;
            schedule_renewal();
            if (dropping_ && said.what == word::waiting) be_over();
            break;
        case word::complete:
        case word::broken:
            generation_ = said.value;
            where().open_generation = said.value + 1;
            be_over();
            break;
        default: stage_ = stage::outside; break;
    }
    co_return said;
}

// ---- waiting

bool participant::ended(answer const& said) {
    if (!is_end(said.what)) {
        be_over();
        throw indeterminate_error(fmt::format("how the meeting at '{}' ended is not known to the server any more", where().name()));
    }
    where().open_generation = std::max(where().open_generation, generation_ + 1);
    be_over();
    return said.what == word::complete;
}

task<bool> participant::wait_for_end(clock::time_point until, std::uint64_t changes) {
    engine::visitor here{of_->what.where, {.deadline = until, .changes = changes, .generation = generation_, .hold = hold_}};
    co_await here;
    if (auto const outcome = here.outcome()) {
        if (ended({.what = *outcome})) co_return true;
        throw broken_barrier_error(fmt::format("the meeting at '{}' is broken: a participant died or gave up", where().name()));
    }
    answer said;
    try {
        auto request = withdraw(where().owner()->deadline({}));
        said = co_await std::move(request);
    } catch (error const& problem) {
        if (problem.reason() == errc::cancelled) throw;
        throw indeterminate_error(fmt::format("how the meeting at '{}' ended is not known: {}", where().name(), problem.what()));
    }
    co_return ended(said);
}

task<participant::answer> participant::withdraw(clock::time_point until) {
    return where().call(scripts::barrier_withdraw, {hold_, generation_, of_->what.rules}, until);
}

task<participant::answer> participant::finish(bool ok) {
    answer said;
    try {
        auto request = where().call(scripts::barrier_finish, {hold_, generation_, ok ? 1 : 0, of_->what.rules}, where().owner()->deadline({}));
        said = co_await std::move(request);
    } catch (error const& problem) {
        if (problem.reason() == errc::cancelled) throw;
        throw indeterminate_error(fmt::format("how the meeting at '{}' ended is not known: {}", where().name(), problem.what()));
    }
    ended(said);
    co_return said;
}

// ---- the arrival's lease

void participant::schedule_renewal() noexcept {
    auto const& how = of_->what.how;
    if (!how.renew || stage_ != stage::inside) return;
    auto const jitter = 0.8 + 0.4 * base::random_unit();
    auto& home = where().owner()->home();
    home.arm(*this, home.now() + std::chrono::duration_cast<std::chrono::nanoseconds>(how.renew_every * jitter));
}

void participant::fire() noexcept { renew(shared_from_this()); }

root participant::renew(std::shared_ptr<participant> self) {
    auto& at = self->where();
    auto& home = at.owner()->home();
    auto const ttl = self->of_->what.how.ttl;
    try {
        auto request = at.call(scripts::barrier_renew, {self->hold_, ttl.count(), self->of_->what.rules}, home.now() + ttl);
        auto const said = co_await std::move(request);
        if (self->stage_ != stage::inside) co_return;
        if (said.what == word::renewed) {
            self->schedule_renewal();
        } else if (said.what == word::gone) {
            at.forgotten(self->generation_);
        } else {
            at.answered(said);  // it has ended; a runner hears of it when it has finished
        }
    } catch (error const& problem) {
        if (self->stage_ != stage::inside || at.home().is_closing()) co_return;
        at.failed(problem.reason(), problem.what());
        home.arm(*self, home.now() + std::max(milliseconds{20}, ttl / 20));
    }
}

void participant::be_over() noexcept {
    stage_ = stage::over;
    where().owner()->home().disarm(*this);
}

// ---- leaving nothing behind

void participant::abandon(std::optional<bool> ran) noexcept {
    auto const was = stage_;
    be_over();
    if (was == stage::inside || (was == stage::arriving && !dropping_)) clean_up(shared_from_this(), was, ran);
}

root participant::clean_up(std::shared_ptr<participant> self, stage was, std::optional<bool> ran) {
    auto& at = self->where();
    auto& home = at.home();
    auto const until = home.reactor().now() + cleaning_time;
    home.count_release(+1);
    try {
        bool arrived = was == stage::inside;
        if (!arrived) {
            // With a time that is over, it says whether the first one has arrived and does not arrive itself.
            auto question = self->send_arrival(0, until);
            auto said = co_await std::move(question);
            if (said.what == word::late && self->may_have_been_sent_twice()) {
                // The first one may still come out of a connection that broke. So this one may arrive in its place.
                question = self->send_arrival(self->deadline_ms_, until);
                said = co_await std::move(question);
            }
            arrived = said.what == word::waiting || said.what == word::run;
            self->generation_ = said.value;
        }
        if (arrived && ran) {
            auto request = self->finish(*ran);
            co_await std::move(request);
        } else if (arrived) {
            auto request = self->withdraw(until);
            co_await std::move(request);
        }
    } catch (error const&) {
        // Without a server nobody can be told. Nobody renews the arrival any more, so its generation will break.
    }
    home.count_release(-1);
}

presence::~presence() {
    if (!who_) return;
    auto const& owner = who_->where().owner();
    if (!owner->same_process()) return;
    auto const who = std::move(who_);
    auto const kept = owner;
    kept->home().in_turn([&] { who->abandon(ran); });
}

}  // namespace lockstep::detail
