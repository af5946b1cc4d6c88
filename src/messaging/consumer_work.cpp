#include "messaging/consumer_state.hpp"

#include "base/quiet_thread.hpp"
#include "base/random.hpp"
#include "messaging/stream_read.hpp"
#include "scripts/all.hpp"

#include <lockstep/error.hpp>
#include <lockstep/idempotency.hpp>
#include <lockstep/later.hpp>
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

namespace {
using std::chrono::milliseconds;
milliseconds shortest_probe(consumer_options const& options) { return std::clamp(options.retry_min / 10, milliseconds{1}, milliseconds{100}); }
milliseconds longest_probe(consumer_options const& options) { return std::min(options.retry_max, milliseconds{10'000}); }
}  // namespace

consumer_state::consumer_state(keyed at, delivery_handler handler, consumer_options options, milliseconds grace)
    : at_(std::move(at)), handler_(std::move(handler)), options_(std::move(options)), grace_(grace), dead_key_(at_.key_of("dead")),
      taken_key_(at_.key_of("taken:" + options_.group)), returned_key_(at_.key_of("returned:" + options_.group)),
      circuit_(shortest_probe(options_), longest_probe(options_)), all_counts_(message_counts::of(*at_.owner())), looks_for_unheard_(true),
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
    hurried_ = true;
    abandoned_ = true;
    give_back_waiting();
    if (settled_.size() != 0) {
        wake_flusher(std::move(guard));
    } else {
        guard.unlock();
    }
    stop_handlers_.request_stop();
    work_.notify_all();
    for (auto* const bell : {&room_, &chores_, &retreat_, &patience_, &drained_}) bell->ring();
}

// ---- what comes

bool consumer_state::is_known(std::string_view id) const {
    std::lock_guard const guard{mutex_};
    return held_.contains(entry_number::of(id));
}

void consumer_state::drop(entry_number id) {
    held_.erase(id);
    make_room();
}

void consumer_state::accept(std::vector<found> entries, origin from) {
    std::unique_lock guard{mutex_};
    auto const now = clock::now();
    std::uint64_t received = 0;
    std::size_t largest = 1;
    for (auto const& one : entries) largest = std::max(largest, bytes_of(one.fields));
    entry_bytes_ = std::max(largest, entry_bytes_ - entry_bytes_ / 8);
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
        if (one.too_large > 0) {
            made.where = place::settling;
            settled_.dead.push_back({&made, fmt::format("it has {} bytes, more than max_reply_bytes ({}) allows", one.too_large, at_.owner()->options().max_reply_bytes)});
        } else if (options_.max_deliveries > 0 && one.deliveries > options_.max_deliveries) {
            // Nobody threw: whoever had it died of it, or with it.
            made.where = place::settling;
            settled_.dead.push_back({&made, fmt::format("delivered {} times and never acknowledged", one.deliveries - 1)});
        } else if (hurried_ || ended_ || held_.size() > options_.max_pending || (circuit_.is_open() && !line_.empty())) {
            give_back_uncounted(made);  // nothing begins any more, or no more than this for now; or read and taken over together are too many
        } else {
            line_.push_back(&made);
        }
    }
    count(&consumer_statistics::received, received);
    if (from == origin::recovered) count(&consumer_statistics::recovered, received);
    if (from == origin::returned) count(&consumer_statistics::retried, received);
    if (settled_.size() != 0) {
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

std::size_t consumer_state::free_places() const { return options_.max_pending - std::min(options_.max_pending, held_.size()); }

std::size_t consumer_state::readable() const {
    auto const most = wanted();
    if (2 * line_.size() > most) return 0;
    return std::min({options_.batch, most - std::min(line_.size(), most - 1), free_places()});
}

void consumer_state::make_room() noexcept {
    if (!reader_waits_ || circuit_.is_open() || readable() == 0) return;
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
    if (!failed && !is_ours) {
        self->drop(what.id);  // somebody else has it
    } else if (self->hurried_) {
        self->give_back_uncounted(what);
    } else {
        self->try_here_again(what, self->pause_after(1));
    }
    bool const is_over = self->is_drained() || self->abandoned_;
    if (self->settled_.size() != 0) {
        self->wake_flusher(std::move(guard));
    } else {
        guard.unlock();
    }
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
        work_.wait(guard, [this] { return ended_ || gap_untold_ || !line_.empty(); });
        if (std::exchange(gap_untold_, false)) {
            guard.unlock();
            tell_gap();
            continue;
        }
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
    if (std::exchange(gap_untold_, false)) {
        guard.unlock();
        tell_gap();
        guard.lock();
    }
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
struct outcome {
    enum class kind { success, rejected, busy, later, failure };
    kind is = kind::success;
    std::string reason{};
    milliseconds delay{};  // of `later`
};
outcome outcome_of(std::exception_ptr const& problem) {
    if (!problem) return {};
    try {
        std::rethrow_exception(problem);
    } catch (reject const& refusal) {
        return {.is = outcome::kind::rejected, .reason = refusal.what()};
    } catch (busy_error const& refusal) {
        return {.is = outcome::kind::busy, .reason = refusal.what()};
    } catch (later const& wish) {
        return {.is = outcome::kind::later, .reason = wish.what(), .delay = wish.delay()};
    } catch (std::exception const& failure) {
        return {.is = outcome::kind::failure, .reason = failure.what()};
    } catch (...) {
        return {.is = outcome::kind::failure, .reason = "something that is no std::exception was thrown"};
    }
}
}  // namespace

void consumer_state::log_failure(held const& entry, std::string const& reason) {
    auto const count = failures_logged_.add(clock::now());
    if (count == 0) return;
    log(log_level::warning, fmt::format("the handler of stream '{}', group '{}' threw at entry {} (delivery {}): {}{}", at_.name(), options_.group, entry.what.id,
                                        entry.what.deliveries, reason,
                                        count == 1 ? std::string{} : fmt::format(" (the last of {} failures)", count)));
}

void consumer_state::try_here_again(held& entry, milliseconds delay) {
    entry.where = place::again;
    again_.emplace(clock::now() + delay, &entry);
}

void consumer_state::finish(held& what, std::exception_ptr problem) noexcept {
    using enum outcome::kind;
    auto ended = outcome_of(problem);
    auto const now = clock::now();
    auto const deliveries = what.what.deliveries;
    if (ended.is == failure || ended.is == rejected) log_failure(what, ended.reason);
    std::unique_lock guard{mutex_};
    if (--running_ == 0) rested_.notify_all();
    if (abandoned_) drained_.ring();
    auto const took = std::max(1.0, std::chrono::duration<double, std::micro>(now - what.begun).count());
    average_us_ = average_us_ <= 0 ? took : average_us_ + (took - average_us_) / 16;
    bool const closed = (ended.is == success || ended.is == rejected) && circuit_.succeeded();
    bool const opened = ended.is == failure && circuit_.failed(what.begun, now);
    bool const tells = opened && openings_logged_.add(now) > 0;
    if (ended.is == failure || ended.is == rejected) count(&consumer_statistics::failed);
    what.busy = ended.is == busy ? what.busy + 1 : 0;
    if (ended.is == success) {
        what.where = place::settling;
        settled_.done.push_back(&what);
    } else if (what.is_returned) {
        drop(what.id);  // somebody else's by now
    } else if (ended.is == rejected || (ended.is == failure && options_.max_deliveries > 0 && deliveries >= options_.max_deliveries)) {
        what.where = place::settling;
        settled_.dead.push_back({&what, std::move(ended.reason)});
    } else if (ended.is == later) {
        count(&consumer_statistics::postponed);
        give_back_uncounted(what, ended.delay);
    } else if (ended.is == busy) {
        // Another is at it, or was, and died: then it takes as long as the lease of that one.
        auto const delay = pause_after(what.busy);
        if (stopping_) {
            give_back_uncounted(what, delay);
        } else {
            try_here_again(what, delay);
        }
    } else if (stopping_ || circuit_.is_open() || std::exchange(what.failed_here, true)) {
        give_back(what, deliveries, pause_after(deliveries));
    } else {
        try_here_again(what, pause_after(deliveries));
    }
    if (opened) give_back_waiting();
    if (closed) make_room();
    bool const is_over = is_drained();
    if (settled_.size() != 0) {
        wake_flusher(std::move(guard));
    } else {
        guard.unlock();
    }
    if (ended.is != success || closed) chores_.ring();
    if (tells) {
        log(log_level::warning, fmt::format("consumer '{}' of stream '{}', group '{}' slows down: its handlers failed {} times in a row; until one succeeds it tries an "
                                            "entry now and then, and leaves the others to the group", options_.name, at_.name(), options_.group, failure_circuit::failures_to_open));
    }
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
    returning_ = 0;
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
