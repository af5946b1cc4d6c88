// The loops of a crew: how jobs are taken and run.
#include "jobs/job_crew.hpp"

#include "lease/pause.hpp"

#include <lockstep/error.hpp>

#include <algorithm>
#include <condition_variable>
#include <utility>

namespace lockstep::detail {
namespace {

using namespace std::chrono_literals;
using std::chrono::milliseconds;
using clock = std::chrono::steady_clock;

constexpr milliseconds rest_after_failure = 1s;  // when nothing could be taken
constexpr milliseconds longest_rest = std::chrono::hours{1};

// Of quick handlers several jobs are taken at once, so that a round trip is not needed for each.
constexpr std::chrono::microseconds quick = 200us;
constexpr std::size_t taken_of_quick = 200;  // by all loops together
constexpr std::size_t taken_by_one = 16;
constexpr milliseconds longest_in_hand = 5ms;  // then they are others'

constexpr int successes_without_doubt = 4;  // after these in a row its throttle knows of no failure any more

}  // namespace

// ---- what a loop has in hand

void job_crew::branch::learn(clock::duration took) noexcept {
    auto const before = typical.load(std::memory_order_relaxed);
    typical.store(before + (took - before) / 8, std::memory_order_relaxed);
}

std::size_t job_crew::at_once(branch const& of) const noexcept {
    auto const typical = of.typical.load(std::memory_order_relaxed);
    if (!is_plain(of) || of.is_slow() || typical > quick) return 1;
    auto const in_time = static_cast<std::size_t>(longest_in_hand / std::max<clock::duration>(typical, 1us));  // if one after the other is run
    return std::clamp<std::size_t>(std::min(taken_of_quick, in_time) / of.concurrency, 1, taken_by_one);
}

bool job_crew::is_plain(branch const& of) const noexcept { return !is_shared_ && of.limit == nullptr && of.breaker == nullptr; }

bool job_crew::branch::is_slow() const noexcept { return doubts > 0 && throttle.is_slow(clock::now()); }
bool job_crew::branch::may_have_to_wait() const noexcept { return doubts > 0 || is_limited || clock::now() < rests_until; }

void job_crew::branch::note_success() noexcept {
    auto before = doubts.load();
    if (before == 0) return;
    bool const was_slow = is_slow();
    throttle.succeeded(clock::now());
    doubts.compare_exchange_strong(before, before - 1);  // unless another one has just failed
    if (was_slow) changed.ring();
}
void job_crew::branch::note_failure() noexcept {
    throttle.failed(clock::now());
    doubts = successes_without_doubt;
}

void job_crew::give_back(branch& of, hand& what) noexcept {
    for (auto const& one : std::exchange(what.jobs, {})) {
        decide({.of = one->item, .what = verdict::kind::unused}, {});
        forget(of, *one);
    }
}

/// One job may take long, though its likes did not: those behind it are not to wait for it.
task<void> job_crew::watch(std::shared_ptr<job_crew> self, branch& of, std::shared_ptr<hand> what) {
    try {
        while (!what->jobs.empty()) {
            auto const left = what->since + longest_in_hand - self->office_->owner()->home().now();
            if (left <= 0ms) {
                self->give_back(of, *what);
                break;
            }
            engine::pause rest{self->office_->owner(), std::chrono::ceil<milliseconds>(left)};
            co_await rest;
        }
    } catch (error const&) {  // the client is closed
    }
    what->is_watched = false;
}

// ---- a job

/// Where it goes on after something else has been awaited.
task<void> job_crew::come_home(std::shared_ptr<job_crew> self) {
    auto const& owner = self->office_->owner();
    if (owner->home().here()) co_return;
    engine::pause turn{owner, 0ms};
    co_await turn;
}

task<job_crew::running> job_crew::next(std::shared_ptr<job_crew> self, branch& of, std::shared_ptr<hand> mine) {
    auto const owner = of.queue->owner();
    if (!owner->home().here()) {
        engine::pause turn{owner, 0ms};
        co_await turn;
    }
    while (self->pausing_ && !self->stopping_) {
        auto waiting = doorbell::wait(owner, self->free_, longest_rest);
        co_await std::move(waiting);
        if (!self->pausing_ || self->stopping_) self->free_.ring();  // the others, too
        engine::pause turn{owner, 0ms};
        co_await turn;
    }
    if (of.is_slow()) self->give_back(of, *mine);
    bool has_leave = false;
    if (mine->jobs.empty() && of.may_have_to_wait()) {
        auto waiting = wait_for_leave(self, of);
        has_leave = co_await std::move(waiting);
    }
    if (self->stopping_) co_return running{};
    ++of.active;
    running one;
    std::exception_ptr problem;
    if (!mine->jobs.empty() && self->is_plain(of)) {
        one = std::exchange(mine->jobs.front(), nullptr);  // of quick handlers: without another coroutine
        mine->jobs.pop_front();
        if (self->begin_turn(of, one)) co_return one;
        --of.active;
        co_return running{};
    }
    try {
        auto choosing = choose(self, of, mine, has_leave);
        one = co_await std::move(choosing);
    } catch (...) {
        problem = std::current_exception();
    }
    if (one) co_return one;
    --of.active;
    of.changed.ring();
    if (problem) std::rethrow_exception(problem);
    co_return running{};
}

task<void> job_crew::take(std::shared_ptr<job_crew> self, branch& of, std::shared_ptr<hand> mine, bool is_once) {
    auto const owner = of.queue->owner();
    taker taking{of.queue, is_once ? raw_queue::until::min() : raw_queue::until::max(), &self->pausing_};
    taking.most = self->at_once(of);
    co_await taking;
    if (!taking.got) co_return;
    try {
        if (auto first = self->begin(of, std::exchange(taking.got, nullptr))) mine->jobs.push_back(std::move(first));
        for (auto& more : taking.more) {
            if (auto another = self->begin(of, std::exchange(more, nullptr))) mine->jobs.push_back(std::move(another));
        }
    } catch (...) {
        self->give_back(of, *mine);
        throw;
    }
    for (auto const& one : mine->jobs) one->item->is_unseen = true;
    mine->since = owner->home().now();
    if (mine->jobs.size() > 1 && !std::exchange(mine->is_watched, true)) start(watch(self, of, mine), [](std::exception_ptr) {});
}

task<job_crew::running> job_crew::choose(std::shared_ptr<job_crew> self, branch& of, std::shared_ptr<hand> mine, bool has_leave) {
    auto const owner = of.queue->owner();
    if (mine->jobs.empty()) {
        auto taking = take(self, of, mine, has_leave);
        co_await std::move(taking);
        if (mine->jobs.empty()) {
            if (has_leave) of.is_limited = false;  // none is there any more: the next one that comes asks for itself
            co_return running{};
        }
    }
    auto one = std::move(mine->jobs.front());
    mine->jobs.pop_front();
    bool is_admitted = of.limit == nullptr && of.breaker == nullptr;
    std::exception_ptr problem;
    try {
        if (!is_admitted) {
            auto admitting = with_stop_token(with_stop_token(admit(self, of, one, has_leave), self->halt_.get_token()), one->stop.get_token());
            is_admitted = co_await std::move(admitting);
        }
        while (is_admitted && self->is_shared_ && self->turns_ >= self->how_.concurrency && !self->stopping_) {
            auto waiting = doorbell::wait(owner, self->free_, longest_rest);
            co_await std::move(waiting);
            engine::pause turn{owner, 0ms};
            co_await turn;
        }
    } catch (...) {
        problem = std::current_exception();
    }
    if (!owner->home().here()) {
        engine::pause turn{owner, 0ms};
        co_await turn;
    }
    if (is_admitted && !problem) {
        bool const begins = self->begin_turn(of, one);
        co_return begins ? one : running{};
    }
    self->do_without(of, one);
    if (problem && !self->stopping_ && !one->cancelled) std::rethrow_exception(problem);
    co_return running{};
}

bool job_crew::begin_turn(branch& of, running const& one) {
    bool const has_turn = !is_shared_ || turns_ < how_.concurrency;
    if (!has_turn || stopping_ || !one->item->is_valid() || one->cancelled) {
        do_without(of, one);
        return false;
    }
    one->item->is_unseen = false;
    enter_turn();
    queue_tally::count(office_->tally().begun);
    if (turns_ < how_.concurrency) free_.ring();
    return true;
}

void job_crew::do_without(branch& of, running const& one) noexcept {
    decide({.of = one->item, .what = verdict::kind::unused}, {});
    forget(of, *one);
    free_.ring();  // the turn that it did not take
}

// ---- when a job may be taken, and begun

task<bool> job_crew::wait_for_leave(std::shared_ptr<job_crew> self, branch& of) {
    auto const owner = of.queue->owner();
    while (!self->stopping_) {
        auto const now = clock::now();
        auto rest = of.throttle.delay(now);
        if (rest == 0ms && of.is_slow() && of.active > 0) rest = 1s;  // one at a time
        if (rest == 0ms && now < of.rests_until) rest = std::chrono::ceil<milliseconds>(of.rests_until - now);
        if (rest == 0ms && of.is_limited) {
            if (!of.is_asking) {
                auto waiting = wait_for_limit(self, of);
                bool const is_allowed = co_await std::move(waiting);
                if (is_allowed) co_return true;
                continue;
            }
            rest = longest_rest;
        }
        if (rest == 0ms) co_return false;
        auto waiting = doorbell::wait(owner, of.changed, rest);
        co_await std::move(waiting);
        engine::pause turn{owner, 0ms};
        co_await turn;
    }
    co_return false;
}

/// Only while there are jobs, for it could be others' turn instead.
task<bool> job_crew::wait_for_limit(std::shared_ptr<job_crew> self, branch& of) {
    of.is_asking = true;
    bool is_allowed = false;
    std::exception_ptr problem;
    try {
        flusher told{of.queue};  // of the one that was given back
        co_await told;
        auto looking = is_empty(of);
        bool const has_none = co_await std::move(looking);
        if (has_none) {
            of.is_limited = false;
        } else {
            auto asking = with_stop_token(of.limit->async_acquire(of.type), self->halt_.get_token());
            auto const decision = co_await std::move(asking);
            is_allowed = decision.allowed;
        }
    } catch (...) {
        problem = std::current_exception();
    }
    auto homing = come_home(self);
    co_await std::move(homing);
    of.is_asking = false;
    of.changed.ring();
    if (problem && !self->stopping_) std::rethrow_exception(problem);
    co_return is_allowed;
}

task<bool> job_crew::is_empty(branch& of) {
    auto const& at = of.queue->what();
    auto asking = at.command({"EXISTS", at.key_of("ready"), at.key_of("ranked")});
    auto const said = co_await std::move(asking);
    co_return said.integer() == 0;
}

task<bool> job_crew::admit(std::shared_ptr<job_crew> self, branch& of, running one, bool has_leave) {
    if (of.limit != nullptr && !has_leave) {
        auto asking = of.limit->async_try_acquire(of.type);
        auto const decision = co_await std::move(asking);
        auto homing = come_home(self);
        co_await std::move(homing);
        if (!decision.allowed) {
            of.is_limited = true;
            co_return false;
        }
    }
    if (of.breaker == nullptr) co_return true;
    auto asking = of.breaker->async_try_allow();
    one->permit = co_await std::move(asking);
    auto homing = come_home(self);
    co_await std::move(homing);
    if (one->permit) co_return true;
    auto const open_for = of.breaker->state().retry_after;  // 0: somebody probes, or it is held open
    of.rests_until = clock::now() + std::clamp<milliseconds>(open_for, 200ms, 1s);
    co_return false;
}

// ---- loops

task<void> job_crew::work(std::shared_ptr<job_crew> self, branch& of) {
    auto const mine = std::make_shared<hand>();
    while (!self->stopping_) {
        running one;
        std::exception_ptr problem;
        try {
            auto taking = next(self, of, mine);
            one = co_await std::move(taking);
        } catch (cancelled_error const&) {
            break;
        } catch (...) {
            problem = std::current_exception();
        }
        if (problem) {
            self->report_take_failure(of, problem);
            engine::pause rest{self->office_->owner(), rest_after_failure};
            co_await rest;
            continue;
        }
        if (!one) continue;
        std::string result;
        std::stop_callback const lost{one->item->token_for_stop(), [&stop = one->stop] { stop.request_stop(); }};
        if (one->what.record.terms.timeout > 0ms) start(with_stop_token(watch_time(self, of, one), one->over.get_token()), [one](std::exception_ptr) {});
        if (self->hurrying_) one->stop.request_stop();
        auto const begun = clock::now();
        try {
            raw_job job{one};
            auto working = with_stop_token(of.as_task(job), one->stop.get_token());
            result = co_await std::move(working);
        } catch (...) {
            problem = std::current_exception();
        }
        of.learn(clock::now() - begun);
        if (!self->office_->owner()->home().here()) {  // the handler went on elsewhere
            engine::pause turn{self->office_->owner(), 0ms};
            co_await turn;
        }
        if (problem) self->threw(of, *one, problem);
        else self->returned(of, *one, std::move(result));
        self->end(of, *one);
    }
    self->give_back(of, *mine);
}

void job_crew::work_on_thread(std::shared_ptr<job_crew> self, branch& of) {
    auto const mine = std::make_shared<hand>();
    while (!self->stopping_) {
        running one;
        try {
            one = sync_wait(next(self, of, mine));
        } catch (cancelled_error const&) {
            break;
        } catch (...) {
            self->report_take_failure(of, std::current_exception());
            std::unique_lock guard{self->mutex_};
            self->stopped_.wait_for(guard, rest_after_failure, [&] { return self->stopping_.load(); });
            continue;
        }
        if (!one) continue;
        std::stop_callback const lost{one->item->token_for_stop(), [&stop = one->stop] { stop.request_stop(); }};
        if (one->what.record.terms.timeout > 0ms) start(with_stop_token(watch_time(self, of, one), one->over.get_token()), [one](std::exception_ptr) {});
        if (self->hurrying_) one->stop.request_stop();
        auto const begun = clock::now();
        try {
            raw_job job{one};
            self->returned(of, *one, of.on_thread(job));
        } catch (...) {
            self->threw(of, *one, std::current_exception());
        }
        of.learn(clock::now() - begun);
        auto& home = self->office_->owner()->home();
        if (!home.post([self, &of, one] { self->end(of, *one); })) one->over.request_stop();
    }
    self->office_->owner()->home().post([self, &of, mine] { self->give_back(of, *mine); });
}

/// Jobs that are cancelled are told to those who run them; a worker that misses it learns it when it renews.
task<void> job_crew::listen(std::shared_ptr<job_crew> self, branch& of) {
    std::weak_ptr<job_crew> const weak = self;
    auto hear = [weak, &of](std::string_view token) {
        auto const alive = weak.lock();
        if (!alive) return;
        running found;
        {
            std::lock_guard const guard{of.mutex};
            auto const at = of.at_work.find(token.substr(0, token.rfind('.')));
            if (at != of.at_work.end() && at->second->item->token == token) found = at->second;
        }
        if (!found) return;
        found->cancelled = true;
        found->stop.request_stop();
    };
    while (!self->stopping_) {
        std::exception_ptr problem;
        try {
            // What was said before it heard, or while it could not, shows when it renews.
            auto look = [weak, &of] {
                if (auto const alive = weak.lock()) of.queue->renew_now();
            };
            auto hearing = job_office::listen(of.queue, "control", hear, look);
            of.control = co_await std::move(hearing);
            of.queue->renew_now();
            co_return;
        } catch (cancelled_error const&) {
            co_return;
        } catch (...) {
            problem = std::current_exception();
        }
        self->report(problem);
        engine::pause rest{self->office_->owner(), rest_after_failure};
        co_await rest;
    }
}

}  // namespace lockstep::detail
