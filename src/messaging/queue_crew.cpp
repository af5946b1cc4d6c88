#include "messaging/queue_crew.hpp"

#include "lease/pause.hpp"
#include "messaging/message_counts.hpp"
#include "messaging/raw_queue_parts.hpp"

#include <lockstep/error.hpp>
#include <lockstep/log.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace lockstep::detail {
namespace {

using namespace std::chrono_literals;
using std::chrono::milliseconds;

constexpr milliseconds rest_after_failure = 1s;  // when nothing could be taken

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

/// Waits until all loops have ended.
class queue_crew::ending final : public engine::awaiter {
public:
    explicit ending(std::shared_ptr<queue_crew> of) noexcept : crew_(std::move(of)) {}
    ~ending() { withdraw(); }
    void finish() noexcept { resume_soon(); }

private:
    std::shared_ptr<core> const& owner() const noexcept override { return crew_->depot_->owner(); }
    void enter() override {
        if (crew_->loops_ == 0) return finish();
        crew_->waiting_.push_back(*this);
    }
    void leave() noexcept override { unlink(); }

    std::shared_ptr<queue_crew> crew_;
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

void queue_crew::returned(raw_item& from) noexcept {
    ++done_;
    queue_tally::count(tally_->handled);
    from.ack_soon([weak = weak_from_this()](std::exception_ptr why) {
        if (auto const self = weak.lock()) self->report(std::move(why));
    });
}

void queue_crew::threw(raw_item& from, std::exception_ptr why) noexcept {
    ++failed_;
    queue_tally::count(tally_->failed);
    auto delay = how_.backoff;
    for (auto doublings = std::min(from.deliveries() - 1, 30); doublings > 0 && delay < how_.max_backoff; --doublings) delay *= 2;
    from.nack_soon(std::min(delay, how_.max_backoff), text_of(why));
}

task<void> queue_crew::work(std::shared_ptr<queue_crew> self) {
    while (!self->stopping_) {
        std::optional<raw_item> item;
        std::exception_ptr problem;
        try {
            auto taking = take(self->depot_, self->tally_, raw_queue::until::max(), &self->stopping_);
            item = co_await std::move(taking);
        } catch (cancelled_error const&) {
            co_return;
        } catch (...) {
            problem = std::current_exception();
        }
        if (problem) {
            self->report(problem);
            engine::pause rest{self->depot_->owner(), rest_after_failure};
            co_await rest;
            continue;
        }
        if (!item) continue;
        try {
            auto working = self->as_task_(*item);
            co_await std::move(working);
        } catch (...) {
            problem = std::current_exception();
        }
        if (!self->depot_->owner()->home().here()) {  // the handler went on elsewhere
            engine::pause turn{self->depot_->owner(), 0ms};
            co_await turn;
        }
        if (problem) self->threw(*item, problem);
        else self->returned(*item);
    }
}

void queue_crew::work_on_thread(std::shared_ptr<queue_crew> self) {
    while (!self->stopping_) {
        std::optional<raw_item> item;
        try {
            item = sync_wait(take(self->depot_, self->tally_, raw_queue::until::max(), &self->stopping_));
        } catch (cancelled_error const&) {
            return;
        } catch (...) {
            self->report(std::current_exception());
            std::unique_lock guard{self->mutex_};
            std::condition_variable_any().wait_for(guard, rest_after_failure, [&] { return self->stopping_.load(); });
            continue;
        }
        if (!item) continue;
        try {
            self->on_thread_(*item);
            self->returned(*item);
        } catch (...) {
            self->threw(*item, std::current_exception());
        }
    }
}

void queue_crew::request_stop() noexcept {
    stopping_ = true;
    auto const owner = depot_->owner();
    if (!owner->same_process()) return;
    owner->home().post([self = shared_from_this()] { self->depot_->dismiss(&self->stopping_); });
}

task<void> queue_crew::stop(std::shared_ptr<queue_crew> self) {
    self->request_stop();
    ending all{self};
    co_await all;
    flusher said{self->depot_};
    co_await said;
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
        if (crew_->place().owner()->may_block()) stop({});
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
task<void> raw_worker::async_stop() { return queue_crew::stop(crew_); }
std::uint64_t raw_worker::done() const noexcept { return crew_->done(); }
std::uint64_t raw_worker::failed() const noexcept { return crew_->failed(); }

}  // namespace lockstep::detail
