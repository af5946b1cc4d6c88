#include "messaging/queue_crew.hpp"

#include "lease/pause.hpp"
#include "messaging/message_counts.hpp"
#include "messaging/raw_queue_parts.hpp"

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

constexpr milliseconds rest_after_failure = 1s;  // when nothing could be taken
constexpr milliseconds time_to_end = 1s;         // of handlers that were told to stop, before what they handle is given back
constexpr milliseconds time_to_tell = 10s;       // the server of what is given back
constexpr milliseconds wait_for_others = 200ms;  // while another loop finds out whether handlers still fail
constexpr milliseconds min_busy_delay = 200ms;
constexpr milliseconds max_busy_delay = 10s;
constexpr std::size_t max_busy = 10'000;  // items of which is known how often they were

std::string text_of(std::exception_ptr const& why) {
    try {
        std::rethrow_exception(why);
    } catch (std::exception const& problem) {
        return std::string{problem.what()}.substr(0, 1024);
    } catch (...) {
        return "the handler threw";
    }
}

}  // namespace

/// Waits until all loops have ended, or until then.
class queue_crew::ending final : public engine::awaiter {
public:
    ending(std::shared_ptr<queue_crew> of, clock::time_point until) noexcept : crew_(std::move(of)), until_(until) {}
    ~ending() { withdraw(); }
    void finish() noexcept { resume_soon(); }

private:
    std::shared_ptr<core> const& owner() const noexcept override { return crew_->depot_->owner(); }
    void enter() override {
        if (crew_->loops_ == 0) return finish();
        crew_->waiting_.push_back(*this);
    }
    void leave() noexcept override { unlink(); }
    clock::time_point deadline() const noexcept override { return until_; }
    void time_is_over() noexcept override { resume_soon(); }

    std::shared_ptr<queue_crew> crew_;
    clock::time_point until_;
};

queue_crew::queue_crew(raw_queue const& from, consume_options const& how) : depot_(from.place()), tally_(from.tally()), how_(how) {
    if (how.concurrency < 1 || how.concurrency > 10'000) {
        throw invalid_argument_error(fmt::format("consume of '{}': concurrency must be 1 to 10,000, not {}", from.name(), how.concurrency));
    }
    for (auto const one : {how.backoff, how.max_backoff}) {
        if (one < 0ms || one > longest_delay) {
            throw invalid_argument_error(fmt::format("consume of '{}': a backoff must be 0 to 10 years, not {} ms", from.name(), one.count()));
        }
    }
    if (how.stop_limit < 0ms || how.stop_limit > 24h) {
        throw invalid_argument_error(fmt::format("consume of '{}': stop_limit must be 0 to 24 h, not {} ms", from.name(), how.stop_limit.count()));
    }
    depot_->what().require_usable();
}

void queue_crew::run(raw_worker::as_task handler) {
    as_task_ = std::move(handler);
    loops_ = how_.concurrency;
    for (std::size_t i = 0; i != how_.concurrency; ++i) {
        start(work(shared_from_this()), [self = shared_from_this()](std::exception_ptr) { self->loop_ended(); });
    }
}

void queue_crew::run(raw_worker::on_thread handler) {
    if (how_.concurrency > 1'000) {
        throw invalid_argument_error(fmt::format("consume of '{}': 1,000 threads at most, not {}", depot_->what().name(), how_.concurrency));
    }
    on_thread_ = std::move(handler);
    loops_ = how_.concurrency;
    try {
        std::lock_guard const guard{mutex_};
        for (std::size_t i = 0; i != how_.concurrency; ++i) {
            threads_.emplace_back([self = shared_from_this()] {
                work_on_thread(self);
                self->loop_ended();
            });
        }
    } catch (...) {
        finish();  // there is no thread for one of them: those that run must not go on without anybody who could stop them
        throw;
    }
}

/// On any thread. Nothing is posted: the client may have been closed meanwhile, or nobody runs its executor any more.
void queue_crew::loop_ended() noexcept {
    depot_->owner()->home().in_turn([this] {
        if (--loops_ != 0) return;
        while (!waiting_.empty()) waiting_.front().finish();
    });
}

void queue_crew::report(std::exception_ptr why) const noexcept {
    log(log_level::warning, fmt::format("a consumer of '{}': {}", depot_->what().name(), text_of(why)));
}

// ---- what loops wait for

std::optional<milliseconds> queue_crew::begin_take() noexcept {
    auto const now = clock::now();
    auto const delay = throttle_.delay(now);
    if (delay > 0ms) return delay;
    if (taking_.fetch_add(1) == 0 || !throttle_.is_slow(now)) return std::nullopt;
    --taking_;
    return wait_for_others;
}

void queue_crew::end_take() noexcept { --taking_; }

void queue_crew::begin(raw_item& item) noexcept {
    {
        std::lock_guard const guard{items_mutex_};
        in_progress_.insert(&item);
    }
    if (asked_to_stop_) item.ask_to_stop();
}

bool queue_crew::end(raw_item& item) noexcept {
    std::lock_guard const guard{items_mutex_};
    return in_progress_.erase(&item) == 1;
}

// ---- what becomes of items

void queue_crew::returned(raw_item& from) noexcept {
    if (!end(from)) return;
    ++done_;
    queue_tally::count(tally_->handled);
    bool const was_slow = throttle_.is_slow(clock::now());
    throttle_.succeeded(clock::now());
    if (was_slow) changed_.ring();
    from.ack_soon([weak = weak_from_this()](std::exception_ptr why) {
        if (auto const self = weak.lock()) self->report(std::move(why));
    });
}

void queue_crew::threw(raw_item& from, std::exception_ptr why) noexcept {
    if (!end(from)) return;
    if (asked_to_stop_ || depot_->owner()->closed()) return from.postpone_soon(0ms);  // it was asked to stop: that is why
    try {
        std::rethrow_exception(why);
    } catch (later const& wish) {
        return from.postpone_soon(wish.delay());
    } catch (busy_error const&) {
        return from.postpone_soon(busy_delay(from.id()));
    } catch (reject const& refusal) {
        ++failed_;
        queue_tally::count(tally_->failed);
        auto const reason = text_of(why);
        log_failure(from, reason);
        return from.reject_soon(reason);
    } catch (...) {
        // It is tried again.
    }
    ++failed_;
    queue_tally::count(tally_->failed);
    auto const now = clock::now();
    if (from.is_valid()) throttle_.failed(now);  // else it may have thrown because its lease had ended
    if (throttle_.is_slow(now) && taking_ > 1) {  // those who wait for items wait for their turn instead
        depot_->owner()->home().post([self = shared_from_this()] { self->depot_->dismiss(&self->stopping_); });
    }
    auto const reason = text_of(why);
    log_failure(from, reason);
    auto delay = how_.backoff;
    for (auto doublings = std::min(from.deliveries() - 1, 30); doublings > 0 && delay < how_.max_backoff; --doublings) delay *= 2;
    from.nack_soon(std::min(delay, how_.max_backoff), reason);
}

void queue_crew::log_failure(raw_item const& of, std::string const& why) noexcept {
    auto const count = failures_.add(clock::now());
    if (count == 0) return;
    auto const& name = depot_->what().name();
    if (count == 1) log(log_level::warning, fmt::format("a worker of queue '{}': the handler of item {} failed: {}", name, of.id(), why));
    else log(log_level::warning, fmt::format("a worker of queue '{}': {} handlers failed since the last such line, that of item {} with: {}", name, count, of.id(), why));
}

/// Longer each time that this worker finds it busy.
milliseconds queue_crew::busy_delay(std::string_view id) {
    std::lock_guard const guard{items_mutex_};
    if (busy_.size() >= max_busy) busy_.clear();
    auto const times = std::min(busy_[std::string{id}]++, 10);
    return std::min(min_busy_delay * (1 << times), max_busy_delay);
}

// ---- loops

task<void> queue_crew::handle(std::shared_ptr<queue_crew> self, raw_item& item) {
    std::exception_ptr problem;
    try {
        auto working = with_stop_token(self->as_task_(item), self->halt_.get_token());
        co_await std::move(working);
    } catch (...) {
        problem = std::current_exception();
    }
    if (!self->depot_->owner()->home().here()) {  // the handler went on elsewhere
        try {
            engine::pause turn{self->depot_->owner(), 0ms};
            co_await turn;
        } catch (cancelled_error const&) {
            // The client is closed: there are no turns any more.
        }
    }
    if (problem) self->threw(item, problem);
    else self->returned(item);
}

task<void> queue_crew::work(std::shared_ptr<queue_crew> self) {
    while (!self->stopping_) {
        if (auto const delay = self->begin_take()) {
            auto waiting = doorbell::wait(self->depot_->owner(), self->changed_, *delay);
            co_await std::move(waiting);
            if (self->stopping_) self->changed_.ring();  // the others, too
            engine::pause turn{self->depot_->owner(), 0ms};
            co_await turn;
            continue;
        }
        std::optional<raw_item> item;
        std::exception_ptr problem;
        bool is_closed = false;
        try {
            auto taking = take(self->depot_, self->tally_, raw_queue::until::max(), &self->stopping_);
            item = co_await std::move(taking);
        } catch (cancelled_error const&) {
            is_closed = true;
        } catch (...) {
            problem = std::current_exception();
        }
        if (item) {
            self->begin(*item);
            auto handling = handle(self, *item);
            co_await std::move(handling);
        }
        self->end_take();
        if (is_closed) co_return;
        if (problem) {
            self->report(problem);
            auto resting = doorbell::wait(self->depot_->owner(), self->changed_, rest_after_failure);
            co_await std::move(resting);
            if (self->stopping_) self->changed_.ring();
        }
    }
}

void queue_crew::work_on_thread(std::shared_ptr<queue_crew> self) {
    auto const rest = [&](milliseconds time) {
        std::unique_lock guard{self->mutex_};
        self->stopped_.wait_for(guard, time, [&] { return self->stopping_.load(); });
    };
    while (!self->stopping_) {
        if (auto const delay = self->begin_take()) {
            rest(*delay);
            continue;
        }
        std::optional<raw_item> item;
        std::exception_ptr problem;
        bool is_closed = false;
        try {
            item = sync_wait(take(self->depot_, self->tally_, raw_queue::until::max(), &self->stopping_));
        } catch (cancelled_error const&) {
            is_closed = true;
        } catch (...) {
            problem = std::current_exception();
        }
        if (item) {
            self->begin(*item);
            try {
                self->on_thread_(*item);
                self->returned(*item);
            } catch (...) {
                self->threw(*item, std::current_exception());
            }
        }
        self->end_take();
        if (is_closed) return;
        if (problem) {
            self->report(problem);
            rest(rest_after_failure);
        }
    }
}

// ---- the end

void queue_crew::request_stop() noexcept {
    {
        std::lock_guard const guard{mutex_};
        stopping_ = true;
    }
    stopped_.notify_all();
    changed_.ring();
    auto const owner = depot_->owner();
    if (!owner->same_process()) return;
    owner->home().post([self = shared_from_this()] { self->depot_->dismiss(&self->stopping_); });
}

void queue_crew::ask_handlers_to_stop() noexcept {
    asked_to_stop_ = true;
    {
        std::lock_guard const guard{items_mutex_};
        for (auto* const one : in_progress_) one->ask_to_stop();
    }
    halt_.request_stop();
}

void queue_crew::give_back_all() noexcept {
    std::lock_guard const guard{items_mutex_};
    for (auto* const one : std::exchange(in_progress_, {})) one->postpone_soon(0ms);
}

task<bool> queue_crew::ended_by(std::shared_ptr<queue_crew> self, clock::time_point until) {
    ending all{self, until};
    co_await all;
    co_return self->loops_ == 0;
}

task<void> queue_crew::stop(std::shared_ptr<queue_crew> self) {
    self->request_stop();
    auto waiting = ended_by(self, clock::time_point::max());
    co_await std::move(waiting);
    flusher said{self->depot_};
    co_await said;
}

task<bool> queue_crew::stop_within(std::shared_ptr<queue_crew> self, milliseconds limit) {
    auto const until = clock::now() + std::clamp<milliseconds>(limit, 0ms, 24h);
    self->request_stop();
    self->ask_handlers_to_stop();
    auto waiting = ended_by(self, until);
    bool const all = co_await std::move(waiting);
    if (!all) self->give_back_all();
    flusher said{self->depot_, std::max(until, clock::now() + time_to_tell)};
    co_await said;
    co_return all;
}

task<void> queue_crew::end(std::shared_ptr<queue_crew> self) {
    self->request_stop();
    auto waiting = ended_by(self, clock::now() + self->how_.stop_limit);
    bool const all = co_await std::move(waiting);
    if (!all) {
        auto stopping = stop_within(self, time_to_end);
        co_await std::move(stopping);
    }
    auto last = stop(self);
    co_await std::move(last);
}

void queue_crew::finish() noexcept {
    if (!depot_->owner()->same_process()) return;
    request_stop();
    std::vector<std::jthread> threads;
    {
        std::lock_guard const guard{mutex_};
        threads = std::move(threads_);
    }
    bool const may_wait = depot_->owner()->may_block();
    for (auto& one : threads) {
        if (one.get_id() == std::this_thread::get_id() || !may_wait) one.detach();
    }
    threads.clear();
}

// ---- raw_worker

raw_worker::raw_worker(raw_queue const& from, consume_options const& how, on_thread handler) : crew_(std::make_shared<queue_crew>(from, how)) {
    crew_->run(std::move(handler));
}
raw_worker::raw_worker(raw_queue const& from, consume_options const& how, as_task handler) : crew_(std::make_shared<queue_crew>(from, how)) {
    crew_->run(std::move(handler));
}

raw_worker& raw_worker::operator=(raw_worker&& other) noexcept {
    raw_worker before{std::move(*this)};
    crew_ = std::move(other.crew_);
    return *this;
}

raw_worker::~raw_worker() {
    if (!crew_) return;
    try {
        if (crew_->place().owner()->may_block()) sync_wait(queue_crew::end(crew_));
    } catch (error const&) {
        // The client is closed, and with that all have ended.
    }
    crew_->finish();
}

void raw_worker::request_stop() noexcept { crew_->request_stop(); }
void raw_worker::stop(std::stop_token token) {
    crew_->place().what().require_blocking();
    sync_wait(async_stop(), std::move(token));
}
bool raw_worker::stop(milliseconds limit, std::stop_token token) {
    crew_->place().what().require_blocking();
    return sync_wait(async_stop_within(limit), std::move(token));
}
task<void> raw_worker::async_stop() { return queue_crew::stop(crew_); }
task<bool> raw_worker::async_stop_within(milliseconds limit) { return queue_crew::stop_within(crew_, limit); }
std::uint64_t raw_worker::done() const noexcept { return crew_->done(); }
std::uint64_t raw_worker::failed() const noexcept { return crew_->failed(); }

}  // namespace lockstep::detail
