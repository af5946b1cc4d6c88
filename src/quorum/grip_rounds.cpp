#include "quorum/grip.hpp"

#include "base/random.hpp"
#include "quorum/fleet.hpp"
#include "quorum/room.hpp"

#include <lockstep/error.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <utility>

// Rounds, their votes, and how a hold is obtained. What comes then is in grip.cpp.

namespace lockstep::quorum {
namespace {

using base::boot_clock;
using std::chrono::milliseconds;

constexpr milliseconds late_answers{50};  // how long those that are in time may take from a node to home

}  // namespace

void grip::findings::clear() {
    fence = now_us = 0;
    left_ms = 0;
    heard = false;
    errors = 0;
    tokens.clear();
    trouble.clear();
}

// ---- rounds

void grip::become(std::shared_ptr<fleet> nodes, std::uint32_t index) {
    fleet_ = std::move(nodes);
    index_ = index;
    // Its first part says which process has it, the second where it is in the table; the last makes it a secret.
    char number[16];
    auto const end = std::to_chars(number, number + sizeof number, index, 16).ptr;
    token_.assign("lockstep:").append(fleet_->process()).append(1, '.').append(number, end).append(1, '.');
    fleet_->append_random(token_);
    fence_ = 0;
    fence_rounds_ = 0;
    wanted_by_.clear();
    woken_.clear();
    wakes_all_ = extending_ = repairing_ = released_again_ = false;
    heard_by_ = next_caller_ = nullptr;
    own = nullptr;
    for (std::size_t i = 0; i != size_; ++i) {
        legs_[i].in_doubt = legs_[i].touched = legs_[i].missing = false;
        legs_[i].made_again_in = 0;
    }
    proven_ = 0;
    changed_ = false;
    events_ = 0;
    keep();
}

void grip::ask_all(request what, milliseconds ttl, milliseconds time) {
    length_ = ttl;
    assignment order{.what = what, .ttl = ttl, .deadline = fleet_->reactor().now() + time, .fence = fence_};
    {
        std::lock_guard const guard{mutex_};
        order.round = ++round_;
        ballot_ = ballot{size_};
        findings_.clear();
        is_decided_ = false;
    }
    if (what != request::fence) sent_at_ = boot_clock::now();  // before anything is sent: nodes may begin to count right then
    if (what == request::extend) end_no_later_than(ttl);
    if (!fleet_->decides_at_a_node()) fleet_->reactor().arm(limit_, order.deadline + late_answers);
    for (std::size_t i = 0; i != size_; ++i) {
        {
            // One node alone has no others that show that nobody else had it meanwhile.
            std::lock_guard const guard{mutex_};
            order.again = what == request::extend && size_ > 1 && legs_[i].missing;
            if (order.again) legs_[i].made_again_in = order.round;
        }
        legs_[i].ask(order);
    }
}

void grip::voted(leg& by, vote what, findings const* more, std::string_view trouble, bool answered) noexcept {
    std::uint8_t news = 0;
    {
        std::lock_guard const guard{mutex_};
        by.running_ = false;
        if (by.takes() && (what == vote::yes || (more != nullptr && more->errors != 0))) by.touched = true;
        if (by.now_.round == round_ && ballot_.missing() != 0) {
            ballot_.cast(what);
            if (more != nullptr) {
                findings_.fence = std::max(findings_.fence, more->fence);
                findings_.now_us = std::max(findings_.now_us, more->now_us);
                findings_.left_ms = std::max(findings_.left_ms, more->left_ms);
                findings_.heard |= more->heard;
                findings_.errors += more->errors;
                findings_.tokens.insert(findings_.tokens.end(), more->tokens.begin(), more->tokens.end());
            }
            if (findings_.trouble.empty() || (more != nullptr && more->errors != 0)) findings_.trouble = trouble;
            if (!is_decided_ && ballot_.now() != decision::open) {
                is_decided_ = true;
                news |= event::decided;
            }
        }
        if (by.busy && !by.next_is_posted_) {
            by.busy = false;
            if (--busy_ == 0) news |= event::settled;
        }
        if (news != 0) keep();  // home may be through with it before this thread goes on
    }
    if (news == 0) return;
    if (!answered || !fleet_->reactor().here()) {
        bring_home(news);
    } else {
        // An answer in a turn of home: nothing of this hold is at work further up the stack. What is on its way here came first.
        std::unique_lock guard{mutex_};
        news = static_cast<std::uint8_t>(news | std::exchange(events_, std::uint8_t{0}));
        guard.unlock();
        handle(news);
    }
    let_go();
}

void grip::bring_home(std::uint8_t what) noexcept {
    {
        std::lock_guard const guard{mutex_};
        events_ |= what;
        if (std::exchange(is_posted_, true)) return;
    }
    keep();
    if (fleet_->reactor().hand_in(*this)) return;
    {
        std::lock_guard const guard{mutex_};
        is_posted_ = false;
    }
    let_go();
}

void grip::arrive() noexcept {
    std::uint8_t events = 0;
    {
        std::lock_guard const guard{mutex_};
        events = std::exchange(events_, std::uint8_t{0});
        is_posted_ = false;
    }
    handle(events);
    let_go();
}

void grip::handle(std::uint8_t events) noexcept {
    // The last answer may come home before the one that decided, which another thread brings.
    if ((events & (event::decided | event::settled)) != 0) decide();
    if ((events & event::departed) != 0 && (phase_ == phase::held || phase_ == phase::lingering)) give_back();
    if ((events & event::settled) == 0) return;
    if (phase_ == phase::held) return repair();
    if (phase_ != phase::releasing) return;
    bool in_doubt = false;
    {
        std::lock_guard const guard{mutex_};
        if (busy_ != 0) return;  // it began again meanwhile
        for (std::size_t i = 0; i != size_; ++i) in_doubt |= legs_[i].in_doubt;
    }
    if (!in_doubt || released_again_ || fleet_->is_closing()) return finish();
    auto const pause = std::min<milliseconds>(plan_->how.ttl, std::chrono::milliseconds{500});
    fleet_->reactor().arm(*this, fleet_->reactor().now() + pause);
}

void grip::round_is_over() noexcept {
    {
        std::lock_guard const guard{mutex_};
        if (is_decided_) return;
        while (ballot_.missing() != 0) ballot_.cast(vote::silent);
        is_decided_ = true;
        if (findings_.trouble.empty()) findings_.trouble = "its client is busy with something else";
    }
    decide();
}

bool grip::is_unanswered() noexcept {
    std::lock_guard const guard{mutex_};
    return phase_ == phase::taking && ballot_.yes() + ballot_.no() < ballot::quorum_of(size_);
}

void grip::decide() noexcept {
    ballot seen;
    {
        std::lock_guard const guard{mutex_};
        if (!is_decided_ || handled_ == round_) return;  // of a round that is over
        handled_ = round_;
        seen = ballot_;
    }
    fleet_->reactor().disarm(limit_);
    switch (phase_) {
        case phase::taking: return decide_taking(seen);
        case phase::fencing: return decide_fencing(seen);
        case phase::held: return decide_extension(seen);
        case phase::releasing: return decide_release(seen);
        case phase::lingering:
        case phase::idle: return;
    }
}

// ---- obtaining it

void grip::take(std::shared_ptr<plan const> what, std::shared_ptr<room> by, std::string told) {
    plan_ = std::move(what);
    room_ = std::move(by);
    told_ = std::move(told);
    phase_ = phase::taking;
    fleet_->identify(plan_->slot, fleet_->reactor().now() + plan_->how.node_timeout);
    bool const plain = plan_->is_single() && !plan_->is_fenced() && told_.empty();
    ask_all(plain ? request::set : request::acquire, plan_->how.ttl, plan_->how.node_timeout);
}

void grip::decide_taking(ballot const& seen) {
    if (size_ > 1 && !fleet_->sameness().empty()) {
        auto const by = std::move(room_);
        begin_release();
        return by->ended(*this, {.what = outcome::kind::misused, .why = "redlock: " + fleet_->sameness()});
    }
    if (seen.now() != decision::won) return not_obtained(seen);
    if (!plan_->is_fenced()) return obtained();
    std::unique_lock guard{mutex_};
    // By a majority's word: any majority has a node that knows the fence before, and refuses it from whoever comes later than us.
    auto const fence = std::max(findings_.fence + 1, findings_.now_us);
    guard.unlock();
    begin_fencing(fence);
}

void grip::begin_fencing(std::uint64_t at_least) {
    phase_ = phase::fencing;
    fence_ = at_least;
    ++fence_rounds_;
    auto const ttl = length_;
    ask_all(request::fence, ttl, plan_->how.node_timeout);
}

void grip::decide_fencing(ballot const& seen) {
    if (seen.now() == decision::won) return obtained();
    std::unique_lock guard{mutex_};
    auto const larger = findings_.fence;
    guard.unlock();
    // A node outside of our majority knew of a larger one. Nobody was given ours yet.
    if (larger >= fence_ && fence_rounds_ < most_fence_rounds) return begin_fencing(larger + 1);
    not_obtained(seen);
}

void grip::obtained() {
    if (!set_end(length_, true)) {
        auto const by = std::move(room_);
        begin_release();
        return by->ended(*this, {.what = outcome::kind::unavailable, .why = "the nodes answered so late that the lock was not valid any more"});
    }
    phase_ = phase::held;
    schedule();
    auto const by = room_;
    by->ended(*this, {.what = outcome::kind::got});
}

void grip::not_obtained(ballot const& seen) {
    outcome how;
    {
        std::lock_guard const guard{mutex_};
        if (seen.is_out_of_reach()) {
            bool const refused = findings_.errors >= ballot::quorum_of(size_);
            how.what = refused ? outcome::kind::refused : outcome::kind::unavailable;
            how.why = findings_.trouble;
        } else {
            how.left = std::max(milliseconds{0}, milliseconds{findings_.left_ms});
            how.heard = findings_.heard;
            auto const& tokens = findings_.tokens;
            std::size_t most = 0;
            for (auto const& one : tokens) most = std::max(most, static_cast<std::size_t>(std::count(tokens.begin(), tokens.end(), one)));
            // Where a node has us, or is silent, one of those who were counted may have a majority all the same.
            how.split = !tokens.empty() && most + seen.silent() + seen.missing() < ballot::quorum_of(size_);
        }
    }
    auto const by = std::move(room_);
    begin_release();
    by->ended(*this, how);
}

}  // namespace lockstep::quorum
