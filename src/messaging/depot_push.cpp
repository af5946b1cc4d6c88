// How items are enqueued.
#include "lease/hub.hpp"
#include "messaging/depot.hpp"
#include "scripts/all.hpp"

#include <lockstep/error.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace lockstep::detail {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t most_at_once = 4000;
constexpr std::size_t most_bytes = 4 << 20;
constexpr std::chrono::milliseconds claim_window = 500ms;
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
    if (pushing_what_ != nullptr && what.under_way != 0) {
        for (auto& one : pushing_what_->parcels) {
            if (one.from == &what) one.from = nullptr;
        }
    }
    if (!pushing_) rest_pushing();
}

void depot::look_for_room() noexcept {
    full_ = false;
    if (shipments_.empty()) return;
    send_ = true;
    push_signal_.raise();
}

void depot::go_pushing() noexcept {
    if (pushing_) return;
    auto self = weak_from_this().lock();
    if (!self) return;
    pushing_ = true;
    push_all(std::move(self));
}

bool depot::has_to_push() const noexcept { return send_ && !shipments_.empty(); }

root depot::push_all(std::shared_ptr<depot> self) {
    auto& me = *self;
    while (me.has_to_push()) {
        auto call = me.next_push();
        me.pushing_what_ = &call;
        for (int tries = 0;; ++tries) {
            try {
                auto request = me.ask(call);
                auto const said = co_await std::move(request);
                if (me.pushed(call, said)) break;
                if (tries == most_tries) throw timeout_error("the server's clock runs away");
            } catch (error const& problem) {
                me.push_failed(call, problem.reason(), problem.what());
                break;
            }
        }
        me.pushing_what_ = nullptr;
    }
    me.pushing_ = false;
    me.rest_pushing();
}

depot::push_call depot::next_push() {
    push_call call;
    if (push_session_.id.empty()) {
        push_session_ = hub_.sessions().borrow();
        push_keys_.push_back(what_.key_of("call:" + push_session_.id));
    }
    name_here();
    call.sequence = push_session_.sequence++;
    call.lane = shipments_.front().lane;
    std::size_t bytes = 0;
    for (auto& one : shipments_) {
        if (one.lane != call.lane) break;
        while (one.next != one.payloads.size() && call.parcels.size() != most_at_once && (bytes == 0 || bytes < most_bytes)) {
            call.parcels.push_back({&one, one.next});
            call.words.push_back(one.options);
            bytes += one.payloads[one.next].size() + 1;
            call.words.push_back(std::move(one.payloads[one.next]));
            ++one.next;
            ++one.under_way;
        }
        call.waits = call.waits || one.waits;
        if (one.next != one.payloads.size()) break;
    }
    send_ = told_of_room_ = false;
    if (call.waits && how_.max_length > 0) listen();
    return call;
}

task<reply> depot::ask(push_call const& what) {
    std::vector<argument> words;
    words.reserve(4 + what.words.size());
    words.insert(words.end(), {rules_, what.sequence, latest()});
    if (!lane_.empty()) words.emplace_back(what.lane);
    else words.emplace_back(what.waits && how_.max_length > 0 ? std::string_view{name_} : std::string_view{});
    for (auto const& one : what.words) words.emplace_back(one);
    if (lane_.empty()) return run(push_script_, push_keys_, words);
    auto keys = push_keys_;
    keys[1] = lane_key(what.lane);
    return run(push_script_, keys, words);
}

bool depot::pushed(push_call& what, reply const& said) {
    auto answer = read_push_answer(said);
    clock_.learn(answer.now_ms);
    last_contact_ = home().now();
    if (answer.late) {
        what.sequence = push_session_.sequence++;
        return false;
    }
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
    if (is_full && what.waits) full_ = true;
    else send_ = true;
    if (answer.told > 0 && !closing_ && !nudge_timer_.linked()) home().arm(nudge_timer_, home().now() + claim_window);
    return true;
}

void depot::push_failed(push_call& what, errc reason, std::string const& why) noexcept {
    if (reason == errc::timeout) reason = errc::indeterminate;  // it may have run
    for (auto* const one : what.senders()) one->fail(reason, why);
    send_ = true;
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
