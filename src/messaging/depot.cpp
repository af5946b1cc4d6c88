#include "messaging/depot.hpp"

#include "lease/hub.hpp"
#include "lease/pause.hpp"
#include "messaging/queue_house.hpp"
#include "scripts/all.hpp"

#include <lockstep/error.hpp>
#include <lockstep/log.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

namespace lockstep::detail {
namespace {

using namespace std::chrono_literals;

constexpr std::chrono::milliseconds claim_window = 500ms;  // who was told of items has taken them by then, or is dead; longer than queue_offer.lua's moment
constexpr std::chrono::milliseconds longest_try = 60s;
constexpr std::chrono::milliseconds longest_budget = 5s;   // a command that was given up can run so much later at most
constexpr int most_tries = 5;

/// The limits of a queue of jobs are not kept in it.
queue_options options_of(queue_options how, lane_options const& lane) {
    if (lane.job_type.empty()) return how;
    how.max_deliveries = how.max_deliveries.value_or(20);
    how.max_length = how.max_dead = how.max_dead_bytes = 0;
    how.dead_retention = 0ms;
    return how;
}

std::string kind_of(lane_options const& lane) {
    if (!lane.job_type.empty()) return "jobs:q:" + std::string{lane.job_type};
    return lane.lane.empty() ? "queue" : "stealing";
}

scripts::script const& choose(lane_options const& lane, scripts::script const& of_queues, scripts::script const& of_lanes, scripts::script const& of_jobs) {
    if (!lane.job_type.empty()) return of_jobs;
    return lane.lane.empty() ? of_queues : of_lanes;
}

}  // namespace

// ---- signals

void depot_signal::raise() noexcept {
    if (std::exchange(raised_, true)) return;
    waited_ = false;
    if (!depot_.owner()->home().hand_in(*this)) raised_ = false;
}

void depot_signal::arrive() noexcept {
    // Behind all who come in this turn, and behind those whom these resume.
    if (!std::exchange(waited_, true)) {
        if (!depot_.owner()->home().hand_in(*this)) raised_ = false;
        return;
    }
    raised_ = false;
    (depot_.*what_)();
}

// ---- the depot

std::shared_ptr<depot> depot::make(std::shared_ptr<core> owner, std::string_view name, queue_options const& how, lane_options const& lane) {
    auto made = std::make_shared<depot>(std::move(owner), name, how, lane);
    queue_house::of(*made->owner()).add(made);
    return made;
}

depot::depot(std::shared_ptr<core> of, std::string_view name, queue_options const& how, lane_options const& lane)
    : what_(std::move(of), name, kind_of(lane)), how_(options_of(how, lane)), limits_(size_limits_of(owner()->options().max_reply_bytes)), lane_(lane.lane), job_words_(lane.job_words), steals_half_(lane.steals_half),
      hub_(engine::hub::of(*what_.owner())), clock_(owner()->is_cluster() ? nullptr : &hub_.offset_ms),
      channel_(what_.key().substr(0, what_.key().rfind(':')) + ":wake:"),
      pull_script_(choose(lane, scripts::queue_pull, scripts::steal_pull, scripts::job_pull)),
      push_script_(choose(lane, scripts::queue_push, scripts::steal_push, scripts::job_push)) {
    rules_ = write_rules(how_, owner()->is_cluster(), channel_);
    // In the order of the scripts.
    if (lane_.empty()) {
        pull_keys_ = push_keys_ = {what_.key(), what_.key_of("absent")};
    } else {
        pull_keys_ = push_keys_ = {what_.key(), lane_key(lane_)};
        for (auto const* const part : {"ranked", "later", "held", "items", "dedup", "recent", "dead", "waiting", "lanes"}) pull_keys_.push_back(what_.key_of(part));
        for (auto const* const part : {"lanes", "waiting"}) push_keys_.push_back(what_.key_of(part));
    }
    if (!lane.job_type.empty()) push_keys_.push_back(what_.key().substr(0, what_.key().rfind(":q:")) + ":types");
}

depot::~depot() {
    if (!owner()->same_process()) return;
    home().in_turn([this] {
        for (auto* const one : {&pull_signal_, &look_timer_, &keeper_, &push_signal_, &room_timer_, &nudge_timer_}) {
            home().take_back(*one);
            home().disarm(*one);
        }
        if (listening_) {
            auto const kind = owner()->is_cluster() ? redis::channel_kind::shard : redis::channel_kind::plain;
            owner()->way()->listening().remove(kind, channel_ + name_, *this);
        }
        // No call is under way, or it would keep this.
        if (!pull_session_.id.empty()) hub_.sessions().give_back(std::move(pull_session_));
        for (auto& one : pushers_) {
            if (!one.session.id.empty()) hub_.sessions().give_back(std::move(one.session));
        }
    });
}

bool depot::is_connected() const noexcept { return hub_.is_connected(what_.slot()); }

std::string depot::lane_key(std::string_view lane) const { return what_.key_of("lane:" + std::string{lane}); }

std::int64_t depot::latest() const noexcept { return clock_.now() + longest_budget.count(); }

task<reply> depot::run(scripts::script const& script, std::span<std::string const> keys, std::span<argument const> words, bool yields) {
    hub_.register_client();
    std::array<std::string_view, 16> views;
    for (std::size_t i = 0; i != keys.size(); ++i) views[i] = keys[i];
    // No longer than the server remembers the call (queue_once.lua).
    auto const time = std::chrono::ceil<milliseconds>(owner()->deadline({}) - home().now());
    return what_.run(script, {views.data(), keys.size()}, words, {.within = std::clamp<milliseconds>(time, 1ms, longest_try), .yields = yields});
}

task<std::string> depot::ask_once(std::shared_ptr<depot> self, scripts::script const& script, std::vector<std::string> keys,
                                  std::vector<std::string> more) {
    engine::pause turn{self->owner(), 0ms};
    co_await turn;
    auto by = self->hub_.sessions().borrow();
    keys.push_back(self->what_.key_of("call:" + by.id));
    for (int tries = 0; tries != most_tries; ++tries) {
        std::vector<argument> words{self->rules_, by.sequence, self->latest()};
        for (auto const& one : more) words.emplace_back(one);
        auto request = self->run(script, keys, words);
        auto const said = co_await std::move(request);
        auto answer = read_once_answer(said);
        self->clock_.learn(answer.now_ms);
        if (!answer.late) {
            self->hub_.sessions().give_back(std::move(by));
            co_return std::move(answer.text);
        }
        ++by.sequence;  // it did not run, and no copy of it can any more
    }
    throw timeout_error("the server's clock runs away");
}

task<std::int64_t> depot::run_once(std::shared_ptr<depot> self, scripts::script const& script, std::vector<std::string> keys,
                                   std::vector<std::string> more) {
    auto asking = ask_once(std::move(self), script, std::move(keys), std::move(more));
    auto const text = co_await std::move(asking);
    co_return read_number(text);
}

void depot::name_here() {
    if (!pull_session_.id.empty()) return;
    pull_session_ = hub_.sessions().borrow();
    pull_keys_.push_back(what_.key_of("call:" + pull_session_.id));
    name_ = (lane_.empty() && how_.reliable ? "+" : "") + pull_session_.id;
}

// ---- what the server tells

void depot::listen() noexcept {
    if (std::exchange(listening_, true)) return;
    auto const kind = owner()->is_cluster() ? redis::channel_kind::shard : redis::channel_kind::plain;
    owner()->way()->listening().add(kind, channel_ + name_, *this);
}

void depot::message(std::string_view, std::string_view payload) noexcept {
    auto const self = weak_from_this().lock();
    if (!self) return;  // it ends
    if (payload == "r") {
        registered_ = quiet_ = false;
        told_ = !takers_.empty();
        look_again();
    } else if (payload.starts_with('o')) {
        registered_ = quiet_ = false;
        try {
            offered(payload.substr(1));
        } catch (error const& problem) {
            log(log_level::warning, fmt::format("'{}': {}", what_.name(), problem.what()));  // its lease will end
        }
        look_again();
    } else if (payload == "m") {
        told_of_room_ = !shipments_.empty();
        look_for_room();
    } else if (payload.starts_with('d') && !takers_.empty()) {
        std::int64_t ms = 0;
        std::from_chars(payload.data() + 1, payload.data() + payload.size(), ms);
        next_look_ = std::min(next_look_, home().now() + milliseconds{std::clamp<std::int64_t>(ms, 0, 1'000'000'000'000)});
        if (!pulling_) home().arm(look_timer_, next_look_);
    }
}

void depot::subscribed() noexcept {
    quiet_ = false;
    if (!takers_.empty()) look_again();
    if (full_) look_for_room();
}

void depot::refused(errc reason, std::string_view why) noexcept {
    if (reason != errc::cancelled) log(log_level::error, fmt::format("no wake-ups for '{}': {}", what_.name(), why));
}

task<void> depot::say_leave(std::string waiting, std::string name, std::string_view word) {
    std::array<std::string, 4> const keys{what_.key(), what_.key_of(lane_.empty() ? "ready" : "lanes"), what_.key_of("ranked"),
                                         std::move(waiting)};
    std::array<argument, 4> const words{rules_, name, word, lane_};
    auto const self = shared_from_this();
    try {
        auto request = run(scripts::queue_leave, keys, words);
        co_await std::move(request);
    } catch (error const&) {
        // It may have run all the same.
    }
    // Whoever came meanwhile may have left the same name before this ran: sent again as a whole, a script is overtaken.
    quiet_ = false;
    look_again();
    if (full_) look_for_room();
}

void depot::see_to(task<void> work) noexcept {
    ++owed_;
    start(std::move(work), [self = shared_from_this()](std::exception_ptr) {
        --self->owed_;  // what the server still knows of us is passed over by whoever tells us something
        self->ended();
    });
}

// ---- those who were told of items, and died

void depot::look_after_them() noexcept {
    told_at_ = home().now();
    if (closing_ || nudge_timer_.linked()) return;
    home().arm(nudge_timer_, told_at_ + claim_window);
    looks_after_ = shared_from_this();
}

void depot::look_after() noexcept {
    auto self = std::exchange(looks_after_, nullptr);
    if (!self) return;
    // Once more after those who were told since it was armed.
    if (auto const due = told_at_ + claim_window; home().now() < due) {
        home().arm(nudge_timer_, due);
        looks_after_ = self;
    }
    see_to(nudge(std::move(self), 0ms));
}

task<void> depot::nudge(std::shared_ptr<depot> self, milliseconds in) {
    auto const& what = self->what_;
    std::array<std::string, 5> const keys{what.key(), what.key_of(self->lane_.empty() ? "ready" : "lanes"), what.key_of("ranked"), what.key_of("waiting"),
                                         what.key_of("held")};
    std::array<argument, 2> const words{self->rules_, in.count()};
    auto request = self->run(scripts::queue_nudge, keys, words);
    auto const said = co_await std::move(request);
    if (said.integer() > 0) self->look_after_them();
}

// ---- the end

void depot::enter(flusher& who) noexcept {
    who.said = said_;
    who.expected = expected_;
    flushers_.push_back(who);
    if (!pulling_) rest_pulling();
}

void depot::dismiss(std::atomic<bool> const* stopping) noexcept {
    for (auto at = takers_.begin(); at != takers_.end();) {
        auto& one = *at++;
        if (one.stopping == stopping) one.finish({});
    }
    if (takers_.empty() && !pulling_) rest_pulling();
}

void depot::close(std::function<void()> done) noexcept {
    closing_ = true;
    closed_ = std::move(done);
    auto const self = shared_from_this();
    while (!takers_.empty()) takers_.front().fail(errc::cancelled, "the client was closed");
    while (!shipments_.empty()) {
        auto& one = shipments_.front();
        leave(one);
        one.fail(errc::cancelled, "the client was closed");
    }
    while (!holding_.empty()) {
        auto const one = holding_.front().shared_from_this();
        one->lose();
        one->now = held_item::state::judged;
        auto const kind = one->is_unseen || job_words_.empty() ? verdict::kind::unused : verdict::kind::postpone;
        judge({.of = one, .what = kind, .reason = "the client was closed"});
    }
    if (auto left = std::exchange(looks_after_, nullptr)) {
        home().disarm(nudge_timer_);
        see_to(nudge(std::move(left), claim_window));
    }
    if (pulling_) return;
    go_pulling();  // and not with the others of this turn, which may be the last
}

void depot::flushed() noexcept {
    auto const answered = said_ - verdicts_.size();  // they are answered in order
    while (!flushers_.empty() && flushers_.front().expected <= arrived_ && flushers_.front().said <= answered) flushers_.front().finish();
}

void depot::ended() noexcept {
    if (pulling_ || owed_ != 0) return;
    flushed();
    if (closing_ && closed_) std::exchange(closed_, nullptr)();
}

// ---- who waits

std::shared_ptr<core> const& taker::owner() const noexcept { return depot_->owner(); }
void taker::enter() { depot_->enter(*this); }
void taker::leave() noexcept { depot_->leave(*this); }
taker::~taker() {
    withdraw();
    if (got) more.push_back(std::move(got));
    std::erase(more, nullptr);
    if (more.empty() || !owner()->same_process()) return;
    owner()->home().in_turn([this] {
        for (auto& one : more) depot_->give_back(std::move(one));
    });
}

std::shared_ptr<core> const& shipment::owner() const noexcept { return depot_->owner(); }
void shipment::enter() { depot_->enter(*this); }
void shipment::leave() noexcept { depot_->leave(*this); }
void shipment::time_is_over() noexcept {
    if (under_way != 0) return fail(errc::indeterminate, "the server did not answer in time; what was sent may have been enqueued");
    done.resize(payloads.size());
    resume_soon();
}

std::shared_ptr<core> const& settling::owner() const noexcept { return what_.of->at->owner(); }
void settling::enter() {
    auto& item = *what_.of;
    bool const is_end = what_.what != verdict::kind::extend;
    auto expected = held_item::state::held;
    if (is_end ? !item.now.compare_exchange_strong(expected, held_item::state::judged) : item.now != expected) {
        return fail(errc::not_held, fmt::format("item {} of '{}' was acknowledged or given back already", item.id, item.at->what().name()));
    }
    item.heard_by = this;
    what_.serial = ++item.serial;
    item.at->judge(what_);
}
void settling::leave() noexcept {
    if (what_.of->heard_by == this) what_.of->heard_by = nullptr;
}
void settling::time_is_over() noexcept { fail(errc::indeterminate, "what became of the item is not known: the server did not answer in time"); }

std::shared_ptr<core> const& flusher::owner() const noexcept { return depot_->owner(); }
void flusher::enter() { depot_->enter(*this); }

}  // namespace lockstep::detail
