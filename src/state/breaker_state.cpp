#include "state/breaker_state.hpp"

#include "base/host.hpp"
#include "base/random.hpp"
#include "base/words.hpp"
#include "core/subscription.hpp"
#include "lease/pause.hpp"
#include "scripts/all.hpp"
#include "state/state_object.hpp"

#include <lockstep/error.hpp>
#include <lockstep/log.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace lockstep::detail {
namespace {

using std::chrono::milliseconds;
using namespace std::chrono_literals;

constexpr milliseconds longest_retry = 5s;  // between attempts to subscribe
constexpr std::int64_t longest_wait_ms = 1'000'000'000'000;  // of what is pushed

std::optional<circuit> parse(std::string_view word) noexcept {
    for (auto const one : {circuit::closed, circuit::open, circuit::half_open}) {
        if (word == to_string(one)) return one;
    }
    return std::nullopt;
}

std::string rules_of(circuit_breaker_options const& how, bool shard) {
    return fmt::format("{} {:.0f} {} {} {} {} {} {} {} {}", how.failure_threshold, how.failure_ratio * 1e6, how.minimum_calls, how.quorum_of_reporters,
                       how.sampling.count(), how.recovery_timeout.count(), how.half_open_probes, how.successes_to_close, how.probe_lease.count(), shard ? 1 : 0);
}

/// As one word.
std::string host_of() {
    auto name = base::host_name();
    for (auto& one : name) {
        if (one <= ' ' || one == '@' || one > '~') one = '_';
    }
    return name.empty() ? "_" : name;
}

}  // namespace

breaker_state::breaker_state(client& by, std::string_view name, circuit_breaker_options options)
    : object_(by, name, "breaker"), how_(std::move(options)), rules_(rules_of(how_, object_.owner()->is_cluster())), session_(base::random_id()),
      host_(host_of()), window_(how_.sampling) {}

// ---- calls, from any thread

breaker_state::stripe& breaker_state::mine(std::array<stripe, 8>& all) noexcept {
    static std::atomic<std::size_t> threads{0};
    thread_local std::size_t const number = threads.fetch_add(1, std::memory_order_relaxed);
    return all[number % all.size()];
}

outcome_counts breaker_state::counted() const noexcept {
    outcome_counts all;
    for (auto const& one : stripes_) all += {.ok = one.ok, .failed = one.failed};
    return all;
}

void breaker_state::count(std::uint64_t generation, bool ok) noexcept {
    // Begun before the latest change: it says nothing of how things are since.
    if (gate_.load(std::memory_order_relaxed) >> 1U != generation) return;
    auto& to = mine(stripes_);
    // Counted first, then looked whether a report is due, both in the one order of all threads: report_later() does it the other way round.
    (ok ? to.ok : to.failed).fetch_add(1);
    if (!is_due_.load() && !is_due_.exchange(true)) report_soon();
    if (ok || is_reported_bad_.load(std::memory_order_relaxed)) return;
    auto so_far = counted();
    so_far += {.ok = server_ok_.load(std::memory_order_relaxed), .failed = server_failed_.load(std::memory_order_relaxed)};
    if (!is_bad(how_, so_far) || !object_.owner()->same_process()) return;
    // Once in each interval, whatever comes of it: the server may have a reason not to open that no report changes.
    auto const now = clock::now();
    auto from = urgent_from_.load(std::memory_order_relaxed);
    auto const next = (now + how_.report_interval).time_since_epoch().count();
    if (now.time_since_epoch().count() < from || !urgent_from_.compare_exchange_strong(from, next)) return;
    object_.owner()->home().post([weak = weak_from_this()] {
        if (auto const self = weak.lock()) self->report_early();
    });
}

void breaker_state::report_soon() noexcept {
    if (!object_.owner()->same_process()) return;
    object_.owner()->home().post([weak = weak_from_this()] {
        auto const self = weak.lock();
        if (!self) return;
        self->begin();
        start(report_later(self->object_.owner(), weak), [](std::exception_ptr) {});
    });
}

breaker_state::judgement breaker_state::judge() {
    auto const now = clock::now();
    std::lock_guard const guard{mutex_};
    auto& known = effective();
    if (!known.is_known) return {.what = verdict::look};
    if (!looks_ && !is_local_ && now - known.heard > how_.max_age) {
        looks_ = true;
        object_.owner()->home().post([self = shared_from_this()] {
            start(look(self), [self](std::exception_ptr) {
                std::lock_guard const held{self->mutex_};
                self->looks_ = false;
            });
        });
    }
    if (known.state == circuit::closed) return {.what = verdict::go, .pass = {.generation = gate_.load() >> 1U}};
    auto const wait = std::chrono::ceil<milliseconds>(known.reopens - now);
    if (known.state == circuit::open && (known.held || wait.count() > 0)) return {.what = verdict::refused, .retry_after = known.held ? -1ms : wait};
    if (is_local_) {
        if (known.state == circuit::open) {
            auto const before = status_here();
            known.state = circuit::half_open;
            local_probes_.clear();
            local_successes_ = 0;
            object_.owner()->home().post([self = shared_from_this(), before] {
                circuit_status after;
                {
                    std::lock_guard const held{self->mutex_};
                    after = self->follow(before);
                }
                self->tell(before, after);
            });
        }
        std::erase_if(local_probes_, [&](auto const& one) { return one.second <= now; });
        if (std::ssize(local_probes_) >= how_.half_open_probes) return {.what = verdict::refused};
        auto probe = fmt::format("{}{}", local_probe, ++probes_made_);
        local_probes_[probe] = now + how_.probe_lease;
        return {.what = verdict::go, .pass = {.generation = gate_.load() >> 1U, .probe = std::move(probe)}};
    }
    // As many may ask as could be granted; the others need not.
    if (asking_ >= how_.half_open_probes || now < no_probe_before_) return {.what = verdict::refused};
    return {.what = verdict::probe};
}

void breaker_state::refuse(judgement const& why) const {
    if (why.retry_after.count() < 0) throw circuit_open_error(fmt::format("circuit breaker '{}' is open", object_.name()));
    throw circuit_open_error(fmt::format("circuit breaker '{}' is open; it is tried again in {} ms", object_.name(), why.retry_after.count()));
}

circuit_status breaker_state::status_here() const {
    auto const& known = effective();
    auto const now = clock::now();
    auto const wait = std::chrono::ceil<milliseconds>(known.reopens - now);
    auto const since = server_.heard == clock::time_point{} ? now : server_.heard;
    return {.state = known.state,
            .version = known.version,
            .age = std::chrono::floor<milliseconds>(now - since),
            .retry_after = known.state == circuit::open && !known.held ? std::max(wait, 0ms) : 0ms,
            .held = known.state == circuit::open && known.held,
            .local = is_local_ || !known.is_known};
}

circuit_status breaker_state::status() const {
    std::lock_guard const guard{mutex_};
    return status_here();
}

// ---- what is known

void breaker_state::begin() noexcept {
    if (std::exchange(begun_, true)) return;
    start(listen(object_.owner(), weak_from_this()), [](std::exception_ptr) {});
}

task<void> breaker_state::listen(std::shared_ptr<core> owner, std::weak_ptr<breaker_state> which) {
    milliseconds rests = 100ms;
    while (true) {
        auto self = which.lock();
        if (!self) co_return;
        subscription_options how;
        how.channel = self->object_.key();
        how.kind = owner->is_cluster() ? subscription_kind::shard : subscription_kind::channel;
        how.handler = [which](message const& one) {
            if (auto const alive = which.lock()) alive->heard(one.payload);
        };
        how.on_gap = [which] {
            if (auto const alive = which.lock()) start(look(alive), [](std::exception_ptr) {});
        };
        self.reset();
        try {
            auto opening = open_subscription(owner, std::move(how));
            auto ear = co_await std::move(opening);
            self = which.lock();
            if (!self) co_return;
            self->ear_ = std::move(ear);
            // What happened before it was in force has not been told.
            start(look(self), [](std::exception_ptr) {});
            co_return;
        } catch (cancelled_error const&) {
            co_return;
        } catch (unavailable_error const&) {
        } catch (error const& problem) {
            // Without pushes it learns with its reports, and by looking again after `max_age`.
            log(log_level::error, fmt::format("no pushes for a circuit breaker: {}", problem.what()));
            co_return;
        }
        engine::pause rest{owner, rests};
        co_await rest;
        rests = std::min(rests * 2, longest_retry);
    }
}

void breaker_state::heard(std::string_view payload) noexcept {
    // <state> <version> <since_ms> <wait_ms> <now_ms>; anybody can publish, and what is none of ours is passed over
    auto const state = parse(base::cut(payload, ' '));
    auto const version = base::number_in<std::uint64_t>(base::cut(payload, ' '));
    base::cut(payload, ' ');
    auto const wait = base::number_in<std::int64_t>(base::cut(payload, ' '));
    if (!state || !version || !wait || *wait > longest_wait_ms) return;
    auto const now = clock::now();
    bool const held = *state == circuit::open && *wait < 0;
    adopt({.state = *state, .version = *version, .reopens = now + milliseconds{std::max<std::int64_t>(*wait, 0)}, .held = held, .heard = now}, {}, true);
}

void breaker_state::adopt_reply(reply_view said, clock::time_point asked, bool wrote) noexcept {
    try {
        auto const state = parse(said[0].text());
        if (!state) throw_unexpected_answer(object_);
        auto const wait = said[3].as<std::int64_t>();
        adopt({.state = *state, .version = said[1].as<std::uint64_t>(), .reopens = asked + milliseconds{wait}, .held = wait < 0, .heard = asked}, asked, wrote);
    } catch (error const& problem) {
        log(log_level::error, fmt::format("circuit breaker '{}': {}", object_.name(), problem.what()));
    }
}

/// `asked`: before the question that this answers; nothing: it was pushed.
void breaker_state::adopt(seen said, std::optional<clock::time_point> asked, bool wrote) noexcept {
    circuit_status before, now;
    {
        std::lock_guard const guard{mutex_};
        before = status_here();
        said.is_known = true;
        // Older news that came late. But what was asked for since is how it is, even if the number is smaller: the server has forgotten.
        if (said.version < server_.version && (!asked || *asked < server_.changed)) return;
        if (is_local_ && !wrote) {
            // Under this version the counts of one that never saw the server can be reported.
            if (!server_.is_known) server_ = said;
            return;
        }
        bool const is_later = server_.is_known && said.version != server_.version;  // than what was counted
        bool const is_new = !server_.is_known || said.version != server_.version || said.state != server_.state;
        said.changed = is_new ? clock::now() : server_.changed;
        server_ = said;
        bool const was_local = std::exchange(is_local_, false);
        if (!is_new && !was_local) return;
        no_probe_before_ = {};
        if (was_local) {
            local_ = {};
            refusals_.clear();
        }
        now = follow(before, is_later);
    }
    tell(before, now);
}

void breaker_state::note(error const& problem) noexcept {
    if (problem.reason() != errc::server) return;
    // It may refuse for good (a key of another kind, a right that is missing), and then nothing else tells.
    if (refusals_.size() < most_refusals && refusals_.emplace(problem.what()).second) {
        log(log_level::error, fmt::format("a circuit breaker goes by the counts of this process alone: {}", problem.what()));
    }
}

void breaker_state::go_local(error const& problem) noexcept {
    note(problem);
    decide_here();
}

void breaker_state::decide_here() noexcept {
    circuit_status before, now;
    {
        std::lock_guard const guard{mutex_};
        before = status_here();
        if (!std::exchange(is_local_, true)) {
            local_ = server_;  // what was open stays so, and what is held by hand until the server says otherwise
            local_.is_known = true;
            local_probes_.clear();
            local_successes_ = 0;
            if (local_.state == circuit::half_open) {
                local_.state = circuit::open;
                local_.reopens = clock::now();
            }
            if (!std::exchange(recovering_, true)) start(recover(object_.owner(), weak_from_this()), [](std::exception_ptr) {});
        }
        if (local_.state == circuit::closed && is_bad(how_, window_.sum(clock::now()))) {
            local_.state = circuit::open;
            local_.reopens = clock::now() + how_.recovery_timeout;
            window_.clear();
        }
        now = follow(before);
    }
    tell(before, now);
}

/// With the lock, and together with what it follows, so that no call goes where `state` says that none may. The counts are of one state only.
circuit_status breaker_state::follow(circuit_status const& before, bool is_later) noexcept {
    auto const now = status_here();
    bool const is_other = is_later || before.state != now.state;
    auto const generation = (gate_.load() >> 1U) + (is_other ? 1 : 0);
    gate_.store(generation << 1U | (now.state == circuit::closed && effective().is_known ? 1U : 0U), std::memory_order_release);
    if (is_other) {
        for (auto& one : stripes_) one.ok = one.failed = 0;
        pending_ = {};
        sent_ = {};
        window_.clear();
        server_ok_ = server_failed_ = 0;
        is_reported_bad_ = false;
    }
    return now;
}

void breaker_state::tell(circuit_status const& before, circuit_status const& now) noexcept {
    if (before.state == now.state || !how_.on_change) return;
    try {
        how_.on_change({.from = before.state, .to = now.state, .version = now.version, .local = now.local});
    } catch (std::exception const& problem) {
        log(log_level::error, fmt::format("the handler of circuit breaker '{}' threw: {}", object_.name(), problem.what()));
    } catch (...) {
        log(log_level::error, fmt::format("the handler of circuit breaker '{}' threw", object_.name()));
    }
}

bool breaker_state::is_local() const noexcept {
    std::lock_guard const guard{mutex_};
    return is_local_;
}

/// Throws where nothing was heard in this time.
task<void> breaker_state::read(std::shared_ptr<breaker_state> self, milliseconds within) {
    auto const asked = clock::now();
    std::string_view const keys[] = {self->object_.key()};
    argument const words[] = {self->rules_, self->session_, 0, 0, 0, 0, 0, self->host_};
    auto asking = self->object_.run(scripts::breaker_report, keys, words, {.within = within});
    auto const said = co_await std::move(asking);
    self->adopt_reply(said, asked);
}

/// And where it decides by itself, a report, empty if need be: if that is taken, the server's state holds again.
task<void> breaker_state::ask(std::shared_ptr<breaker_state> self, milliseconds within) {
    auto reading = read(self, within);
    co_await std::move(reading);
    if (!self->is_local()) co_return;
    auto reporting = flush(self);
    co_await std::move(reporting);
}

task<void> breaker_state::look(std::shared_ptr<breaker_state> self) {
    engine::pause turn{self->object_.owner(), 0ms};
    co_await turn;
    self->begin();
    try {
        auto asking = ask(self, self->how_.server_timeout);
        co_await std::move(asking);
    } catch (error const& problem) {
        if (!is_silence(problem)) throw;
        self->go_local(problem);
    }
}

/// Until the server takes something again. A request waits for a connection, so this is no polling; but it does not wait for ever.
task<void> breaker_state::recover(std::shared_ptr<core> owner, std::weak_ptr<breaker_state> which) {
    milliseconds rests = 100ms;
    while (true) {
        engine::pause rest{owner, rests};
        co_await rest;
        rests = std::min(rests * 2, longest_retry);
        auto self = which.lock();
        if (!self) co_return;
        try {
            auto asking = ask(self, 0ms);
            co_await std::move(asking);
        } catch (cancelled_error const&) {
            throw;  // the client was closed
        } catch (error const& problem) {
            self->note(problem);
            continue;
        }
        std::lock_guard const guard{self->mutex_};
        if (self->is_local_) continue;
        self->recovering_ = false;
        co_return;
    }
}

task<void> breaker_state::set(std::shared_ptr<breaker_state> self, std::string_view to, std::int64_t span_ms) {
    engine::pause turn{self->object_.owner(), 0ms};
    co_await turn;
    self->begin();
    auto const asked = clock::now();
    change request{.script = &scripts::breaker_set, .keys = {self->object_.key()}, .words = {self->rules_, std::string{to}, std::to_string(span_ms)}};
    std::shared_ptr<state_object const> const at{self, &self->object_};
    auto setting = change_once(at, std::move(request));
    auto const said = co_await std::move(setting);
    self->adopt_reply(said, asked, true);
}

}  // namespace lockstep::detail
