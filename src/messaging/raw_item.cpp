#include <lockstep/detail/raw_queue.hpp>

#include "messaging/depot.hpp"
#include "messaging/message_counts.hpp"
#include "messaging/raw_queue_parts.hpp"

#include <lockstep/error.hpp>

#include <fmt/format.h>

#include <utility>

namespace lockstep::detail {
namespace {

using std::chrono::milliseconds;
using held = std::shared_ptr<held_item>;

void count(held_item const& of, verdict::kind what) noexcept {
    if (!of.tally || what == verdict::kind::extend) return;
    queue_tally::count(what == verdict::kind::ack ? of.tally->acknowledged : of.tally->returned);
}

task<void> settle(verdict what) {
    if (!what.of->at->how().reliable) {
        what.of->now = held_item::state::over;
        co_return;
    }
    auto const until = what.of->at->owner()->deadline({});
    auto const of = what.of;
    auto const kind = what.what;
    settling mine{std::move(what), until};
    co_await mine;
    count(*of, kind);
}

/// Says it without waiting for the answer. From any thread.
void say(verdict what) noexcept {
    auto const at = what.of->at;
    if (!at->how().reliable || !at->owner()->same_process()) return;
    count(*what.of, what.what);
    auto& home = at->owner()->home();
    if (home.here()) return at->judge(std::move(what));
    at->expect_verdict();
    if (!home.post([at, what = std::move(what)]() mutable { at->judge_expected(std::move(what)); })) at->forget_verdict();
}

}  // namespace

raw_item& raw_item::operator=(raw_item&& other) noexcept {
    raw_item before{std::move(*this)};
    what_ = std::move(other.what_);
    is_alias_ = other.is_alias_;
    return *this;
}

raw_item::~raw_item() {
    if (!what_ || is_alias_) return;
    what_->dropped = true;  // before its state is looked at, as depot::failed does it the other way round
    auto expected = held_item::state::held;
    if (!what_->now.compare_exchange_strong(expected, held_item::state::judged)) return;
    say({.of = std::move(what_), .what = verdict::kind::nack, .reason = held_item::was_dropped});
}

raw_item raw_item::alias() const {
    raw_item same{what_};
    same.is_alias_ = true;
    return same;
}

held_item& raw_item::it() const {
    if (!what_) throw not_held_error("this item was moved away");
    return *what_;
}

std::string_view raw_item::bytes() const { return it().payload; }
std::string_view raw_item::id() const { return it().id; }
std::int32_t raw_item::deliveries() const { return it().deliveries; }
bool raw_item::is_valid() const { return it().is_valid(); }
std::stop_token raw_item::stop_token() const { return it().token_for_stop(); }

void raw_item::ack(std::stop_token token) {
    it().at->what().require_blocking();
    sync_wait(async_ack(), std::move(token));
}
task<void> raw_item::async_ack() {
    it().at->what().require_usable();
    return settle({.of = what_, .what = verdict::kind::ack});
}

void raw_item::nack(milliseconds delay, std::string_view reason, std::stop_token token) {
    it().at->what().require_blocking();
    sync_wait(async_nack(delay, reason), std::move(token));
}
task<void> raw_item::async_nack(milliseconds delay, std::string_view reason) {
    it().at->what().require_usable();
    if (delay.count() < 0 || delay > longest_delay) {
        throw invalid_argument_error(fmt::format("the delay of a nack must be 0 to 10 years, not {} ms", delay.count()));
    }
    return settle({.of = what_, .what = verdict::kind::nack, .time = delay, .reason = std::string{reason.substr(0, 1024)}});
}

void raw_item::extend(milliseconds time, std::stop_token token) {
    it().at->what().require_blocking();
    sync_wait(async_extend(time), std::move(token));
}
task<void> raw_item::async_extend(milliseconds time) {
    it().at->what().require_usable();
    if (time.count() < 1 || time > longest_delay) {
        throw invalid_argument_error(fmt::format("a lease is extended by 1 ms to 10 years, not by {} ms", time.count()));
    }
    if (it().now != held_item::state::held) throw not_held_error(fmt::format("item {} was acknowledged or given back already", it().id));
    return settle({.of = what_, .what = verdict::kind::extend, .time = time});
}

bool decide(verdict what, std::function<void(std::exception_ptr)> failed) noexcept {
    auto& item = *what.of;
    auto expected = held_item::state::held;
    if (!item.now.compare_exchange_strong(expected, held_item::state::judged)) return false;
    item.failed = std::move(failed);
    say(std::move(what));
    return true;
}

void raw_item::ack_soon(std::function<void(std::exception_ptr)> failed) noexcept {
    if (what_) decide({.of = what_, .what = verdict::kind::ack}, std::move(failed));
}

void raw_item::nack_soon(milliseconds delay, std::string reason) noexcept {
    if (what_) decide({.of = what_, .what = verdict::kind::nack, .time = delay, .reason = std::move(reason)}, {});
}

void raw_item::reject_soon(std::string reason) noexcept {
    if (what_) decide({.of = what_, .what = verdict::kind::fail, .reason = std::move(reason)}, {});
}

void raw_item::postpone_soon(milliseconds delay) noexcept {
    if (what_) decide({.of = what_, .what = verdict::kind::postpone, .time = delay}, {});
}

void raw_item::ask_to_stop() noexcept {
    if (what_) what_->ask_to_stop();
}

}  // namespace lockstep::detail
