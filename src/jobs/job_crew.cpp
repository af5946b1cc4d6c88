#include "jobs/job_crew.hpp"

#include "lease/pause.hpp"
#include "scripts/all.hpp"

#include <lockstep/consumer.hpp>
#include <lockstep/error.hpp>
#include <lockstep/log.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace lockstep::detail {
namespace {

using namespace std::chrono_literals;
using std::chrono::milliseconds;

constexpr milliseconds longest_rest = std::chrono::hours{1};
constexpr milliseconds longest_backoff = std::chrono::hours{24 * 366 * 10};

std::string too_long(running_job const& one) { return fmt::format("it took longer than {} ms", one.what.record.terms.timeout.count()); }

/// Its time was over, and that is said when its handler has ended.
bool is_overdue(running_job const& one) { return one.timed_out && one.what.record.is_single; }

std::string text_of(std::exception_ptr const& why) {
    try {
        std::rethrow_exception(why);
    } catch (std::exception const& problem) {
        return std::string{problem.what()}.substr(0, 4096);
    } catch (...) {
        return "the handler threw";
    }
}

template <class Error>
bool is_a(std::exception_ptr const& why) {
    try {
        std::rethrow_exception(why);
    } catch (Error const&) {
        return true;
    } catch (...) {
        return false;
    }
}

[[noreturn]] void refuse(std::string_view name, std::string const& what) { throw invalid_argument_error(fmt::format("a worker of jobs '{}': {}", name, what)); }

}  // namespace

job_crew::job_crew(client& by, std::string_view name, job_worker_options const& how) : office_(std::make_shared<job_office>(by, name)), how_(how) {
    if (how.concurrency < 1 || how.concurrency > 10'000) refuse(name, fmt::format("concurrency must be 1 to 10,000, not {}", how.concurrency));
    if (how.lease < 20ms || how.lease > 24h) refuse(name, fmt::format("lease must be 20 ms to 24 h, not {} ms", how.lease.count()));
    if (how.max_crashes < 2 || how.max_crashes > 1'000'000) refuse(name, fmt::format("max_crashes must be 2 to 1,000,000, not {}", how.max_crashes));
    if (how.keep_completed < 0 || how.keep_failed < 0 || how.keep_completed_for < 0ms || how.keep_failed_for < 0ms) {
        refuse(name, "what is kept is 0 or more");
    }
    auto const given = how.name.empty() ? std::string_view{office_->owner()->options().name} : how.name;
    if (given.size() > 100 || given.find('\n') != std::string_view::npos) refuse(name, "its name must be 100 bytes at most, without a line end");
    words_ = fmt::format("{}\n{}", given.empty() ? "-" : given, keep_words(how));
    how_.name = {};
    office_->all().require_usable();
    if (how.cron_takeover < 100ms || how.cron_takeover > 24h) {
        refuse(name, fmt::format("cron_takeover must be 100 ms to 24 h, not {} ms", how.cron_takeover.count()));
    }
    if (how.fires_crons) crons_ = std::make_shared<cron_scheduler>(by, office_, how.cron_takeover);
}

void job_crew::add(std::string_view type, handle_options const& how, raw_job_worker::on_thread on_thread, raw_job_worker::as_task as_task) {
    check_job_type(type);
    if (started_) refuse(what().name(), "handlers are named before it starts");
    for (auto const& one : branches_) {
        if (one->type == type) refuse(what().name(), fmt::format("type '{}' has a handler already", type));
    }
    auto const most = on_thread ? std::size_t{1'000} : std::size_t{10'000};
    auto const concurrency = how.concurrency == 0 ? how_.concurrency : std::min(how.concurrency, how_.concurrency);
    if (concurrency > most) refuse(what().name(), fmt::format("1,000 threads at most, not {}", concurrency));
    auto made = std::make_unique<branch>();
    made->type = type;
    made->concurrency = concurrency;
    made->on_thread = std::move(on_thread);
    made->as_task = std::move(as_task);
    made->limit = how.limit;
    made->breaker = how.breaker;
    made->backoff = how.backoff;
    auto options = job_queue_options();
    options.visibility = how_.lease;
    options.max_deliveries = how_.max_crashes;
    made->queue = depot::make(office_->owner(), what().name(), options, {.job_type = type, .job_words = words_});
    branches_.push_back(std::move(made));
}

void job_crew::start_all() {
    if (std::exchange(started_, true)) refuse(what().name(), "it was started already");
    std::size_t sum = 0;
    for (auto const& one : branches_) sum += one->concurrency;
    is_shared_ = sum > how_.concurrency;
    auto const self = shared_from_this();
    if (crons_) {
        ++loops_;
        start(cron_scheduler::run(crons_), [self](std::exception_ptr) { self->one_less(); });
    }
    for (auto const& one : branches_) {
        auto& of = *one;
        start(listen(self, of), [self](std::exception_ptr) {});
        if (of.as_task) {
            for (std::size_t i = 0; i != of.concurrency; ++i) {
                ++loops_;
                start(work(self, of), [self](std::exception_ptr) { self->one_less(); });
            }
            continue;
        }
        try {
            std::lock_guard const guard{mutex_};
            for (std::size_t i = 0; i != of.concurrency; ++i) {
                ++loops_;
                threads_.emplace_back([self, &of] {
                    work_on_thread(self, of);
                    self->one_less();
                });
            }
        } catch (...) {
            one_less();
            finish();  // there is no thread for one of them: those that run must not go on without anybody who could stop them
            throw;
        }
    }
}

void job_crew::one_less() noexcept {
    if (--loops_ == 0) done_.ring();
}

void job_crew::report(std::exception_ptr why) const noexcept {
    if (is_a<lease_lost_error>(why)) queue_tally::count(office_->tally().lost);
    log(log_level::warning, fmt::format("a worker of jobs '{}': {}", what().name(), text_of(why)));
}

// ---- turns

void job_crew::enter_turn() noexcept {
    if (++turns_ < how_.concurrency || !is_shared_) return;
    pausing_ = true;
    for (auto const& one : branches_) one->queue->dismiss(&pausing_);
}

void job_crew::leave_turn() noexcept {
    if (turns_-- < how_.concurrency || !is_shared_) return;
    pausing_ = false;
    if (stopping_) pausing_ = true;  // it may have been said meanwhile
    free_.ring();
}

// ---- a job

job_crew::running job_crew::begin(branch& of, std::shared_ptr<held_item> item) {
    auto made = std::make_shared<running_job>();
    made->office = office_;
    made->item = std::move(item);
    made->backoff = of.backoff;
    made->name = fmt::format("{}/{}", of.type, made->item->id);
    try {
        made->what = read_delivery(made->item->payload);
        made->cancelled = made->what.record.is_cancelled;  // since it was taken: the answer to that was lost
    } catch (error const& problem) {
        decide({.of = made->item, .what = verdict::kind::fail, .reason = problem.what()}, {});
        throw;
    }
    std::lock_guard const guard{of.mutex};
    of.at_work[std::string{made->item->id}] = made;
    return made;
}

void job_crew::forget(branch& of, running_job& one) noexcept {
    one.over.request_stop();
    std::lock_guard const guard{of.mutex};
    auto const at = of.at_work.find(one.item->id);
    if (at != of.at_work.end() && at->second.get() == &one) of.at_work.erase(at);  // it may have been requeued, and run here again
}

void job_crew::end(branch& of, running_job& one) noexcept {
    forget(of, one);
    leave_turn();
}

void job_crew::returned(running_job& one, std::string result) noexcept {
    if (one.permit && one.timed_out) one.permit->failure();
    if (one.cancelled) {
        decide({.of = one.item, .what = verdict::kind::unused}, {});
        return;
    }
    if (is_overdue(one)) {
        missed(one, too_long(one), false);
        return;
    }
    bool const is_said =
        result.empty() ? decide({.of = one.item, .what = verdict::kind::ack}, [self = shared_from_this()](std::exception_ptr why) { self->report(why); })
                       : decide({.of = one.item, .what = verdict::kind::complete, .reason = std::move(result)},
                                [self = shared_from_this()](std::exception_ptr why) { self->report(why); });
    if (one.permit) one.permit->success();
    if (!is_said) return;
    ++completed_;
    queue_tally::count(office_->tally().completed);
}

bool job_crew::missed(running_job& one, std::string reason, bool is_final) noexcept {
    auto const failures = one.what.failures + 1;
    auto const& terms = one.what.record.terms;
    verdict what{.of = one.item, .what = verdict::kind::fail, .reason = std::move(reason)};
    if (!is_final && failures < terms.attempts) {
        what.what = verdict::kind::retry;
        what.time = one.backoff == nullptr ? terms.pause(failures) : std::clamp(one.backoff(failures, what.reason), 0ms, longest_backoff);
    }
    bool const is_tried_again = what.what == verdict::kind::retry;
    if (!decide(std::move(what), [self = shared_from_this()](std::exception_ptr why) { self->report(why); })) return false;
    ++failed_;
    queue_tally::count(is_tried_again ? office_->tally().retried : office_->tally().failed);
    return true;
}

void job_crew::threw(running_job& one, std::exception_ptr why) noexcept {
    if (one.permit && one.timed_out) one.permit->failure();
    if (one.cancelled || !one.item->is_valid()) {  // it is not ours any more: that is why
        decide({.of = one.item, .what = verdict::kind::unused}, {});
        return;
    }
    if (one.permit) one.permit->failure();
    if (is_overdue(one)) missed(one, too_long(one), false);
    else missed(one, text_of(why), is_a<reject>(why));
}

task<void> job_crew::watch_time(std::shared_ptr<job_crew> self, running one) {
    auto const limit = one->what.record.terms.timeout;
    try {
        engine::pause rest{self->office_->owner(), limit};
        co_await rest;
    } catch (cancelled_error const&) {
        co_return;  // it has ended
    }
    one->timed_out = true;
    if (one->what.record.is_single) {  // the next one begins when this has ended, and not before
        one->stop.request_stop();
        co_return;
    }
    if (self->missed(*one, too_long(*one), false)) one->stop.request_stop();
}

// ---- the end

void job_crew::request_stop() noexcept {
    stopping_ = true;
    pausing_ = true;
    halt_.request_stop();
    free_.ring();
    auto const owner = office_->owner();
    if (!owner->same_process()) return;
    if (crons_) crons_->request_stop();
    owner->home().post([self = shared_from_this()] {
        for (auto const& one : self->branches_) one->queue->dismiss(&self->pausing_);
    });
}

task<void> job_crew::stop(std::shared_ptr<job_crew> self) {
    self->request_stop();
    while (self->loops_ != 0) {
        auto waiting = doorbell::wait(self->office_->owner(), self->done_, longest_rest);
        co_await std::move(waiting);
    }
    self->done_.ring();  // whoever else waits
    for (auto const& one : self->branches_) {
        flusher said{one->queue};
        co_await said;
        one->control = {};
    }
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

// ---- raw_job

std::string_view raw_job::payload() const noexcept { return what_->what.record.payload; }
std::string const& raw_job::id() const noexcept { return what_->name; }
std::int32_t raw_job::attempt() const noexcept { return what_->what.failures + 1; }
std::int32_t raw_job::deliveries() const noexcept { return what_->item->deliveries % 1'000'000; }  // since it was requeued (job_rules.lua)
std::chrono::system_clock::time_point raw_job::due() const noexcept { return what_->what.record.due; }
bool raw_job::is_valid() const noexcept { return !what_->cancelled && !what_->timed_out && what_->item->is_valid(); }
std::stop_token raw_job::stop_token() const noexcept { return what_->stop.get_token(); }

namespace {

task<void> tell_progress(std::shared_ptr<running_job> of, std::string text) {
    auto const at = of->item->at;
    std::vector<std::string> words{at->rules(), of->item->token, std::move(text)};
    auto asking = job_office::run(at, scripts::job_progress, {"", "held", "absent"}, std::move(words));
    auto const said = co_await std::move(asking);
    if (said.integer() == 0) throw lease_lost_error(fmt::format("job {}: its lease had ended, and it is not ours any more", of->name));
}

task<std::optional<std::string>> read_result(std::shared_ptr<depot> at, std::string id) {
    std::vector<std::string> words{std::move(id)};
    auto asking = job_office::run(at, scripts::job_wait, {"", "held", "absent"}, std::move(words));
    auto const said = co_await std::move(asking);
    if (said[0].text() != to_string(job_state::completed)) co_return std::nullopt;
    co_return std::string{said[1].text()};
}

}  // namespace

std::vector<std::string> const& raw_job::parents() const noexcept { return what_->what.record.parents; }
void raw_job::require_blocking() const { what_->item->at->what().require_blocking(); }
task<std::optional<std::string>> raw_job::async_parent_result(std::string_view id) {
    auto const& all = parents();
    if (std::find(all.begin(), all.end(), id) == all.end()) throw invalid_argument_error(fmt::format("job {}: '{}' is no parent of it", this->id(), id));
    auto which = read_job_name(id);
    return read_result(what_->office->queue_of(which.type), std::move(which.id));
}

void raw_job::progress(std::string text) {
    what_->item->at->what().require_blocking();
    sync_wait(async_progress(std::move(text)));
}
task<void> raw_job::async_progress(std::string text) {
    what_->item->at->what().require_usable();
    return tell_progress(what_, std::move(text));
}

// ---- raw_job_worker

raw_job_worker::raw_job_worker(client& by, std::string_view name, job_worker_options const& how) : crew_(std::make_shared<job_crew>(by, name, how)) {}

raw_job_worker& raw_job_worker::operator=(raw_job_worker&& other) noexcept {
    raw_job_worker before{std::move(*this)};
    crew_ = std::move(other.crew_);
    return *this;
}

raw_job_worker::~raw_job_worker() {
    if (!crew_) return;
    try {
        if (crew_->what().owner()->may_block()) stop({});
    } catch (error const&) {
        // The client is closed, and with that all have ended.
    }
    crew_->finish();
}

void raw_job_worker::handle(std::string_view type, handle_options const& how, on_thread handler) { crew_->add(type, how, std::move(handler), {}); }
void raw_job_worker::handle(std::string_view type, handle_options const& how, as_task handler) { crew_->add(type, how, {}, std::move(handler)); }
void raw_job_worker::start() { crew_->start_all(); }
void raw_job_worker::request_stop() noexcept { crew_->request_stop(); }
void raw_job_worker::stop(std::stop_token token) {
    crew_->what().require_blocking();
    sync_wait(async_stop(), std::move(token));
}
task<void> raw_job_worker::async_stop() { return job_crew::stop(crew_); }
std::uint64_t raw_job_worker::completed() const noexcept { return crew_->completed(); }
std::uint64_t raw_job_worker::failed() const noexcept { return crew_->failed(); }

}  // namespace lockstep::detail
