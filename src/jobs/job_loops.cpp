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

}  // namespace

// ---- what a loop has in hand

void job_crew::branch::learn(clock::duration took) noexcept {
    auto const before = typical.load(std::memory_order_relaxed);
    typical.store(before + (took - before) / 8, std::memory_order_relaxed);
}

std::size_t job_crew::at_once(branch const& of) const noexcept {
    bool const is_plain = !is_shared_ && of.limit == nullptr && of.breaker == nullptr;
    auto const typical = of.typical.load(std::memory_order_relaxed);
    if (!is_plain || typical > quick) return 1;
    auto const in_time = static_cast<std::size_t>(longest_in_hand / std::max<clock::duration>(typical, 1us));  // if one after the other is run
    return std::clamp<std::size_t>(std::min(taken_of_quick, in_time) / of.concurrency, 1, taken_by_one);
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
    if (self->stopping_) co_return running{};
    if (mine->jobs.empty()) {
        taker taking{of.queue, raw_queue::until::max(), &self->pausing_};
        taking.most = self->at_once(of);
        co_await taking;
        if (!taking.got) co_return running{};
        try {
            mine->jobs.push_back(self->begin(of, std::exchange(taking.got, nullptr)));
            for (auto& more : taking.more) mine->jobs.push_back(self->begin(of, std::exchange(more, nullptr)));
        } catch (...) {
            self->give_back(of, *mine);
            throw;
        }
        for (auto const& one : mine->jobs) one->item->is_unseen = true;
        mine->since = owner->home().now();
        if (mine->jobs.size() > 1 && !std::exchange(mine->is_watched, true)) start(watch(self, of, mine), [](std::exception_ptr) {});
    }
    auto one = std::move(mine->jobs.front());
    mine->jobs.pop_front();
    std::exception_ptr problem;
    try {
        if (of.limit != nullptr || of.breaker != nullptr) {
            auto admitting = with_stop_token(with_stop_token(admit(self, of, one), self->halt_.get_token()), one->stop.get_token());
            co_await std::move(admitting);
        }
        while (self->is_shared_ && self->turns_ >= self->how_.concurrency && !self->stopping_) {
            auto waiting = doorbell::wait(owner, self->free_, longest_rest);
            co_await std::move(waiting);
            engine::pause turn{owner, 0ms};
            co_await turn;
        }
    } catch (...) {
        problem = std::current_exception();
    }
    bool const has_turn = !self->is_shared_ || self->turns_ < self->how_.concurrency;
    if (!problem && has_turn && one->item->is_valid() && !one->cancelled) {
        one->item->is_unseen = false;
        self->enter_turn();
        queue_tally::count(self->office_->tally().begun);
        if (self->turns_ < self->how_.concurrency) self->free_.ring();
        co_return one;
    }
    decide({.of = one->item, .what = verdict::kind::unused}, {});
    self->forget(of, *one);
    self->free_.ring();  // the turn that it did not take
    if (problem && !self->stopping_ && !one->cancelled) std::rethrow_exception(problem);
    co_return running{};
}

task<void> job_crew::admit(std::shared_ptr<job_crew> self, branch& of, running one) {
    if (of.limit != nullptr) {
        auto asking = of.limit->async_acquire(of.type);
        co_await std::move(asking);
    }
    while (of.breaker != nullptr && !self->stopping_ && one->item->is_valid()) {
        auto asking = of.breaker->async_try_allow();
        one->permit = co_await std::move(asking);
        if (one->permit) co_return;
        auto const open_for = of.breaker->state().retry_after;  // 0: somebody probes, or it is held open
        engine::pause rest{self->office_->owner(), std::clamp<milliseconds>(open_for, 200ms, 1s)};
        co_await rest;
    }
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
            self->report(problem);
            engine::pause rest{self->office_->owner(), rest_after_failure};
            co_await rest;
            continue;
        }
        if (!one) continue;
        std::string result;
        std::stop_callback const lost{one->item->token_for_stop(), [&stop = one->stop] { stop.request_stop(); }};
        if (one->what.record.terms.timeout > 0ms) start(with_stop_token(watch_time(self, one), one->over.get_token()), [one](std::exception_ptr) {});
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
        if (problem) self->threw(*one, problem);
        else self->returned(*one, std::move(result));
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
            self->report(std::current_exception());
            std::unique_lock guard{self->mutex_};
            std::condition_variable_any().wait_for(guard, rest_after_failure, [&] { return self->stopping_.load(); });
            continue;
        }
        if (!one) continue;
        std::stop_callback const lost{one->item->token_for_stop(), [&stop = one->stop] { stop.request_stop(); }};
        if (one->what.record.terms.timeout > 0ms) start(with_stop_token(watch_time(self, one), one->over.get_token()), [one](std::exception_ptr) {});
        auto const begun = clock::now();
        try {
            raw_job job{one};
            self->returned(*one, of.on_thread(job));
        } catch (...) {
            self->threw(*one, std::current_exception());
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
