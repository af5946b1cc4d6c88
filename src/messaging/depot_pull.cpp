// How items are taken, and what became of them is told.
#include "base/random.hpp"
#include "lease/hub.hpp"
#include "lease/pause.hpp"
#include "messaging/depot.hpp"
#include "messaging/message_counts.hpp"
#include "scripts/all.hpp"

#include <lockstep/error.hpp>
#include <lockstep/log.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace lockstep::detail {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t most_at_once = 250;       // to be taken in one call
constexpr std::size_t most_verdicts = 1000;     // in one call
constexpr std::chrono::milliseconds look_every = 30s;
constexpr std::chrono::milliseconds too_large_delay = 10s;  // until an item comes back that could not be received
constexpr std::chrono::milliseconds retry_delay = 20ms;
constexpr std::chrono::seconds longest_try = 60s;  // the server remembers a call for longer (queue_once.lua)

/// Who waits for the answer to this, if it still does: it may have given up, and another one waits for what was said after it.
settling* take_hearer(verdict const& what) noexcept {
    auto& item = *what.of;
    return what.serial != 0 && what.serial == item.serial ? std::exchange(item.heard_by, nullptr) : nullptr;
}

std::exception_ptr lost_error(depot const& at, held_item const& what) {
    return make_error(errc::lease_lost, fmt::format("item {} of '{}': its lease had ended, and it is not ours any more", what.id, at.what().name()));
}

}  // namespace

// ---- who wants items, and what is said of them

void depot::enter(taker& who) noexcept {
    if (closing_ || owner()->closed()) return who.fail(errc::cancelled, "the client is closed");
    if (who.stopping != nullptr && *who.stopping) return who.finish({});
    who.entry = ++entries_;
    takers_.push_back(who);
    if (!who.once && quiet_) {
        if (!pulling_) rest_pulling();
        return;
    }
    look_ = true;
    pull_signal_.raise();
}

void depot::leave(taker& who) noexcept {
    who.unlink();
    if (takers_.empty() && !pulling_) rest_pulling();
}

void depot::judge(verdict what) {
    auto& item = *what.of;
    if (what.what != verdict::kind::extend) let_go(item);
    bool const is_over = closing_ && !pulling_ && !closed_;  // else it goes with the last call
    if (owner()->closed() && is_over) return failed(what, make_error(errc::cancelled, "the client is closed"));
    verdicts_.push_back(std::move(what));
    ++said_;
    if (!closing_) pull_signal_.raise();
}

void depot::judge_expected(verdict what) {
    judge(std::move(what));
    ++arrived_;
    for (auto& one : flushers_) {
        if (arrived_ <= one.expected) one.said = said_;
    }
    if (!pulling_ && verdicts_.empty()) flushed();  // nothing can be said any more
}

void depot::let_go(held_item& what) noexcept {
    if (!what.held_hook::is_linked()) return;
    holding_.erase(holding_.iterator_to(what));
    what.kept.reset();
}

void depot::look_again() noexcept {
    if (takers_.empty()) return;
    look_ = true;
    pull_signal_.raise();
}

void depot::prolong() noexcept {
    for (auto at = holding_.begin(); at != holding_.end();) {
        auto const one = (at++)->shared_from_this();
        if (one->is_valid()) {
            verdicts_.push_back({.of = one, .what = verdict::kind::extend, .time = how_.visibility, .is_ours = true});
            ++said_;
        } else {
            one->lose();  // it is not taken again silently
            let_go(*one);
        }
    }
    if (holding_.empty()) return;
    home().arm(keeper_, home().now() + how_.visibility / 3);
    pull_signal_.raise();
}

// ---- the pump

void depot::go_pulling() noexcept {
    if (pulling_) return;
    auto self = weak_from_this().lock();
    if (!self) return;
    pulling_ = true;
    pull_all(std::move(self));
}

bool depot::has_to_pull() const noexcept { return !verdicts_.empty() || (look_ && !takers_.empty()); }

root depot::pull_all(std::shared_ptr<depot> self) {
    auto& me = *self;
    while (me.has_to_pull()) {
        auto call = me.next_pull();
        for (bool again = true; again;) {
            errc reason{};
            std::string why;
            try {
                auto request = me.ask(call);
                auto const said = co_await std::move(request);
                again = !me.pulled(call, said);
                continue;
            } catch (error const& problem) {
                reason = problem.reason();
                why = problem.what();
            }
            again = me.pull_failed(call, reason, why);
            if (!again) break;
            try {
                engine::pause rest{me.owner(), retry_delay};
                co_await rest;
            } catch (error const&) {
                me.pull_failed(call, errc::cancelled, "the client was closed");
                again = false;
            }
        }
        if (me.has_to_pull()) me.flushed();  // else when all has ended
    }
    me.pulling_ = false;
    me.rest_pulling();
}

depot::pull_call depot::next_pull() {
    pull_call call;
    name_here();
    call.sequence = pull_session_.sequence++;
    auto const count = std::min(verdicts_.size(), most_verdicts);
    auto const end = verdicts_.begin() + static_cast<std::ptrdiff_t>(count);
    call.verdicts.reserve(count);
    for (auto at = verdicts_.begin(); at != end; ++at) {
        if (at->what == verdict::kind::ack) call.verdicts.push_back(std::move(*at));
    }
    call.acks = call.verdicts.size();
    for (auto at = verdicts_.begin(); at != end; ++at) {
        bool const is_needless = at->of && at->is_ours && at->of->now != held_item::state::held;  // what became of it is said, too
        if (at->of && !is_needless) call.verdicts.push_back(std::move(*at));
    }
    verdicts_.erase(verdicts_.begin(), end);
    if (std::exchange(look_, false)) {
        for (auto const& one : takers_) {
            if (call.want == most_at_once) break;
            ++call.want;
            call.ahead += one.most - 1;
            call.waits = call.waits || !one.once;
        }
        call.ahead = std::min(call.ahead, most_at_once - call.want);
        call.covered = entries_;
        told_ = false;
        if (call.waits) listen();
    }
    call.victim = std::exchange(victim_, {});
    call.sent = base::boot_clock::now();
    call.begun = home().now();
    return call;
}

task<reply> depot::ask(pull_call const& what) {
    std::vector<argument> words;
    words.reserve(6 + what.acks + 3 * (what.verdicts.size() - what.acks));
    std::vector<std::string> texts;  // what the words point to
    texts.reserve(what.verdicts.size() - what.acks);
    auto const want = fmt::format("{} {} {} {}", what.want, what.ahead, limits_.budget, limits_.largest);
    words.insert(words.end(), {rules_, what.sequence, latest(), want});
    std::string name = what.waits ? name_ : std::string{};
    if (!lane_.empty()) name = fmt::format("{}\n{}\n{}\n{}", name, lane_, steals_half_ ? "half" : "one", what.victim);
    if (!job_words_.empty()) name = fmt::format("{}\n{}", name, job_words_);
    words.emplace_back(name);
    words.emplace_back(what.acks);
    for (std::size_t i = 0; i != what.verdicts.size(); ++i) {
        auto const& one = what.verdicts[i];
        words.emplace_back(one.of->token);
        if (i < what.acks) continue;
        switch (one.what) {
            case verdict::kind::extend: texts.push_back(fmt::format("extend {}", one.time.count())); break;
            case verdict::kind::unused: texts.emplace_back("unused"); break;
            case verdict::kind::complete: texts.emplace_back("done"); break;
            case verdict::kind::retry: texts.push_back(fmt::format("retry {}", one.time.count())); break;
            case verdict::kind::fail: texts.emplace_back("fail"); break;
            case verdict::kind::postpone: texts.push_back(fmt::format("postpone {}", one.time.count())); break;
            default: texts.push_back(fmt::format("later {}", one.time.count())); break;
        }
        words.emplace_back(texts.back());
        words.emplace_back(one.reason);
    }
    if (lane_.empty()) return run(pull_script_, pull_keys_, words);
    auto keys = pull_keys_;
    keys.push_back(lane_key(what.victim.empty() ? lane_ : what.victim));
    return run(pull_script_, keys, words);
}

bool depot::pulled(pull_call& what, reply const& said) {
    auto const answer = read_pull_answer(said, !job_words_.empty());
    clock_.learn(answer.now_ms);
    last_contact_ = home().now();
    ahead_ms_ = answer.now_ms + 1 - std::chrono::floor<milliseconds>(what.sent.time_since_epoch()).count();
    if (answer.late) {
        what.sequence = pull_session_.sequence++;  // it did not run, and no copy of it can any more
        what.sent = base::boot_clock::now();
        return false;
    }
    if (answer.dropped_completed + answer.dropped_failed != 0 && on_dropped) on_dropped(answer.dropped_completed, answer.dropped_failed);
    if (answer.dropped > 0) letters_dropped(answer.dropped);
    std::vector<bool> lost(what.verdicts.size());
    for (auto const which : answer.lost) {
        if (which < lost.size()) lost[which] = true;
    }
    for (std::size_t i = 0; i != lost.size(); ++i) settled(what.verdicts[i], lost[i], what.sent);
    what.verdicts.clear();
    if (what.want == 0) return true;

    auto const& items = static_cast<reply_view const&>(said);
    auto at = items.begin();
    std::vector<std::shared_ptr<held_item>> taken;
    taken.reserve(answer.tokens.size());
    for (auto const token : answer.tokens) {
        if (++at == items.end()) break;  // an answer that was lost, of items that were gone with it
        auto const entry = (*at).text();
        if (entry.empty()) continue;  // taken so long ago that it is not ours any more
        if (auto const large = read_large_entry(entry)) {
            put_off_too_large(token, *large);
            continue;
        }
        auto item = std::make_shared<held_item>(shared_from_this(), token, entry);
        if (how_.reliable) {
            item->set_end(what.sent, how_.visibility);
            hold(item);
        }
        taken.push_back(std::move(item));
    }
    hand_out(std::move(taken));
    victim_ = answer.victim;
    for (auto one = takers_.begin(); one != takers_.end() && victim_.empty() && !answer.more;) {
        auto& who = *one++;
        if (who.entry > what.covered) break;
        if (who.once) who.finish({});
    }
    quiet_ = answer.waits;
    registered_ = registered_ || answer.waits;
    if (!quiet_ && !takers_.empty()) look_ = true;
    auto const jittered = milliseconds{look_every.count() * 9 / 10 + static_cast<std::int64_t>(base::random_below(look_every.count() / 5))};
    next_look_ = home().now() + std::min(milliseconds{answer.look_again_ms}, jittered);
    return true;
}

void depot::hold(std::shared_ptr<held_item> const& item) {
    holding_.push_back(*item);
    item->kept = item;
    if (how_.renew && !keeper_.linked()) home().arm(keeper_, home().now() + how_.visibility / 3);
}

void depot::letters_dropped(std::int64_t count) {
    auto const counts = message_counts::of(*owner());
    queue_tally::count((lane_.empty() ? counts->queues : counts->lanes).dropped, static_cast<std::uint64_t>(count));
    auto const unlogged = drops_.add(home().now(), static_cast<std::uint64_t>(count));
    if (unlogged == 0) return;
    log(log_level::warning, fmt::format("'{}': {} dead letters were dropped: they were older than dead_retention, or more than max_dead or max_dead_bytes allows",
                                        what_.name(), unlogged));
}

/// Another client may be able to receive it; when none could, it is dead, for this reason.
void depot::put_off_too_large(std::string_view token, large_entry const& what) {
    auto const item = std::make_shared<held_item>(shared_from_this(), token, what.head);
    auto reason = fmt::format("its {} bytes are more than the {} that this client can receive (max_reply_bytes is {})", what.bytes, limits_.largest,
                              owner()->options().max_reply_bytes);
    if (auto const count = too_large_.add(home().now()); count == 1) {
        log(log_level::error, fmt::format("'{}': item {} was not handled: {}", what_.name(), item->id, reason));
    } else if (count > 1) {
        log(log_level::error, fmt::format("'{}': {} items were not handled, of which {} is the last: {}", what_.name(), count, item->id, reason));
    }
    if (!how_.reliable) return;  // it is with the dead letters
    item->now = held_item::state::judged;
    judge({.of = item, .what = verdict::kind::nack, .time = too_large_delay, .reason = std::move(reason)});
}

/// In equal parts to those who wait, as far as they take several.
void depot::hand_out(std::vector<std::shared_ptr<held_item>> items) noexcept {
    auto waiting = static_cast<std::size_t>(std::distance(takers_.begin(), takers_.end()));
    std::vector<std::shared_ptr<held_item>> unwanted;
    for (std::size_t i = 0; i != items.size();) {
        if (waiting == 0 || !items[i]->is_valid()) {
            if (how_.reliable) give_back(std::move(items[i]));
            else unwanted.push_back(std::move(items[i]));
            ++i;
            continue;
        }
        auto& who = takers_.front();
        auto const left = items.size() - i;
        auto const share = std::min(who.most, (left + waiting - 1) / waiting);
        --waiting;
        for (std::size_t n = 1; n < share; ++n) who.more.push_back(std::move(items[i + n]));
        who.finish(std::move(items[i]));
        i += share;
    }
    if (!unwanted.empty()) see_to(put_again(shared_from_this(), std::move(unwanted)));
}

void depot::give_back(std::shared_ptr<held_item> what) {
    if (!how_.reliable) return see_to(put_again(shared_from_this(), {std::move(what)}));
    what->now = held_item::state::judged;
    judge({.of = std::move(what), .what = verdict::kind::unused});
}

/// An item in a message. It may have been under way for a while: then it is given back, and a pull takes it, whose time is known.
void depot::offered(std::string_view message) {
    auto const what = read_offer(message);
    auto const now = base::boot_clock::now();
    auto const age = std::chrono::ceil<milliseconds>(now.time_since_epoch()).count() + ahead_ms_ - what.now_ms;  // at most
    auto const item = std::make_shared<held_item>(shared_from_this(), what.token, what.entry);
    // One from the future: the server's clock was set since it was last heard.
    if (ahead_ms_ != 0 && age > -50 && age < what.lease.count() / 4) item->set_end(now - milliseconds{std::max<std::int64_t>(age, 0)}, what.lease);
    else item->lose();
    hold(item);
    hand_out({item});
    if (item->now != held_item::state::held) return;
    verdicts_.push_back({.of = item, .what = verdict::kind::extend, .time = how_.visibility, .is_ours = true});
    ++said_;
    pull_signal_.raise();
}

void depot::settled(verdict& what, bool is_lost, base::boot_clock::time_point sent) noexcept {
    auto& item = *what.of;
    if (what.what == verdict::kind::extend) {
        if (item.now == held_item::state::over) is_lost = false;  // it was done meanwhile
        bool const is_too_late = what.is_ours && item.now == held_item::state::held && !item.is_valid();  // who has it was told that it is lost: it is not taken again silently
        if (is_lost || is_too_late) {
            item.lose();
            let_go(item);
        } else {
            item.set_end(sent, what.time);
        }
    } else {
        item.now = held_item::state::over;
        if (is_lost) item.lose();
    }
    if (what.is_ours) return;
    if (auto* const who = take_hearer(what)) {
        if (is_lost) who->fail(lost_error(*this, item));
        else who->finish();
    } else if (is_lost && what.serial == 0 && item.failed) {
        item.failed(lost_error(*this, item));
    }
    if (item.now == held_item::state::over) item.failed = nullptr;
}

void depot::failed(verdict& what, std::exception_ptr why) noexcept {
    auto& item = *what.of;
    if (what.is_ours) return;
    auto* const who = take_hearer(what);
    if (who != nullptr && what.what != verdict::kind::extend && how_.reliable && !closing_) {
        // Its holder may try again.
        item.now = held_item::state::held;
        auto expected = held_item::state::held;
        if (item.dropped && item.now.compare_exchange_strong(expected, held_item::state::judged)) {
            if (item.tally) queue_tally::count(item.tally->returned);
            judge({.of = what.of, .what = verdict::kind::nack, .reason = held_item::was_dropped});
        } else {
            hold(what.of);
        }
    }
    if (who != nullptr) who->fail(std::move(why));
    else if (what.serial == 0 && item.failed) item.failed(std::move(why));
}

bool depot::pull_failed(pull_call& what, errc reason, std::string const& why) noexcept {
    bool const passing = reason == errc::timeout || reason == errc::unavailable || reason == errc::indeterminate;
    auto const now = home().now();
    auto const patience = owner()->deadline({}) - now;
    for (auto at = takers_.begin(); at != takers_.end();) {
        auto& one = *at++;
        if (passing && now - std::max(one.since(), last_contact_) < patience) continue;
        one.fail(passing ? errc::unavailable : reason, why);
    }
    if (passing && !closing_ && now - what.begun < longest_try) return true;
    for (auto& one : what.verdicts) failed(one, make_error(reason, why));
    what.verdicts.clear();
    quiet_ = false;
    next_look_ = now + look_every;
    if (!takers_.empty()) look_ = true;
    return false;
}

void depot::rest_pulling() noexcept {
    if (!takers_.empty()) {
        home().arm(look_timer_, std::max(next_look_, home().now()));  // its time may have come while a call was under way
        return ended();
    }
    home().disarm(look_timer_);
    quiet_ = false;
    bool const is_known = std::exchange(registered_, false);
    bool const was_told = std::exchange(told_, false);  // and does nothing about it: another one is to know
    if (auto const self = weak_from_this().lock(); self && (is_known || was_told)) {
        see_to(say_leave(what_.key_of("waiting"), name_, "r"));
    }
    ended();
}

}  // namespace lockstep::detail
