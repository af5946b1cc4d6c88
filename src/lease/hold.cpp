#include "lease/hold.hpp"

#include "base/random.hpp"
#include "lease/caller.hpp"
#include "lease/hub.hpp"
#include "lease/room.hpp"

#include <lockstep/log.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <utility>

// A hold and those who have it: tenancies, renewals, and how it is given back. How it is obtained is in hold_requests.cpp.

namespace lockstep::engine {
namespace {

using base::boot_clock;
using std::chrono::milliseconds;
using std::chrono::nanoseconds;

std::int64_t in_ns(boot_clock::time_point time) noexcept { return time.time_since_epoch().count(); }

std::stop_token tripped() {
    static std::stop_source const source = [] {
        std::stop_source made;
        made.request_stop();
        return made;
    }();
    return source.get_token();
}

}  // namespace

hold::~hold() { hub_.alarm().forget(*this); }

// ---- from any thread

void hold::let_go() noexcept {
    if (references_.fetch_sub(1, std::memory_order_acq_rel) == 1) hub_.recycle(*this);
}

bool hold::is_valid(std::uint64_t tenancy) const noexcept { return remaining(tenancy) > milliseconds::zero(); }

milliseconds hold::remaining(std::uint64_t tenancy) const noexcept {
    auto const ends = ends_at_.load(std::memory_order_acquire);
    if (over(tenancy)) return milliseconds::zero();  // after the end was read: it belongs to this tenancy
    auto const left = nanoseconds{ends - in_ns(boot_clock::now())};
    return std::max(milliseconds::zero(), std::chrono::ceil<milliseconds>(left));
}

std::stop_token hold::stop_token(std::uint64_t tenancy) {
    if (!target_->where->owner()->same_process()) return tripped();
    std::lock_guard const guard{hub_.alarm().lock()};
    if (over(tenancy) || over_) return tripped();
    if (!stop_) stop_.emplace();
    return stop_->get_token();
}

std::stop_token hold::at_risk_token(std::uint64_t tenancy) {
    if (!target_->where->owner()->same_process()) return tripped();
    std::lock_guard const guard{hub_.alarm().lock()};
    if (over(tenancy) || at_risk_) return tripped();
    if (!risk_) risk_.emplace();
    return risk_->get_token();
}

void hold::leave(std::uint64_t tenancy, bool unused) noexcept {
    auto const owner = target_->where->owner();
    if (!owner->same_process() || over(tenancy)) return;
    if (owner->home().here()) return depart(unused);
    departure_.tenancy = tenancy;
    departure_.unused = unused;
    keep();
    if (!owner->home().hand_in(departure_)) let_go();
}

void hold::departure::arrive() noexcept {
    if (!self_.over(tenancy)) self_.depart(unused);
    self_.let_go();
}

void hold::depart(bool unused) noexcept {
    if (heard_by != nullptr) settle_caller(make_error(errc::not_held, "the lease was released meanwhile"));
    unused_ = unused;
    target_->where->released(*this);
}

void hold::drop_unused(lease& granted) noexcept {
    auto* const held = std::exchange(granted.hold_, nullptr);
    if (held == nullptr) return;
    held->leave(granted.tenancy_, true);
    held->let_go();
}

// ---- tenancies

alarm_clock::time_point hold::ring(alarm_clock::time_point now, std::vector<std::stop_source>& stops) noexcept {
    auto const ends = ends_at_.load(std::memory_order_relaxed);
    if (ends == 0 || over_) return alarm_clock::time_point::max();
    auto const trip = [&](std::optional<std::stop_source>& which) {
        if (which) stops.push_back(*std::exchange(which, std::nullopt));
    };
    if (in_ns(now) >= risk_at_ && !std::exchange(at_risk_, true)) trip(risk_);
    if (in_ns(now) < ends) return alarm_clock::time_point{nanoseconds{in_ns(now) < risk_at_ ? std::min(risk_at_, ends) : ends}};
    over_ = true;
    trip(stop_);
    return alarm_clock::time_point::max();
}

milliseconds hold::margin_of(milliseconds length) const noexcept {
    auto const most = target_->how.trust_for;
    return most.count() > 0 ? std::max(length / 10, length - most) : length / 10;
}

void hold::lower_end(milliseconds length) noexcept {
    auto& alarm = hub_.alarm();
    auto const trusted = length - margin_of(length);
    auto const end = in_ns(boot_clock::now() + trusted);
    std::lock_guard const guard{alarm.lock()};
    if (over_ || end >= ends_at_.load(std::memory_order_relaxed)) return;
    ends_at_.store(end, std::memory_order_release);
    risk_at_ = std::min(risk_at_, in_ns(boot_clock::now() + std::min(length * 2 / 3, trusted * 3 / 4)));
    alarm.set_locked(*this, alarm_clock::time_point{nanoseconds{at_risk_ ? end : std::min(risk_at_, end)}});
}

bool hold::set_end(milliseconds length, bool first) noexcept {
    auto& alarm = hub_.alarm();
    auto const now = in_ns(boot_clock::now());
    auto const trusted = length - margin_of(length);
    auto end = in_ns(sent_at_ + trusted);
    if (auto const most = target_->how.max_hold; most.count() > 0) {
        end = std::min(end, first ? now + nanoseconds{most}.count() : in_ns(held_since_ + most));
    }
    std::lock_guard const guard{alarm.lock()};
    if (!first && (over_ || now >= ends_at_.load(std::memory_order_relaxed))) return false;
    ends_at_.store(end, std::memory_order_release);
    risk_at_ = in_ns(sent_at_ + std::min(length * 2 / 3, trusted * 3 / 4));
    over_ = at_risk_ = false;
    alarm.set_locked(*this, alarm_clock::time_point{nanoseconds{std::min(risk_at_, end)}});
    return now < end;
}

bool hold::set_first_end(milliseconds length) noexcept {
    state_ = state::held;
    bool const in_time = set_end(length, true) && !std::exchange(evicted_, false);
    if (in_time) schedule_renewal();
    return in_time;
}

std::uint64_t hold::begin_tenancy(std::uint64_t with) noexcept {
    fence = with;
    unused_ = false;
    held_since_ = boot_clock::now();
    return tenancy_.load(std::memory_order_relaxed);
}

void hold::end_tenancy(ending how) noexcept {
    std::optional<std::stop_source> stop;
    std::optional<std::stop_source> risk;
    {
        std::lock_guard const guard{hub_.alarm().lock()};
        tenancy_.fetch_add(1, std::memory_order_release);
        stop = std::exchange(stop_, std::nullopt);
        risk = std::exchange(risk_, std::nullopt);
        if (how == ending::lost) over_ = true;
    }
    if (how == ending::released) return;
    if (risk) hub_.alarm().stop(std::move(*risk));
    if (stop) hub_.alarm().stop(std::move(*stop));
}

nanoseconds hold::left() const noexcept {
    return nanoseconds{ends_at_.load(std::memory_order_relaxed) - in_ns(boot_clock::now())};
}

hold::clock::time_point hold::end_as_steady() const noexcept { return hub_.reactor().now() + std::max(left(), nanoseconds{0}); }

void hold::lose(std::string_view why) noexcept {
    if (!hub_.is_closing()) {
        log(log_level::warning, fmt::format("the lease of '{}' (fence {}) is lost: {}", target_->where->name(), fence, why));
    }
    lost_ = true;
    end_tenancy(ending::lost);
    target_->where->count_loss(*this, why);
    settle_caller(make_error(errc::lease_lost, fmt::format("the lease of '{}' is lost: {}", target_->where->name(), why)));
    target_->where->lost(*this);
}

void hold::asked() noexcept {
    std::optional<std::stop_source> risk;
    {
        std::lock_guard const guard{hub_.alarm().lock()};
        at_risk_ = true;
        risk = std::exchange(risk_, std::nullopt);
    }
    target_->where->tell(trace_what::asked, *this, "somebody asks for it to be released");
    if (risk) hub_.alarm().stop(std::move(*risk));
}

void hold::evicted() noexcept {
    if (state_ == state::held) return lose("it was ended by force");
    evicted_ = state_ == state::asking || state_ == state::claiming;
}

// ---- holding

void hold::schedule_renewal() noexcept {
    auto const& how = target_->how;
    auto due = end_as_steady();
    if (how.renew) {
        auto const jitter = 0.8 + 0.4 * base::random_unit();
        auto const every = std::min<nanoseconds>(how.renew_every, left() / 2);  // it may have been extended to less
        due = std::min(due, hub_.reactor().now() + std::chrono::duration_cast<nanoseconds>(every * jitter));
    }
    hub_.schedule(*this, due);
}

void hold::renew() noexcept {
    auto length = std::max(target_->how.ttl, extended_to_);
    if (auto const most = target_->how.max_hold; most.count() > 0) {
        auto const rest = std::chrono::ceil<milliseconds>(held_since_ + most - boot_clock::now());
        length = std::clamp(rest + rest / 9 + milliseconds{2}, milliseconds{2}, length);  // it ends here at nine tenths of that
    }
    send_renewal(length);
}

void hold::send_renewal(milliseconds length) noexcept {
    ttl_ = length;
    renewing_ = true;
    next_set_number();
    lower_end(length);
    auto const time = std::clamp(std::chrono::ceil<milliseconds>(left()), milliseconds{1}, release_time);
    deadline_ms_ = target_->where->server_now() + time.count();
    send(state::held, std::max(end_as_steady(), hub_.reactor().now() + milliseconds{1}));
    hub_.schedule(*this, end_as_steady());
}

void hold::answered_renewal(answer const& said) noexcept {
    renewing_ = false;
    // What time it is there is known now; or another command overtook it.
    if ((said.what == word::late || said.what == word::older) && left() > nanoseconds{0}) return send_renewal(ttl_);
    change_to_ = -1;
    if (said.what != word::renewed && said.what != word::changed && said.what != word::busy) return lose("the server does not know it any more");
    if (said.what != word::busy && !set_end(milliseconds{said.left_ms}, false)) return lose("it was renewed too late");
    auto* const by = std::exchange(heard_by, nullptr);
    schedule_renewal();
    if (by == nullptr) return;
    if (by->what() == caller::wish::extend) extended_to_ = ttl_;
    if (by->what() == caller::wish::detach) detach();
    if (said.what == word::changed) {
        end_tenancy(ending::released);
        auto const tenancy = begin_tenancy(static_cast<std::uint64_t>(said.fence));
        keep();
        by->changed = make_lease(*this, tenancy, fence);
    }
    by->finish(nullptr);
}

void hold::prolong(caller& by, milliseconds length) {
    heard_by = &by;
    change_to_ = by.what() == caller::wish::change ? by.amount() : -1;
    send_renewal(by.what() == caller::wish::change ? std::max(length, extended_to_) : length);
}

void hold::detach() noexcept {
    end_tenancy(ending::released);
    ends_at_.store(0, std::memory_order_release);
    target_->where->detached(*this);
    finish();
}

void hold::act() noexcept {
    switch (state_) {
        case state::waiting: return target_->where->ask_again(*this);
        case state::held:
            if (left() <= nanoseconds{0}) {
                return lose(target_->how.max_hold.count() > 0 && boot_clock::now() + milliseconds{5} >= held_since_ + target_->how.max_hold
                                ? "it was held for as long as max_hold allows"
                            : target_->how.renew ? "it could not be renewed in time"
                                                 : "its time is over");
            }
            if (!may_renew()) return hub_.schedule(*this, end_as_steady());
            return renew();
        case state::watching:
        case state::owing:
            target_->where->no_longer_watched(*this);
            hub_.count_release(+1);
            leaving_ = false;
            return send(state::releasing, hub_.reactor().now() + release_time);
        default: return;
    }
}

// ---- giving back

void hold::give_back() noexcept {
    hub_.unschedule(*this);
    ends_at_.store(0, std::memory_order_release);
    hub_.count_release(+1);
    leaving_ = hub_.is_closing();
    owed_until_ = hub_.reactor().now() + std::max(ttl_, release_time);
    send(state::releasing, owed_until_);
}

void hold::give_back_when_over() noexcept {
    auto const wait = left() + margin_of(ttl_);
    if (left() > nanoseconds{0} || wait <= nanoseconds{0} || hub_.is_closing()) return give_back();
    if (where() != place::idle) abandon();  // a renewal: it does not run after the time for which it was asked
    ends_at_.store(0, std::memory_order_release);
    auto const due = clock::now() + wait;  // the reactor's time may be some ms old
    owed_until_ = due + std::max(ttl_, release_time);
    state_ = state::owing;
    hub_.schedule(*this, due);
}

void hold::tell_next() noexcept {
    target_->where->no_longer_watched(*this);
    hub_.unschedule(*this);
    hub_.count_release(+1);
    leaving_ = true;
    send(state::releasing, hub_.reactor().now() + release_time);
}

void hold::answered_release(answer const& said) noexcept {
    bool const handed_on = !said.offered_to.empty();
    bool const ends_here = handed_on && hub_.is_closing() && !leaving_;
    if (ends_here) tell_next();
    hub_.count_release(-1);
    if (heard_by != nullptr) {
        // Sent twice because a reply was lost, the second one finds nothing: that is success.
        bool const lost = said.what == word::gone && !was_repeated();
        settle_caller(lost ? make_error(errc::lease_lost, fmt::format("the lease of '{}' was lost before it was released: the server "
                                                                      "does not know it any more", target_->where->name()))
                           : nullptr);
    }
    if (ends_here) return;
    if (said.asks_again) {  // nobody has it yet: the server goes on with each call
        hub_.count_release(+1);
        return send(state::releasing, hub_.reactor().now() + release_time);
    }
    if (handed_on && target_->where->watch(*this, said)) {
        state_ = state::watching;
        return hub_.schedule(*this, target_->where->look_by());
    }
    owe_what_may_run();
}

void hold::owe_what_may_run() noexcept {
    // What was asked on a connection that is gone may run later than this, until its deadline.
    uncertain_ = uncertain_ && hub_.connects() != connects_ && deadline_ms_ >= target_->where->server_now();
    owe_or_finish();
}

void hold::watch() noexcept {
    if (!target_->where->watch(*this, {})) return finish();
    state_ = state::watching;
    hub_.schedule(*this, target_->where->look_by());
}

void hold::owe_or_finish() noexcept {
    if (!std::exchange(uncertain_, false) || hub_.is_closing()) return finish();
    // What it asked for last may run until then; what that gets is given back afterwards.
    auto const wait = milliseconds{deadline_ms_ - target_->where->server_now()};
    auto const due = hub_.reactor().now() + std::max(wait, milliseconds{0}) + milliseconds{50};
    unused_ = true;
    owed_until_ = due + std::max(ttl_, release_time);
    state_ = state::owing;
    hub_.schedule(*this, due);
}

void hold::settle_caller(std::exception_ptr problem) noexcept {
    if (auto* const by = std::exchange(heard_by, nullptr)) by->finish(std::move(problem));
}

void hold::finish() noexcept {
    if (where() != place::idle) abandon();
    use_way(nullptr);  // it would keep the client, which keeps it for further use
    state_ = state::idle;
    hub_.unschedule(*this);
    target_->where->no_longer_queued(*this);
    target_->where->no_longer_watched(*this);
    hub_.end_hold(*this);
}

}  // namespace lockstep::engine
