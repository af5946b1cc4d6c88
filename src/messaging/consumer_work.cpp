#include "messaging/consumer_state.hpp"

#include "base/quiet_thread.hpp"
#include "base/random.hpp"
#include "scripts/all.hpp"

#include <lockstep/error.hpp>
#include <lockstep/idempotency.hpp>
#include <lockstep/log.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <utility>

namespace lockstep::detail {

entry_number entry_number::of(std::string_view id) noexcept {
    entry_number made;
    auto const end = id.data() + id.size();
    auto const [dash, problem] = std::from_chars(id.data(), end, made.ms);
    if (problem == std::errc{} && dash != end) std::from_chars(dash + 1, end, made.number);
    return made;
}

consumer_state::consumer_state(keyed at, delivery_handler handler, consumer_options options)
    : at_(std::move(at)), handler_(std::move(handler)), options_(std::move(options)), dead_key_(at_.key_of("dead")),
      taken_key_(at_.key_of("taken:" + options_.group)),
      all_counts_(message_counts::of(*at_.owner())), looks_for_unheard_(true),
      next_look_(since_ + milliseconds{base::random_below(static_cast<std::uint64_t>(options_.idle_limit.count()) + 1)}) {}

void consumer_state::begin() {
    auto const self = shared_from_this();
    reading_ = true;
    if (handler_.function) {
        try {
            threads_.reserve(options_.concurrency);
            for (std::size_t i = 0; i != options_.concurrency; ++i) threads_.push_back(base::quiet_thread([self] { self->work_as_thread(); }));
        } catch (...) {
            abandon();  // there can't be so many
            join();
            throw;
        }
    }
    start(read(self), [](std::exception_ptr) {});
    start(keep(self), [](std::exception_ptr) {});
}

namespace {
thread_local consumer_state const* works_for = nullptr;
}

void consumer_state::join() noexcept {
    if (works_for == this) return;  // stopped by its own handler: its threads go when that returns
    std::lock_guard const one_by_one{joining_};
    for (auto& one : threads_) {
        if (one.joinable()) one.join();
    }
    std::unique_lock guard{mutex_};
    rested_.wait(guard, [this] { return running_ == 0; });
}

void consumer_state::let_go() noexcept {
    for (auto& one : threads_) {
        if (one.joinable()) one.detach();  // they have this object
    }
}

void consumer_state::abandon() noexcept {
    std::unique_lock guard{mutex_};
    stopping_ = true;
    ended_ = true;
    abandoned_ = true;
    for (auto* const one : std::exchange(line_, {})) drop(one->id);
    guard.unlock();
    stop_handlers_.request_stop();
    work_.notify_all();
    for (auto* const bell : {&room_, &chores_, &retreat_, &patience_, &drained_}) bell->ring();
}

// ---- what comes

bool consumer_state::is_known(std::string_view id) const {
    std::lock_guard const guard{mutex_};
    return held_.contains(entry_number::of(id));
}

void consumer_state::drop(entry_number id) { held_.erase(id); }

void consumer_state::accept(std::vector<found> entries, bool recovered) {
    std::unique_lock guard{mutex_};
    if (ended_) return;  // nobody works any more: they stay pending
    auto const now = clock::now();
    std::uint64_t received = 0;
    for (auto& one : entries) {
        auto const id = entry_number::of(one.id);
        auto& place_of_it = held_[id];
        if (place_of_it) continue;  // it is here already
        place_of_it = std::make_unique<held>();
        auto& made = *place_of_it;
        made.id = id;
        made.renewed = now;
        made.what.id = std::move(one.id);
        made.what.fields = std::move(one.fields);
        made.what.deliveries = one.deliveries;
        made.what.stop = stop_handlers_.get_token();
        made.is_counted = one.is_counted;
        ++received;
        if (options_.max_deliveries > 0 && one.deliveries > options_.max_deliveries) {
            // Nobody threw: whoever had it died of it, or with it.
            made.where = place::settling;
            settled_.dead.push_back({&made, fmt::format("delivered {} times and never acknowledged", one.deliveries - 1)});
        } else {
            line_.push_back(&made);
        }
    }
    count(&consumer_statistics::received, received);
    if (recovered) count(&consumer_statistics::recovered, received);
    bool const has_dead = !settled_.dead.empty();
    if (has_dead) {
        wake_flusher(std::move(guard));
    } else {
        guard.unlock();
    }
    let_work();
}

void consumer_state::let_work() noexcept {
    if (handler_.function) {
        work_.notify_all();
    } else {
        pump();
    }
}

/// About half a second's work, so that a slow consumer leaves something for the others.
std::size_t consumer_state::wanted() const {
    if (average_us_ <= 0) return options_.concurrency;
    auto const fits = 500'000.0 * static_cast<double>(options_.concurrency) / average_us_;
    // Four batches: quick handlers need more ahead of them than it takes to wake the reader on another core.
    auto const most = std::max(4 * options_.batch, options_.concurrency);
    return fits >= static_cast<double>(most) ? most : std::max(options_.concurrency, static_cast<std::size_t>(fits));
}

// ---- who works

consumer_state::held* consumer_state::next_in_line() {
    auto* const next = line_.front();
    line_.pop_front();
    next->where = place::running;
    ++running_;
    make_room();
    return next;
}

void consumer_state::make_room() noexcept {
    if (!reader_waits_ || 2 * line_.size() > wanted()) return;
    reader_waits_ = false;
    room_.ring();
}

/// What was taken over counts as delivered when it begins, and before that: so an entry that kills its consumers is given up in the end, and not
/// together with those that only stood in line behind it. The server is told the number and does not add. False: it does not begin.
task<bool> consumer_state::count_delivery(std::shared_ptr<consumer_state> self, held& what) {
    bool is_ours = false;
    bool failed = false;
    try {
        std::string_view const keys[] = {self->at_.key(), self->taken_key_};
        std::vector<argument> const words{self->options_.group, self->options_.name, what.what.id, what.what.deliveries};
        auto asking = with_stop_token(self->at_.run(scripts::stream_begin, keys, words, {}), self->stop_handlers_.get_token());
        auto const said = co_await std::move(asking);
        is_ours = said.integer() == 1;
    } catch (cancelled_error const&) {
        failed = true;  // nobody waits any more, or the client is closed
    } catch (std::exception const& problem) {
        failed = true;
        self->complain("can't begin what it took over, and tries again", problem.what());
    }
    std::unique_lock guard{self->mutex_};
    auto const now = clock::now();
    if (is_ours && !self->abandoned_) {
        what.is_counted = true;
        what.renewed = what.begun = now;
        co_return true;
    }
    if (--self->running_ == 0) self->rested_.notify_all();
    if (failed || is_ours) {
        what.where = place::again;
        self->again_.emplace(now + self->pause_after(1), &what);
    } else {
        self->drop(what.id);  // somebody else has it
    }
    bool const is_over = self->is_drained() || self->abandoned_;
    guard.unlock();
    self->chores_.ring();
    if (is_over) self->drained_.ring();
    co_return false;
}

task<void> consumer_state::run_counted(std::shared_ptr<consumer_state> self, held& what) {
    auto counting = count_delivery(self, what);
    bool const begins = co_await std::move(counting);
    if (begins) {
        std::exception_ptr problem;
        try {
            auto working = self->handler_.coroutine(what.what);
            co_await std::move(working);
        } catch (...) {
            problem = std::current_exception();
        }
        self->finish(what, std::move(problem));
    }
    self->pump_at_home();
}

void consumer_state::work_as_thread() {
    works_for = this;
    while (true) {
        std::unique_lock guard{mutex_};
        work_.wait(guard, [this] { return ended_ || !line_.empty(); });
        if (line_.empty()) return;
        auto* const one = next_in_line();
        guard.unlock();
        one->begun = clock::now();
        if (!one->is_counted && !sync_wait(count_delivery(shared_from_this(), *one))) continue;
        std::exception_ptr problem;
        try {
            handler_.function(one->what);
        } catch (...) {
            problem = std::current_exception();
        }
        finish(*one, std::move(problem));
    }
}

void consumer_state::pump() noexcept {
    std::unique_lock guard{mutex_};
    if (pumping_) return;  // whoever pumps looks again
    pumping_ = true;
    while (running_ < options_.concurrency && !line_.empty()) {
        auto* const one = next_in_line();
        guard.unlock();
        one->begun = clock::now();
        if (!one->is_counted) {
            start(run_counted(shared_from_this(), *one), [](std::exception_ptr) {});
            guard.lock();
            continue;
        }
        auto done = [self = shared_from_this(), one](std::exception_ptr problem) {
            self->finish(*one, std::move(problem));
            self->pump_at_home();
        };
        try {
            start(handler_.coroutine(one->what), std::move(done));
        } catch (...) {
            finish(*one, std::current_exception());  // it did not even become a task
        }
        guard.lock();
    }
    pumping_ = false;
}

/// A handler may have gone on elsewhere; the next one begins on the I/O thread all the same.
void consumer_state::pump_at_home() noexcept {
    auto& home = at_.owner()->home();
    if (home.here()) return pump();
    home.post([self = shared_from_this()] { self->pump(); });  // refused: the client is closed, what waits stays pending
}

namespace {
enum class failing { rejected, busy, otherwise };
std::string reason_of(std::exception_ptr const& problem, failing& how) {
    try {
        std::rethrow_exception(problem);
    } catch (reject const& why) {
        how = failing::rejected;
        return why.what();
    } catch (busy_error const& why) {
        how = failing::busy;
        return why.what();
    } catch (std::exception const& why) {
        return why.what();
    } catch (...) {
        return "something that is no std::exception was thrown";
    }
}
}  // namespace

void consumer_state::finish(held& what, std::exception_ptr problem) noexcept {
    auto how = failing::otherwise;
    auto reason = problem ? reason_of(problem, how) : std::string{};
    auto const now = clock::now();
    auto const deliveries = what.what.deliveries;
    if (problem && how != failing::busy) {
        log(log_level::warning, fmt::format("the handler of stream '{}', group '{}' threw at entry {} (delivery {}): {}", at_.name(), options_.group,
                                            what.what.id, deliveries, reason));
    }
    std::unique_lock guard{mutex_};
    if (--running_ == 0) rested_.notify_all();
    if (abandoned_) drained_.ring();
    auto const took = std::max(1.0, std::chrono::duration<double, std::micro>(now - what.begun).count());
    average_us_ = average_us_ <= 0 ? took : average_us_ + (took - average_us_) / 16;
    if (!problem) {
        what.where = place::settling;
        settled_.done.push_back(&what);
        return wake_flusher(std::move(guard));
    }
    // Somebody is at it, or was, and died: then it takes as long as his lease.
    what.busy = how == failing::busy ? what.busy + 1 : 0;
    if (what.busy == 0) count(&consumer_statistics::failed);
    if (what.busy == 0 && (how == failing::rejected || (options_.max_deliveries > 0 && deliveries >= options_.max_deliveries))) {
        what.where = place::settling;
        settled_.dead.push_back({&what, std::move(reason)});
        return wake_flusher(std::move(guard));
    }
    what.where = place::again;
    again_.emplace(now + pause_after(what.busy > 0 ? what.busy : deliveries), &what);
    bool const is_over = is_drained();
    guard.unlock();
    chores_.ring();
    if (is_over) drained_.ring();
}

consumer_state::milliseconds consumer_state::pause_after(std::int64_t deliveries) const {
    auto pause = options_.retry_min;
    for (std::int64_t i = 1; i < deliveries && pause < options_.retry_max; ++i) pause *= 2;
    pause = std::min(pause, options_.retry_max);
    return pause - milliseconds{base::random_below(static_cast<std::uint64_t>(pause.count()) / 2 + 1)};
}

void consumer_state::wake_flusher(std::unique_lock<std::mutex> guard) noexcept {
    if (std::exchange(flushing_, true)) return;
    guard.unlock();
    if (at_.owner()->home().post([self = shared_from_this()] { start(flush(self), [](std::exception_ptr) {}); })) return;
    guard.lock();  // the client is closed: they stay pending
    flushing_ = false;
    settled_ = {};
    drained_.ring();
}

bool consumer_state::is_drained() const {
    return stopping_ && !reading_ && line_.empty() && running_ == 0 && settling_ == 0 && settled_.size() == 0;
}

// ---- what is said of it

void consumer_state::count_acknowledged(std::size_t number) {
    auto const second = std::chrono::duration_cast<std::chrono::seconds>(clock::now() - since_).count();
    for (auto passed = std::max(last_second_ + 1, second - static_cast<std::int64_t>(seconds_kept) + 1); passed <= second; ++passed) {
        per_second_[static_cast<std::size_t>(passed) % seconds_kept] = 0;
    }
    last_second_ = std::max(last_second_, second);
    per_second_[static_cast<std::size_t>(second) % seconds_kept] += number;
    count(&consumer_statistics::acknowledged, number);
}

void consumer_state::count(std::uint64_t consumer_statistics::*which, std::uint64_t more) {
    counters_.*which += more;
    all_counts_->count(which, more);
}

consumer_statistics consumer_state::statistics() const {
    std::lock_guard const guard{mutex_};
    auto made = counters_;
    made.waiting = line_.size() + again_.size();
    made.running = running_;
    auto const lived = std::chrono::duration<double>(clock::now() - since_).count();
    auto const second = static_cast<std::int64_t>(lived);
    double sum = 0;
    for (std::size_t i = 0; i != seconds_kept; ++i) {
        auto const which = second - static_cast<std::int64_t>(i);
        if (which >= 0 && which <= last_second_) sum += static_cast<double>(per_second_[static_cast<std::size_t>(which) % seconds_kept]);
    }
    made.per_second = sum / std::clamp(lived, 0.001, static_cast<double>(seconds_kept) - 1 + (lived - static_cast<double>(second)));
    return made;
}

void consumer_state::complain(std::string_view what, std::string_view problem) {
    auto text = fmt::format("consumer '{}' of stream '{}', group '{}' {}: {}", options_.name, at_.name(), options_.group, what, problem);
    {
        std::lock_guard const guard{mutex_};
        if (complaint_ == text) return;
        complaint_ = text;
    }
    log(log_level::warning, text);
}

void consumer_state::works_again() {
    std::lock_guard const guard{mutex_};
    complaint_.clear();
}

}  // namespace lockstep::detail
