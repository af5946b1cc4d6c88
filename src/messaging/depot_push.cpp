// How items are enqueued.
#include "lease/hub.hpp"
#include "messaging/depot.hpp"
#include "scripts/all.hpp"

#include <lockstep/error.hpp>
#include <lockstep/log.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace lockstep::detail {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t most_at_once = 4000;
constexpr std::size_t most_bytes = 4 << 20;
constexpr std::size_t least_half = 32;  // a call costs the server as much as ten items
constexpr std::chrono::milliseconds look_for_room_every = 30s;
constexpr int most_tries = 5;

}  // namespace

std::vector<shipment*> depot::push_call::senders() const {
    std::vector<shipment*> all;
    for (auto const& one : parcels) {
        if (one.from != nullptr && (all.empty() || all.back() != one.from)) all.push_back(one.from);
    }
    return all;
}

void depot::enter(shipment& what) {
    if (closing_ || owner()->closed()) return what.fail(errc::cancelled, "the client is closed");
    shipments_.push_back(what);
    if (full_ && what.waits) return;
    send_ = true;
    push_signal_.raise();
}

void depot::leave(shipment& what) noexcept {
    what.unlink();
    for (auto const& one : pushers_) {
        if (one.what == nullptr || what.under_way == 0) continue;
        for (auto& parcel : one.what->parcels) {
            if (parcel.from == &what) parcel.from = nullptr;
        }
    }
    if (!is_pushing()) rest_pushing();
}

void depot::look_for_room() noexcept {
    full_ = false;
    if (shipments_.empty()) return;
    send_ = true;
    push_signal_.raise();
}

void depot::go_pushing() noexcept {
    for (auto& one : pushers_) {
        if (one.what != nullptr || count_to_push(one) == 0) continue;
        auto self = weak_from_this().lock();
        if (!self) return;
        push_all(std::move(self), one);
    }
}

bool depot::is_pushing() const noexcept { return pushers_[0].what != nullptr || pushers_[1].what != nullptr; }

depot::list_of<shipment>::iterator depot::first_unsent() noexcept {
    auto at = shipments_.begin();
    while (at != shipments_.end() && at->next == at->payloads.size()) ++at;
    // Its ids are put together in order, so no two calls have parts of one.
    return at != shipments_.end() && at->under_way != 0 ? shipments_.end() : at;
}

/// How many items its next call is to have, about; 0: none now. Many jobs are halved if nothing is under way: while the server has one half, those who
/// wait for the other go on here. Few wait for the call that is, and leave together. Items of a queue keep their order whatever happens to a call.
std::size_t depot::count_to_push(pusher const& by) noexcept {
    if (!send_) return 0;
    std::size_t count = 0;
    for (auto one = first_unsent(); one != shipments_.end(); ++one) count += one->payloads.size() - one->next;
    bool const is_alone = (&by == &pushers_[0] ? pushers_[1] : pushers_[0]).what == nullptr;
    if (job_words_.empty()) return is_alone ? count : 0;
    if (!is_alone) return count < least_half ? 0 : count;
    return count < 2 * least_half ? count : (count + 1) / 2;
}

root depot::push_all(std::shared_ptr<depot> self, pusher& by) {
    auto& me = *self;
    while (auto const count = me.count_to_push(by)) {
        auto call = me.next_push(by, count);
        by.what = &call;
        for (int tries = 0;; ++tries) {
            try {
                auto request = me.ask(call, by);
                auto const said = co_await std::move(request);
                if (me.pushed(call, said)) break;
                if (tries == most_tries) throw timeout_error("the server's clock runs away");
                call.sequence = by.session.sequence++;
            } catch (error const& problem) {
                me.push_failed(call, problem.reason(), problem.what());
                break;
            }
        }
        by.what = nullptr;
    }
    if (!me.is_pushing()) me.rest_pushing();
}

depot::push_call depot::next_push(pusher& by, std::size_t about) {
    push_call call;
    if (by.session.id.empty()) {
        by.session = hub_.sessions().borrow();
        by.keys = push_keys_;
        by.keys.push_back(what_.key_of("call:" + by.session.id));
    }
    name_here();
    call.sequence = by.session.sequence++;
    auto one = first_unsent();
    call.lane = one->lane;
    for (std::size_t bytes = 0; one != shipments_.end() && one->lane == call.lane; ++one) {
        while (one->next != one->payloads.size() && call.parcels.size() != most_at_once && (bytes == 0 || bytes < most_bytes)) {
            call.parcels.push_back({&*one, one->next});
            call.words.push_back(one->options);
            bytes += one->payloads[one->next].size() + 1;
            call.words.push_back(std::move(one->payloads[one->next]));
            ++one->next;
            ++one->under_way;
        }
        call.waits = call.waits || one->waits;
        if (one->next != one->payloads.size() || call.parcels.size() >= about) break;
    }
    send_ = !job_words_.empty();
    told_of_room_ = false;
    if (call.waits && may_be_full()) listen();
    call.is_named = call.waits && may_be_full();
    return call;
}

task<reply> depot::ask(push_call const& what, pusher const& by) {
    std::vector<argument> words;
    words.reserve(4 + what.words.size());
    words.insert(words.end(), {rules_, what.sequence, latest()});
    if (!lane_.empty()) words.emplace_back(what.lane);
    else words.emplace_back(what.is_named ? std::string_view{name_} : std::string_view{});
    for (auto const& one : what.words) words.emplace_back(one);
    if (lane_.empty()) return run(push_script_, by.keys, words, told_them_);
    auto keys = by.keys;
    keys[1] = lane_key(what.lane);
    return run(push_script_, keys, words, told_them_);
}

bool depot::pushed(push_call& what, reply const& said) {
    auto answer = read_push_answer(said);
    clock_.learn(answer.now_ms);
    last_contact_ = home().now();
    if (answer.late) return false;
    auto twin = answer.twins.begin();
    for (std::size_t i = 0; i != what.parcels.size(); ++i) {
        auto* const from = what.parcels[i].from;
        bool const has_twin = twin != answer.twins.end() && twin->first == i;
        auto const& twins_id = has_twin ? (twin++)->second : std::string{};
        if (from == nullptr) continue;
        --from->under_way;
        if (i >= answer.accepted) {
            auto const index = what.parcels[i].index;
            from->payloads[index] = std::move(what.words[2 * i + 1]);
            from->next = std::min(from->next, index);
            continue;
        }
        if (has_twin) from->done.push_back({.id = twins_id, .is_new = false});
        else from->done.push_back({.id = fmt::format("{}-{}{}", answer.batch, i + 1, from->has_key ? "d" : "")});
    }
    bool const is_full = answer.accepted < what.parcels.size();
    for (auto* const one : what.senders()) {
        if (is_full && !one->waits) one->done.resize(one->payloads.size());
        if (one->done.size() == one->payloads.size()) one->finish();
    }
    // Those who do not wait, and were behind too many who do to be in this call.
    for (auto at = is_full ? shipments_.begin() : shipments_.end(); at != shipments_.end();) {
        auto& one = *at++;
        if (one.waits || one.under_way != 0) continue;
        one.done.resize(one.payloads.size());
        one.finish();
    }
    // A limit that another object has set: now that we know of it, we ask to be told when there is room.
    bool const is_told = what.is_named || std::exchange(is_bounded_, is_bounded_ || is_full);
    if (is_full && what.waits && is_told) full_ = true;
    else send_ = true;
    told_them_ = answer.told;
    if (told_them_) look_after_them();
    return true;
}

void depot::push_failed(push_call& what, errc reason, std::string const& why) noexcept {
    if (reason == errc::timeout) reason = errc::indeterminate;  // it may have run
    for (auto* const one : what.senders()) one->fail(reason, why);
    send_ = true;
}

/// What was taken for good, for somebody who does not wait any more: there is no lease that would bring it back.
task<void> depot::put_again(std::shared_ptr<depot> self, std::vector<std::shared_ptr<held_item>> items) {
    auto& me = *self;
    auto how = me.how_;
    how.max_length = -2;  // none (queue_settings.lua): its place may have been taken
    auto const rules = write_rules(how, me.owner()->is_cluster(), me.channel_);
    auto by = me.hub_.sessions().borrow();
    auto keys = me.push_keys_;
    keys.push_back(me.what_.key_of("call:" + by.id));
    std::vector<std::string> texts;
    for (auto const& one : items) {
        auto const priority = read_entry(one->entry).priority;
        texts.push_back(priority == 0 ? std::string{} : fmt::format("0 {} 0 ", priority));
        texts.emplace_back(one->payload);
    }
    try {
        for (int tries = 0; tries != most_tries; ++tries, ++by.sequence) {
            std::vector<argument> words{rules, by.sequence, me.latest(), me.lane_};
            for (auto const& one : texts) words.emplace_back(one);
            auto request = me.run(me.push_script_, keys, words);
            auto const said = co_await std::move(request);
            auto const answer = read_push_answer(said);
            me.clock_.learn(answer.now_ms);
            if (answer.late) continue;
            me.hub_.sessions().give_back(std::move(by));
            if (answer.told) me.look_after_them();
            co_return;
        }
        throw timeout_error("the server's clock runs away");
    } catch (error const& problem) {
        log(log_level::warning, fmt::format("'{}': {} items that nobody waited for any more may be lost: {}", me.what_.name(), items.size(), problem.what()));
    }
}

void depot::rest_pushing() noexcept {
    if (full_ && !shipments_.empty()) {
        if (!room_timer_.linked()) home().arm(room_timer_, home().now() + look_for_room_every);
        return;
    }
    if (told_of_room_ && !shipments_.empty()) return;  // they are going to use it
    home().disarm(room_timer_);
    auto const self = weak_from_this().lock();
    bool const is_known = std::exchange(full_, false);
    bool const was_told = std::exchange(told_of_room_, false);
    if ((is_known || was_told) && self) see_to(say_leave(what_.key_of("room"), name_, "m"));
    ended();
}

}  // namespace lockstep::detail
