#include "quorum/room.hpp"

#include "base/random.hpp"
#include "core/core.hpp"
#include "quorum/caller.hpp"
#include "quorum/fleet.hpp"

#include <lockstep/error.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <utility>

namespace lockstep::quorum {
namespace {

using std::chrono::milliseconds;
using std::chrono::nanoseconds;
using namespace std::chrono_literals;

constexpr std::uint64_t acted_upon = ~std::uint64_t{0};
constexpr milliseconds longest_look = 1s;  // for those whom the holder will wake, if all goes well
constexpr milliseconds others_are_near = 10ms;  // a release reaches the other nodes about when it reaches the first
constexpr milliseconds least_silence = 100ms;  // a busy node may take so long to answer

milliseconds retry_pause(redlock_options const& how) {
    auto const spread = static_cast<std::int64_t>(base::random_below(static_cast<std::uint64_t>(2 * how.retry_jitter.count()) + 1));
    return std::max(1ms, how.retry_delay - how.retry_jitter + milliseconds{spread});
}

}  // namespace

// ---- who waits

room::room(std::shared_ptr<fleet> nodes, std::vector<std::string> const& keys, std::string key, std::uint64_t number)
    : nodes_(std::move(nodes)), key_(std::move(key)), number_(number),
      entry_(fmt::format("{}/{}{}", nodes_->process(), number, label_of(keys))) {}

room::~room() { nodes_->forget(*this); }

std::string room::label_of(std::vector<std::string> const& keys) {
    std::uint64_t hash = 14695981039346656037U;  // FNV-1a; two that look the same by chance wake each other, no more
    for (auto const& key : keys) {
        for (char const c : key) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211U;
        hash = (hash ^ 0x100U) * 1099511628211U;
    }
    return fmt::format("/{:x}", hash);
}

std::string room::waiters() const {
    auto text = entry_;
    for (auto const& one : behind_) text += " " + one;
    return text;
}

void room::enter(seeker& who) {
    if (nodes_->is_closing()) return who.fail(errc::cancelled, "the client is closed");
    nodes_->listen();
    if (!who.how().waits) {
        who.own = &nodes_->new_grip();
        who.own->own = &who;
        return who.own->take(who.what(), shared_from_this(), {});
    }
    if (waiting_.empty()) is_reached_ = true;  // until it is found out again
    waiting_.push_back(who);
    if (&waiting_.front() == &who && attempt_ == nullptr) attempt(false);
}

void room::leave(seeker& who) noexcept {
    if (who.own != nullptr) {
        who.own->own = nullptr;
        std::exchange(who.own, nullptr)->give_back();
        return;
    }
    if (!who.redis::list_hook::is_linked()) return;
    auto const now = nodes_->reactor().now();
    auto const silence = now - asked_at_;
    who.was_silent = attempt_ != nullptr && attempt_->is_unanswered() && last_contact_ < who.since() && silence >= asked_at_ - who.since() &&
                     silence >= least_silence;
    who.unlink();
    if (!waiting_.empty()) return;  // what is under way is for the next
    nodes_->reactor().disarm(*this);
    if (attempt_ != nullptr) std::exchange(attempt_, nullptr)->give_back();
    freed_by_.clear();
    behind_.clear();  // they look again by themselves
}

void room::time_is_over(seeker& who) noexcept {
    if (is_reached_ && !who.was_silent) return who.finish(nullptr);
    who.fail(errc::unavailable, fmt::format("redlock {}: no majority of {} nodes could be reached in the time allowed: {}",
                                            who.what()->name(), nodes_->size(), is_reached_ ? "they did not answer" : why_));
}

void room::close() noexcept {
    while (!waiting_.empty()) {
        auto& one = waiting_.front();
        leave(one);
        one.fail(errc::cancelled, "the client was closed");
    }
}

// ---- attempts

void room::attempt(bool tells) {
    nodes_->reactor().disarm(*this);
    tells_ = tells;
    is_freed_ = false;
    asked_at_ = nodes_->reactor().now();
    attempt_ = &nodes_->new_grip();
    attempt_->take(waiting_.front().what(), shared_from_this(), tells ? waiters() : std::string{});
}

void room::fire() noexcept {
    if (attempt_ == nullptr && !waiting_.empty()) attempt(true);
}

void room::ended(grip& held, outcome const& how) {
    bool const got = how.what == outcome::kind::got;
    if (auto* const who = std::exchange(held.own, nullptr)) {
        who->own = nullptr;
        return got ? who->finish(&held) : give_up(*who, how);
    }
    if (attempt_ != &held) return held.give_back();  // nobody wants it any more
    attempt_ = nullptr;
    if (got) return granted(held);

    is_reached_ = how.what == outcome::kind::busy;
    why_ = how.why;
    auto const now = nodes_->reactor().now();
    if (is_reached_) last_contact_ = now;
    if (how.heard) behind_.clear();  // the holder knows of them too
    auto& who = waiting_.front();
    auto const attempts = who.how().attempts;
    if (is_reached_ && !tells_ && attempts == 0) return attempt(true);
    auto const patience = nodes_->home()->deadline({}) - now;
    bool const hopeless = how.what == outcome::kind::refused || how.what == outcome::kind::misused ||
                          (!is_reached_ && who.how().deadline == clock::time_point::max() && now - std::max(who.since(), last_contact_) >= patience);
    if (++who.tries == attempts || hopeless) {
        leave(who);
        give_up(who, how);
    }
    if (!waiting_.empty()) look_again(how);
}

void room::granted(grip& got) {
    splits_ = 0;
    is_reached_ = true;
    last_contact_ = nodes_->reactor().now();
    auto& who = waiting_.front();
    if (who.what().get() != &got.what()) {  // it was for one that has left, and had other options
        got.give_back();
        return attempt(tells_);
    }
    who.unlink();
    got.wanted(std::exchange(behind_, {}));
    who.finish(&got);
    if (!waiting_.empty()) attempt(true);
}

void room::give_up(seeker& who, outcome const& how) noexcept {
    switch (how.what) {
        case outcome::kind::refused:
            return who.fail(errc::server, fmt::format("{} (redlock {}, by most of {} nodes)", how.why, who.what()->name(), nodes_->size()));
        case outcome::kind::misused: return who.fail(errc::invalid_argument, how.why);
        case outcome::kind::unavailable:
            return who.fail(errc::unavailable, fmt::format("redlock {}: no majority of {} nodes: {}", who.what()->name(), nodes_->size(), how.why));
        default: return who.finish(nullptr);
    }
}

void room::look_again(outcome const& how) {
    if (std::exchange(is_freed_, false)) return attempt(true);
    nanoseconds pause = retry_pause(waiting_.front().what()->how);
    if (how.split) {  // those who got a part of it give that back right now: the next time not at the same moment
        pause = milliseconds{1} + milliseconds{base::random_below(4U << std::min(splits_++, 5U))};
    } else if (how.heard && waiting_.front().how().attempts == 0) {
        auto const look = how.left.count() > 0 ? std::min(how.left + milliseconds{1}, longest_look) : longest_look;
        pause = std::chrono::duration_cast<nanoseconds>(look * (1 + 0.2 * base::random_unit()));
    }
    nodes_->reactor().arm(*this, nodes_->reactor().now() + pause);
}

// ---- wake-ups

void room::freed(std::size_t node, std::string_view token, std::vector<std::string> waiters) {
    if (freed_by_ != token) {
        freed_by_ = token;
        freed_at_ = 0;
    }
    if (freed_at_ == acted_upon) return;
    for (auto& one : waiters) {
        if (one != entry_ && std::find(behind_.begin(), behind_.end(), one) == behind_.end()) behind_.push_back(std::move(one));
    }
    if (waiting_.empty()) {
        freed_at_ = acted_upon;
        return nodes_->pass_on(token, std::exchange(behind_, {}));
    }
    freed_at_ |= std::uint64_t{1} << node;
    if (static_cast<std::size_t>(std::popcount(freed_at_)) < nodes_->quorum()) {
        auto const soon = nodes_->reactor().now() + others_are_near;
        if (attempt_ == nullptr && (!linked() || due() > soon)) nodes_->reactor().arm(*this, soon);
        return;
    }
    freed_at_ = acted_upon;
    if (attempt_ != nullptr) {
        is_freed_ = true;
    } else {
        attempt(true);
    }
}

// ---- those who wait for it

std::shared_ptr<detail::core> const& seeker::owner() const noexcept { return target_->nodes->of->home(); }
void seeker::enter() { target_->where->enter(*this); }
void seeker::leave() noexcept { target_->where->leave(*this); }
void seeker::time_is_over() noexcept { target_->where->time_is_over(*this); }
void seeker::finish(grip* granted) noexcept {
    if (granted != nullptr) lease_ = grip::make_lease(*granted, target_->nodes);
    resume_soon();
}

caller::~caller() {
    withdraw();
    held_.let_go();
}
std::shared_ptr<detail::core> const& caller::owner() const noexcept { return held_.nodes()->home(); }
caller::clock::time_point caller::deadline() const noexcept {
    if (wish_ != wish::release) return clock::time_point::max();
    return since() + std::max<milliseconds>(1s, 2 * held_.what().how.node_timeout);
}
void caller::enter() {
    if (wish_ == wish::release) return held_.release(*this);
    held_.prolong(*this, length_);
}
void caller::time_is_over() noexcept {
    fail(errc::unavailable, fmt::format("the redlock of {} was not released on a majority of nodes in time; what is left there ends with its ttl, "
                                        "or earlier when they can be reached", held_.what().name()));
}

}  // namespace lockstep::quorum
