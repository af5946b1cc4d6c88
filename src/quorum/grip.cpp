#include "quorum/grip.hpp"

#include "base/random.hpp"
#include "quorum/caller.hpp"
#include "quorum/fleet.hpp"
#include "quorum/room.hpp"
#include "quorum/seeker.hpp"

#include <lockstep/error.hpp>
#include <lockstep/log.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <utility>

// A hold that is held: its end, its extensions, its release. How it is obtained, and how rounds are counted, is in grip_rounds.cpp.

namespace lockstep::quorum {
namespace {

using base::boot_clock;
using std::chrono::milliseconds;
using std::chrono::nanoseconds;
using namespace std::chrono_literals;

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

grip::grip(std::size_t nodes, engine::alarm_clock& alarm)
    : size_(nodes), alarm_(alarm), legs_(std::make_unique<leg[]>(nodes)) {
    for (std::size_t i = 0; i != nodes; ++i) legs_[i].belong(*this, i);
}

grip::~grip() { alarm_.forget(*this); }

// ---- from any thread

void grip::let_go() noexcept {
    if (references_.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
    auto const kept = fleet_;
    kept->recycle(*this);
}

redlock_lease grip::make_lease(grip& held, std::shared_ptr<anchor> nodes) noexcept {
    held.keep();
    return {&held, std::move(nodes)};
}

milliseconds grip::remaining() const noexcept {
    return std::max(0ms, std::chrono::ceil<milliseconds>(left_ns()));
}

nanoseconds grip::left_ns() const noexcept {
    auto const end = ends_at_.load(std::memory_order_acquire);
    return end == 0 ? nanoseconds{0} : nanoseconds{end - in_ns(boot_clock::now())};
}

std::stop_token grip::stop_token() {
    if (!fleet_->same_process()) return tripped();
    std::lock_guard const guard{alarm_.lock()};
    if (over_) return tripped();
    if (!stop_) stop_.emplace();
    return stop_->get_token();
}

std::stop_token grip::at_risk_token() {
    if (!fleet_->same_process()) return tripped();
    std::lock_guard const guard{alarm_.lock()};
    if (over_ || at_risk_) return tripped();
    if (!risk_) risk_.emplace();
    return risk_->get_token();
}

void grip::leave() noexcept {
    // Without an end it was lost or released already.
    if (fleet_->same_process() && ends_at_.load(std::memory_order_acquire) != 0) bring_home(event::departed);
}

// ---- its end

engine::alarm_clock::time_point grip::ring(engine::alarm_clock::time_point now, std::vector<std::stop_source>& stops) noexcept {
    auto const ends = ends_at_.load(std::memory_order_relaxed);
    if (ends == 0 || over_) return engine::alarm_clock::time_point::max();
    auto const trip = [&](std::optional<std::stop_source>& which) {
        if (which) stops.push_back(*std::exchange(which, std::nullopt));
    };
    if (in_ns(now) >= risk_at_ && !std::exchange(at_risk_, true)) trip(risk_);
    if (in_ns(now) < ends) return engine::alarm_clock::time_point{nanoseconds{in_ns(now) < risk_at_ ? std::min(risk_at_, ends) : ends}};
    over_ = true;
    trip(stop_);
    return engine::alarm_clock::time_point::max();
}

grip::end_times grip::ends_after(milliseconds length) const noexcept {
    auto const end = end_of_validity(sent_at_, length, plan_->how.drift_factor);
    return {in_ns(end), in_ns(sent_at_ + std::min<nanoseconds>(length * 2 / 3, (end - sent_at_) * 3 / 4))};
}

/// False: it is over already.
bool grip::set_end(milliseconds length, bool first) noexcept {
    auto const now = in_ns(boot_clock::now());
    auto const [end, risk] = ends_after(length);
    std::lock_guard const guard{alarm_.lock()};
    if (!first && (over_ || now >= ends_at_.load(std::memory_order_relaxed))) return false;
    if (now >= end) return false;
    ends_at_.store(end, std::memory_order_release);
    risk_at_ = risk;
    kept_until_ = sent_at_ + length;
    over_ = at_risk_ = false;
    alarm_.set_locked(*this, engine::alarm_clock::time_point{nanoseconds{std::min(risk_at_, end)}});
    return true;
}

/// Before nodes are asked to keep it for so long: they may do that, and let it go then, although we never hear of it.
void grip::end_no_later_than(milliseconds length) noexcept {
    auto const [end, risk] = ends_after(length);
    std::lock_guard const guard{alarm_.lock()};
    if (end >= ends_at_.load(std::memory_order_relaxed)) return;
    ends_at_.store(end, std::memory_order_release);
    risk_at_ = std::min(risk_at_, risk);
    kept_until_ = sent_at_ + length;
    alarm_.set_locked(*this, engine::alarm_clock::time_point{nanoseconds{std::min(risk_at_, end)}});
}

void grip::end_tokens(bool lost) noexcept {
    std::optional<std::stop_source> stop;
    std::optional<std::stop_source> risk;
    {
        std::lock_guard const guard{alarm_.lock()};
        ends_at_.store(0, std::memory_order_release);
        over_ = true;
        stop = std::exchange(stop_, std::nullopt);
        risk = std::exchange(risk_, std::nullopt);
    }
    if (!lost) return;
    if (risk) alarm_.stop(std::move(*risk));
    if (stop) alarm_.stop(std::move(*stop));
}

void grip::lose(std::string_view why) noexcept {
    if (phase_ != phase::held) return;
    bool const by_time = left_ns() <= nanoseconds{0};
    if (!fleet_->is_closing()) log(log_level::warning, fmt::format("the redlock of {} is lost: {}", plan_->name(), why));
    auto const problem = make_error(errc::lease_lost, fmt::format("the redlock of {} is lost: {}", plan_->name(), why));
    for (auto** const one : {&heard_by_, &next_caller_}) {
        if (auto* const by = std::exchange(*one, nullptr)) by->finish(problem);
    }
    end_tokens(true);
    auto const rest = kept_until_ - boot_clock::now();
    if (!by_time || rest <= nanoseconds{0} || fleet_->is_closing()) return begin_release();
    // Nodes give it to nobody else until then, so whoever had it has that time to stop.
    phase_ = phase::lingering;
    extending_ = false;
    fleet_->reactor().disarm(limit_);
    fleet_->reactor().arm(*this, fleet_->reactor().now() + rest);
}

// ---- extension

void grip::schedule() noexcept {
    auto const left = std::max(left_ns(), nanoseconds{0});
    auto due = left;
    if (plan_->how.renew) {
        auto const jitter = 0.8 + 0.4 * base::random_unit();
        auto const every = std::min<nanoseconds>(plan_->how.renew_every, left / 2);  // it may have been extended to less
        due = std::chrono::duration_cast<nanoseconds>(every * jitter);
    }
    fleet_->reactor().arm(*this, fleet_->reactor().now() + due);
}

void grip::fire() noexcept {
    if (phase_ == phase::releasing) {  // once more, where something may have run after the first time
        released_again_ = true;
        return begin_release();
    }
    if (phase_ == phase::lingering) return begin_release();
    if (phase_ != phase::held) return;
    if (left_ns() <= nanoseconds{0}) return lose(plan_->how.renew ? "it could not be extended on a majority in time" : "its time is over");
    if (extending_) return schedule();
    if (!plan_->how.renew && !repairing_) return schedule();
    // Never to less than it has: it may have been extended to more than its ttl.
    auto const rest = std::chrono::ceil<milliseconds>(kept_until_ - boot_clock::now());
    begin_extension(plan_->how.renew ? std::max(plan_->how.ttl, rest) : rest);
}

void grip::begin_extension(milliseconds length) {
    extending_ = true;
    repairing_ = false;
    ask_all(request::extend, length, plan_->how.node_timeout);
    // The end is seen to meanwhile.
    fleet_->reactor().arm(*this, fleet_->reactor().now() + std::max(left_ns(), nanoseconds{0}));
}

void grip::decide_extension(ballot const& seen) {
    extending_ = false;
    if (phase_ != phase::held) return;
    bool const won = seen.now() == decision::won;
    if (won && !set_end(length_, false)) return lose("it was extended too late");
    if (seen.is_refused()) return lose(fmt::format("{} of {} nodes have not held it all the time", seen.no(), size_));
    if (won) {
        std::lock_guard const guard{mutex_};
        proven_ = handled_;
    }
    if (auto* const by = std::exchange(heard_by_, nullptr)) {
        auto const text = won ? std::string{} : fmt::format("the redlock of {} was not extended: no majority of {} nodes answered in time",
                                                            plan_->name(), size_);
        by->finish(won ? nullptr : make_error(errc::unavailable, text));
    }
    if (auto* const by = std::exchange(next_caller_, nullptr)) return prolong(*by, next_length_);
    schedule();
    if (!won && plan_->how.renew) extend_soon();
}

void grip::extend_soon() noexcept {
    auto const soon = std::max<nanoseconds>(20ms, plan_->how.ttl / 20);
    fleet_->reactor().arm(*this, fleet_->reactor().now() + std::min(soon, std::max(left_ns(), nanoseconds{0})));
}

void grip::repair() noexcept {
    if (extending_) return;
    {
        std::lock_guard const guard{mutex_};
        if (!std::exchange(changed_, false) || size_ == 1) return;
    }
    repairing_ = true;
    extend_soon();
}

void grip::prolong(caller& by, milliseconds length) {
    if (left_ns() <= nanoseconds{0}) lose("its time is over");
    if (phase_ != phase::held) return by.finish(make_error(errc::lease_lost, fmt::format("the redlock of {} was lost", plan_->name())));
    if (heard_by_ != nullptr || next_caller_ != nullptr) {
        return by.finish(make_error(errc::invalid_argument, "another request of this lease is under way, and it takes one at a time"));
    }
    if (extending_) {
        next_caller_ = &by;
        next_length_ = length;
        return;
    }
    heard_by_ = &by;
    begin_extension(length);
}

void grip::forget(caller const& gone) noexcept {
    if (heard_by_ == &gone) heard_by_ = nullptr;
    if (next_caller_ == &gone) next_caller_ = nullptr;
}

// ---- release

void grip::release(caller& by) {
    if (phase_ == phase::held && left_ns() <= nanoseconds{0}) lose("its time is over");
    if (phase_ == phase::lingering) begin_release();  // whoever had it is through
    if (phase_ != phase::held) return by.finish(make_error(errc::lease_lost, fmt::format("the redlock of {} was lost", plan_->name())));
    for (auto** const one : {&heard_by_, &next_caller_}) {
        auto* const other = std::exchange(*one, nullptr);
        if (other == nullptr) continue;
        other->finish(make_error(errc::not_held, fmt::format("the redlock of {} was released meanwhile", plan_->name())));
    }
    heard_by_ = &by;
    end_tokens(false);
    begin_release();
}

void grip::give_back() noexcept {
    if (phase_ == phase::idle || phase_ == phase::releasing) return;
    end_tokens(false);
    begin_release();
}

void grip::begin_release() {
    phase_ = phase::releasing;
    extending_ = false;
    fleet_->reactor().disarm(*this);
    fleet_->reactor().disarm(limit_);
    room_.reset();
    if (!released_again_) {
        woken_.swap(wanted_by_);
        wanted_by_.clear();
    }
    if (!woken_.empty()) {
        auto const same = [mine = room::label_of(plan_->keys)](std::string const& one) { return one.ends_with(mine); };
        wakes_all_ = !std::all_of(woken_.begin(), woken_.end(), same);
    }
    // Beyond its ttl nothing is left there that could be released.
    auto const time = std::max<milliseconds>({length_, plan_->how.ttl, 1s}) + plan_->how.node_timeout;
    bool any = false;
    {
        std::lock_guard const guard{mutex_};
        ++round_;
        ballot_ = ballot{size_};
        findings_.clear();
        is_decided_ = false;
        for (std::size_t i = 0; i != size_; ++i) {
            auto& one = legs_[i];
            one.matters = one.in_doubt || (!released_again_ && (one.busy || one.touched));
            any |= one.matters;
            if (!one.matters) ballot_.cast(vote::no);
        }
    }
    assignment const order{.what = request::remove, .deadline = fleet_->reactor().now() + time, .round = round_};
    for (std::size_t i = 0; i != size_; ++i) {
        if (legs_[i].matters) legs_[i].ask(order);
    }
    if (!any) bring_home(event::settled);
}

void grip::decide_release(ballot const& seen) {
    auto* const by = std::exchange(heard_by_, nullptr);
    if (by == nullptr) return;
    if (seen.now() == decision::won) return by->finish(nullptr);
    if (!seen.is_refused()) {  // those who are silent may have it
        return by->finish(make_error(errc::unavailable, fmt::format("the redlock of {} could not be released on a majority of {} nodes; "
                                                                    "what is left there ends with its ttl", plan_->name(), size_)));
    }
    by->finish(make_error(errc::lease_lost, fmt::format("the redlock of {} was lost before it was released: {} of {} nodes do not know it",
                                                        plan_->name(), seen.no(), size_)));
}

void grip::wanted(std::vector<std::string> waiters) {
    constexpr std::size_t most = 64;  // the others look again by themselves
    if (phase_ == phase::releasing || phase_ == phase::idle) return fleet_->pass_on(token_, waiters);
    for (auto& one : waiters) {
        if (wanted_by_.size() >= most) return;
        if (std::find(wanted_by_.begin(), wanted_by_.end(), one) == wanted_by_.end()) wanted_by_.push_back(std::move(one));
    }
}

void grip::close() noexcept {
    if (phase_ == phase::held) return lose("the client was closed");
    if (phase_ == phase::releasing) {
        if (!linked()) return;  // its requests are under way
        fleet_->reactor().disarm(*this);
        released_again_ = true;
        return begin_release();
    }
    if (auto* const who = std::exchange(own, nullptr)) {  // nobody else knows that it waits
        who->own = nullptr;
        who->fail(errc::cancelled, "the client was closed");
    }
    give_back();
}

void grip::drop() noexcept {
    // First of all: below, home's turn is lent while another node's is taken, and whatever comes home then must find nothing to do.
    fleet_->reactor().disarm(*this);
    fleet_->reactor().disarm(limit_);
    phase_ = phase::idle;
    for (std::size_t i = 0; i != size_; ++i) {
        auto& one = legs_[i];
        auto& node = fleet_->node(i).home();
        node.locked([&] { node.take_back(one.successor_); });
        one.withdraw();
        std::lock_guard const guard{mutex_};
        one.busy = one.running_ = one.next_is_posted_ = false;
    }
    {
        std::lock_guard const guard{mutex_};
        busy_ = 0;
        ++round_;
    }
    end_tokens(true);
    finish();
}

void grip::finish() noexcept {
    fleet_->reactor().disarm(*this);
    fleet_->reactor().disarm(limit_);
    phase_ = phase::idle;
    room_.reset();
    if (auto* const by = std::exchange(heard_by_, nullptr)) {
        by->finish(make_error(errc::cancelled, "the client was closed"));
    }
    fleet_->ended(*this);
}

}  // namespace lockstep::quorum
