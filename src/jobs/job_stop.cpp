// How a crew ends: it takes no more, lets handlers finish, and gives back what it does not wait for.
#include "jobs/job_crew.hpp"

#include "lease/pause.hpp"
#include "messaging/raw_queue_parts.hpp"

#include <lockstep/error.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace lockstep::detail {
namespace {

using namespace std::chrono_literals;
using std::chrono::milliseconds;
using clock = depot::clock;

constexpr milliseconds longest_rest = std::chrono::hours{1};
constexpr milliseconds longest_limit = std::chrono::hours{24 * 366};
constexpr milliseconds telling_time = 2s;  // the server of what was given back

}  // namespace

void job_crew::request_stop() noexcept {
    {
        std::lock_guard const guard{mutex_};  // a thread that has just looked at it waits by now
        stopping_ = true;
    }
    stopped_.notify_all();
    pausing_ = true;
    halt_.request_stop();
    free_.ring();
    for (auto const& one : branches_) one->changed.ring();
    auto const owner = office_->owner();
    if (!owner->same_process()) return;
    if (crons_) crons_->request_stop();
    owner->home().post([self = shared_from_this()] {
        for (auto const& one : self->branches_) one->queue->dismiss(&self->pausing_);
    });
}

std::vector<job_crew::running> job_crew::jobs_at_work() {
    std::vector<running> all;
    for (auto const& one : branches_) {
        std::lock_guard const guard{one->mutex};
        for (auto const& [id, job] : one->at_work) all.push_back(job);
    }
    return all;
}

void job_crew::tell_handlers_to_stop() {
    hurrying_ = true;  // what is about to begin sees that
    for (auto const& one : jobs_at_work()) one->stop.request_stop();
}

std::size_t job_crew::give_back_running() {
    std::size_t count = 0;
    for (auto const& one : jobs_at_work()) {
        if (!one->item->is_unseen) ++count;
        one->given_back = true;
        decide({.of = one->item, .what = one->item->is_unseen ? verdict::kind::unused : verdict::kind::postpone}, {});
    }
    return count;
}

task<bool> job_crew::wait_for_loops(std::shared_ptr<job_crew> self, clock::time_point until) {
    while (self->loops_ != 0) {
        auto const left = std::chrono::ceil<milliseconds>(until - clock::now());
        if (left <= 0ms) co_return false;
        auto waiting = doorbell::wait(self->office_->owner(), self->done_, std::min(left, longest_rest));
        co_await std::move(waiting);
    }
    self->done_.ring();  // whoever else waits
    co_return true;
}

task<void> job_crew::flush(std::shared_ptr<job_crew> self, clock::time_point until) {
    for (auto const& one : self->branches_) {
        flusher said{one->queue, until};
        co_await said;
        one->control = {};
    }
}

task<void> job_crew::stop(std::shared_ptr<job_crew> self) {
    self->request_stop();
    auto waiting = wait_for_loops(self, clock::time_point::max());
    co_await std::move(waiting);
    auto flushing = flush(self, clock::time_point::max());
    co_await std::move(flushing);
}

task<bool> job_crew::stop_within(std::shared_ptr<job_crew> self, milliseconds limit) {
    auto const until = clock::now() + std::min(limit, longest_limit);
    self->request_stop();
    self->tell_handlers_to_stop();
    auto waiting = wait_for_loops(self, until);
    bool has_ended = co_await std::move(waiting);
    if (!has_ended) {
        engine::pause turn{self->office_->owner(), 0ms};
        co_await turn;
        has_ended = self->give_back_running() == 0;
    }
    auto flushing = flush(self, std::max(until, clock::now() + telling_time));
    co_await std::move(flushing);
    co_return has_ended;
}

task<void> job_crew::stop_at_limit(std::shared_ptr<job_crew> self) {
    self->request_stop();
    auto waiting = wait_for_loops(self, clock::now() + self->how_.stop_limit);
    bool const has_ended = co_await std::move(waiting);
    if (!has_ended) {
        auto stopping = stop_within(self, 0ms);
        co_await std::move(stopping);
    }
    auto ending = stop(self);
    co_await std::move(ending);
}

void job_crew::finish() noexcept {
    if (!office_->owner()->same_process()) return;
    request_stop();
    std::vector<std::jthread> threads;
    {
        std::lock_guard const guard{mutex_};
        threads = std::move(threads_);
    }
    bool const may_wait = office_->owner()->may_block();
    for (auto& one : threads) {
        if (one.get_id() == std::this_thread::get_id() || !may_wait) one.detach();
    }
    threads.clear();
}

// ---- raw_job_worker

raw_job_worker::~raw_job_worker() {
    if (!crew_) return;
    try {
        if (crew_->what().owner()->may_block()) sync_wait(job_crew::stop_at_limit(crew_));
    } catch (error const&) {
        // The client is closed, and with that all have ended.
    }
    crew_->finish();
}

void raw_job_worker::request_stop() noexcept { crew_->request_stop(); }
void raw_job_worker::stop(std::stop_token token) {
    crew_->what().require_blocking();
    sync_wait(async_stop(), std::move(token));
}
task<void> raw_job_worker::async_stop() { return job_crew::stop(crew_); }

bool raw_job_worker::stop_within(milliseconds limit, std::stop_token token) {
    crew_->what().require_blocking();
    return sync_wait(async_stop_within(limit), std::move(token));
}
task<bool> raw_job_worker::async_stop_within(milliseconds limit) {
    if (limit < 0ms) {
        throw invalid_argument_error(fmt::format("a worker of jobs '{}': the limit of a stop must be 0 ms or more, not {} ms", crew_->what().name(), limit.count()));
    }
    return job_crew::stop_within(crew_, limit);
}

}  // namespace lockstep::detail
