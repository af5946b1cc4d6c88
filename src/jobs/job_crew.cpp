#include "jobs/job_crew.hpp"

#include "lease/pause.hpp"
#include "scripts/all.hpp"

#include <lockstep/consumer.hpp>
#include <lockstep/error.hpp>
#include <lockstep/idempotency.hpp>
#include <lockstep/later.hpp>
#include <lockstep/log.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace lockstep::detail {
namespace {

using namespace std::chrono_literals;
using std::chrono::milliseconds;
using clock = std::chrono::steady_clock;

constexpr milliseconds shortest_busy_delay = 500ms;
constexpr milliseconds longest_busy_delay = 30s;
constexpr std::size_t most_busy = 10'000;  // jobs that others were doing, of a type
constexpr milliseconds moment_to_leave = 50ms;
constexpr milliseconds stuck_after = 1s;  // a handler that was told that its time is over
constexpr std::size_t largest_result = 16 << 20;
constexpr std::size_t suspicious_result = 64 << 10;  // may be why the server refuses a call
constexpr std::size_t largest_progress = 1 << 20;
constexpr milliseconds longest_backoff = std::chrono::hours{24 * 366 * 10};
constexpr milliseconds longest_retention = std::chrono::hours{24 * 366 * 10};
constexpr std::int64_t most_kept = 1'000'000'000;
constexpr auto report_drops_every = std::chrono::minutes{1};

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

/// What its handler asked for with `later`.
std::optional<milliseconds> postponement(std::exception_ptr const& why) {
    try {
        std::rethrow_exception(why);
    } catch (later const& asked) {
        return asked.delay();
    } catch (...) {
        return std::nullopt;
    }
}

[[noreturn]] void refuse(std::string_view name, std::string const& what) { throw invalid_argument_error(fmt::format("a worker of jobs '{}': {}", name, what)); }

}  // namespace

job_crew::job_crew(client& by, std::string_view name, job_worker_options const& how) : office_(std::make_shared<job_office>(by, name)), how_(how) {
    if (how.concurrency < 1 || how.concurrency > 10'000) refuse(name, fmt::format("concurrency must be 1 to 10,000, not {}", how.concurrency));
    if (how.lease < 20ms || how.lease > 24h) refuse(name, fmt::format("lease must be 20 ms to 24 h, not {} ms", how.lease.count()));
    if (how.max_crashes < 2 || how.max_crashes > 1'000'000) refuse(name, fmt::format("max_crashes must be 2 to 1,000,000, not {}", how.max_crashes));
    if (how.stop_limit < 0ms || how.stop_limit > 24h) refuse(name, fmt::format("stop_limit must be 0 to 24 h, not {} ms", how.stop_limit.count()));
    for (auto const& [option, time] : {std::pair{"completed_retention", how.completed_retention}, {"failed_retention", how.failed_retention}}) {
        if (time && (*time < 0ms || *time > longest_retention)) refuse(name, fmt::format("{} must be 0 to 10 years, not {} ms", option, time->count()));
    }
    for (auto const& [option, number] : {std::pair{"keep_completed", how.keep_completed}, {"keep_failed", how.keep_failed}}) {
        if (number && (*number < 0 || *number > most_kept)) refuse(name, fmt::format("{} must be 0 (any number) to 1,000,000,000, not {}", option, *number));
    }
    auto const given = how.name.empty() ? std::string_view{office_->owner()->options().name} : how.name.view();
    if (given.size() > 100 || given.find('\n') != std::string_view::npos) refuse(name, "its name must be 100 bytes at most, without a line end");
    words_ = fmt::format("{}\n{}", given.empty() ? "-" : given, keep_words(how));
    how_.name = {};
    office_->all().require_usable();
    if (how.cron_takeover < 100ms || how.cron_takeover > 24h) {
        refuse(name, fmt::format("cron_takeover must be 100 ms to 24 h, not {} ms", how.cron_takeover.count()));
    }
    if (how.fires_crons) crons_ = std::make_shared<cron_scheduler>(office_, how.cron_takeover);
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
    made->queue->on_dropped = [weak = weak_from_this(), &of = *made](std::uint64_t completed, std::uint64_t failed) {
        if (auto const self = weak.lock()) self->report_dropped(of, completed, failed);
    };
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

void job_crew::report_take_failure(branch& of, std::exception_ptr why) const noexcept {
    if (is_a<lease_lost_error>(why)) queue_tally::count(office_->tally().lost);
    auto const count = of.take_failures.add(clock::now());
    if (count == 0) return;
    log(log_level::warning, fmt::format("a worker of jobs '{}' could not take one of type '{}'{}: {}", what().name(), of.type,
                                        count == 1 ? "" : fmt::format(" {} times, the last time", count), text_of(why)));
}

void job_crew::report_dropped(branch& of, std::uint64_t completed, std::uint64_t failed) const noexcept {
    queue_tally::count(office_->tally().dropped, completed + failed);
    of.dropped_completed += completed;
    of.dropped_failed += failed;
    auto const now = office_->owner()->home().now();
    if (of.drops_reported && now - *of.drops_reported < report_drops_every) return;
    of.drops_reported = now;
    auto const level = of.dropped_failed == 0 ? log_level::info : log_level::warning;
    log(level, fmt::format("jobs '{}', type '{}': {} completed and {} failed or cancelled ones were forgotten before their retention was over, because there were "
                           "more than keep_completed or keep_failed",
                           what().name(), of.type, std::exchange(of.dropped_completed, 0), std::exchange(of.dropped_failed, 0)));
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
    {
        std::lock_guard const guard{of.mutex};
        if (of.at_work.try_emplace(std::string{made->item->id}, made).second) return made;
    }
    // Its handler has not ended, though its time is over or its lease was lost. Never twice at once here; elsewhere it may be run: when nobody of this branch
    // wants a job for a moment, it leaves its place in the line of workers, and the others are before it when the job comes back.
    postpone(*made, busy_delay(of, made->item->id));
    of.rests_until = std::max(of.rests_until, clock::now() + moment_to_leave);
    of.queue->dismiss(&pausing_);
    return nullptr;
}

void job_crew::forget(branch& of, running_job& one) noexcept {
    one.over.request_stop();
    std::lock_guard const guard{of.mutex};
    auto const at = of.at_work.find(one.item->id);
    if (at != of.at_work.end() && at->second.get() == &one) of.at_work.erase(at);  // it may have been requeued, and run here again
}

void job_crew::end(branch& of, running_job& one) noexcept {
    forget(of, one);
    if (one.is_stuck.exchange(false)) --stuck_;
    --of.active;
    if (of.is_slow()) of.changed.ring();
    leave_turn();
}

void job_crew::returned(branch& of, running_job& one, std::string result) noexcept {
    if (one.permit && one.timed_out) one.permit->failure();
    if (one.cancelled) {
        decide({.of = one.item, .what = verdict::kind::unused}, {});
        return;
    }
    if (is_overdue(one)) {
        missed(of, one, too_long(one), false);
        return;
    }
    if (result.size() > largest_result) {
        missed(of, one, fmt::format("its result has {} bytes, and {} are allowed", result.size(), largest_result), true);
        return;
    }
    of.note_success();
    auto const kind = result.empty() ? verdict::kind::ack : verdict::kind::complete;
    auto refused = [self = shared_from_this(), weak = one.item->weak_from_this(), result](std::exception_ptr why) {
        self->office_->owner()->home().post([self, item = weak.lock(), result, why] {
            if (item) self->complete_again(item, result, why);
        });
    };
    bool const is_said = decide({.of = one.item, .what = kind, .reason = std::move(result)}, std::move(refused));
    if (one.permit) one.permit->success();
    if (!is_said) return;
    ++completed_;
    queue_tally::count(office_->tally().completed);
}

/// The call that said so failed. If the server refused it, a large result among those in it may be why: that one fails its job, and the others are said again.
void job_crew::complete_again(std::shared_ptr<held_item> const& item, std::string result, std::exception_ptr why) noexcept {
    report(why);
    if (!is_a<server_error>(why) || !item->is_valid()) return;
    verdict again{.of = item, .what = result.empty() ? verdict::kind::ack : verdict::kind::complete, .reason = std::move(result)};
    if (again.reason.size() > suspicious_result) {
        again.what = verdict::kind::fail;
        again.reason = fmt::format("the server refused its result of {} bytes: {}", again.reason.size(), text_of(why));
    }
    item->failed = [self = shared_from_this()](std::exception_ptr problem) { self->report(problem); };
    item->at->judge(std::move(again));
}

bool job_crew::missed(branch& of, running_job& one, std::string reason, bool is_final) noexcept {
    auto const failures = one.what.failures + 1;
    auto const& terms = one.what.record.terms;
    verdict what{.of = one.item, .what = verdict::kind::fail, .reason = std::move(reason)};
    if (!is_final && failures < terms.attempts) {
        what.what = verdict::kind::retry;
        what.time = one.backoff == nullptr ? terms.pause(failures) : std::clamp(one.backoff(failures, what.reason), 0ms, longest_backoff);
    }
    bool const is_tried_again = what.what == verdict::kind::retry;
    std::string const text{what.reason.substr(0, 300)};
    if (!decide(std::move(what), [self = shared_from_this()](std::exception_ptr why) { self->report(why); })) return false;
    ++failed_;
    queue_tally::count(is_tried_again ? office_->tally().retried : office_->tally().failed);
    if (!is_final) of.note_failure();  // else the job is to blame
    note_failure(of, one, text);
    return true;
}

void job_crew::note_failure(branch& of, running_job const& one, std::string_view reason) noexcept {
    auto const count = of.failures.add(clock::now());
    if (count == 0) return;
    log(log_level::warning, fmt::format("a worker of jobs '{}': {} of type '{}' failed, the last one of {}: {}{}", what().name(),
                                        count == 1 ? "a try" : fmt::format("{} tries", count), of.type, one.name, reason,
                                        of.is_slow() ? "; as most fail here, this worker takes fewer of them" : ""));
}

void job_crew::postpone(running_job& one, milliseconds delay) noexcept {
    if (decide({.of = one.item, .what = verdict::kind::postpone, .time = delay}, {})) queue_tally::count(office_->tally().postponed);
}

void job_crew::threw(branch& of, running_job& one, std::exception_ptr why) noexcept {
    if (one.permit && one.timed_out) one.permit->failure();
    if (one.cancelled || !one.item->is_valid()) {  // it is not ours any more: that is why
        decide({.of = one.item, .what = verdict::kind::unused}, {});
        return;
    }
    {
        std::lock_guard const guard{one.mutex};
        if (!one.refused.empty()) {
            missed(of, one, one.refused, true);
            return;
        }
    }
    if (auto const delay = postponement(why)) return postpone(one, *delay);
    if (is_a<busy_error>(why)) return postpone(one, busy_delay(of, one.item->id));
    bool const is_told_to_stop = hurrying_ || office_->owner()->closed();
    if (is_told_to_stop && !is_a<reject>(why)) return postpone(one, 0ms);
    if (one.permit) one.permit->failure();
    if (is_overdue(one)) missed(of, one, too_long(one), false);
    else missed(of, one, text_of(why), is_a<reject>(why));
}

/// It is being done already. Doubles each time, as far as is remembered here.
milliseconds job_crew::busy_delay(branch& of, std::string_view id) {
    std::lock_guard const guard{of.mutex};
    if (of.busy.size() >= most_busy) of.busy.clear();
    auto const times = of.busy[std::string{id}]++;
    return std::min<milliseconds>(shortest_busy_delay * (1 << std::min(times, 10)), longest_busy_delay);
}

task<void> job_crew::watch_time(std::shared_ptr<job_crew> self, branch& of, running one) {
    auto const limit = one->what.record.terms.timeout;
    try {
        engine::pause rest{self->office_->owner(), limit};
        co_await rest;
        one->timed_out = true;
        // Of a single job that is told when its handler has ended: the next one begins then, and not before.
        if (!one->what.record.is_single && !self->missed(of, *one, too_long(*one), false)) co_return;
        one->stop.request_stop();
        engine::pause patience{self->office_->owner(), stuck_after};
        co_await patience;
    } catch (cancelled_error const&) {
        co_return;  // it has ended
    }
    if (!one->over.stop_requested()) self->note_stuck(*one);
}

void job_crew::note_stuck(running_job& one) noexcept {
    one.is_stuck = true;
    auto const count = ++stuck_;
    queue_tally::count(office_->tally().stuck);
    log(log_level::error, fmt::format("a worker of jobs '{}': the handler of {} runs on though the job's time of {} ms is over: it must heed its stop token; handlers "
                                      "like that here: {}",
                                      what().name(), one.name, one.what.record.terms.timeout.count(), count));
}

// ---- raw_job

std::string_view raw_job::payload() const noexcept { return what_->what.record.payload; }
std::string const& raw_job::id() const noexcept { return what_->name; }
std::int32_t raw_job::attempt() const noexcept { return what_->what.failures + 1; }
std::int32_t raw_job::deliveries() const noexcept { return what_->item->deliveries % 1'000'000; }  // since it was requeued (job_rules.lua)
std::chrono::system_clock::time_point raw_job::due() const noexcept { return what_->what.record.due; }
bool raw_job::is_valid() const noexcept { return !what_->cancelled && !what_->timed_out && !what_->given_back && what_->item->is_valid(); }
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
    auto asking = job_office::ask_end(std::move(at), std::move(id));
    auto end = co_await std::move(asking);
    if (end.state != job_state::completed) co_return std::nullopt;
    co_return std::move(end.result);
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
    if (text.size() > largest_progress) {
        auto why = fmt::format("its progress has {} bytes, and {} are allowed", text.size(), largest_progress);
        std::lock_guard const guard{what_->mutex};
        what_->refused = why;
        throw invalid_argument_error(fmt::format("job {}: {}", what_->name, why));
    }
    return tell_progress(what_, std::move(text));
}

// ---- raw_job_worker

raw_job_worker::raw_job_worker(client& by, std::string_view name, job_worker_options const& how) : crew_(std::make_shared<job_crew>(by, name, how)) {}

raw_job_worker& raw_job_worker::operator=(raw_job_worker&& other) noexcept {
    raw_job_worker before{std::move(*this)};
    crew_ = std::move(other.crew_);
    return *this;
}

void raw_job_worker::handle(std::string_view type, handle_options const& how, on_thread handler) { crew_->add(type, how, std::move(handler), {}); }
void raw_job_worker::handle(std::string_view type, handle_options const& how, as_task handler) { crew_->add(type, how, {}, std::move(handler)); }
void raw_job_worker::start() { crew_->start_all(); }
std::uint64_t raw_job_worker::completed() const noexcept { return crew_->completed(); }
std::uint64_t raw_job_worker::failed() const noexcept { return crew_->failed(); }
std::size_t raw_job_worker::stuck() const noexcept { return crew_->stuck(); }

}  // namespace lockstep::detail
