#include "lease/gate.hpp"

#include "base/names.hpp"
#include "core/core.hpp"
#include "lease/hub.hpp"
#include "lease/key_keepalive.hpp"
#include "lease/pause.hpp"
#include "lease/session_pool.hpp"
#include "redis/command.hpp"
#include "redis/slot.hpp"

#include <lockstep/error.hpp>
#include <lockstep/log.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

namespace lockstep::engine {
namespace {

using std::chrono::milliseconds;
using namespace std::chrono_literals;

constexpr milliseconds longest_budget = 5s;  // a command that was given up can run so much later at most
constexpr milliseconds retry_delay = 20ms;
constexpr milliseconds leave_time = 60s;  // how long a registration is tried to be taken back

}  // namespace

gate::gate(place where)
    : owner_(std::move(where.owner)), hub_(hub::of(*owner_)), key_(std::move(where.key)), name_(std::move(where.name)),
      rules_(rules_for(where.how)),
      // More often than it must (once per retention): a push that never comes, because the channel is forbidden, costs a minute.
      look_every_(std::min<milliseconds>(where.how.retention / 2, 1min)), slot_(static_cast<std::int16_t>(redis::key_slot(key_))),
      clock_(owner_->is_cluster() ? nullptr : &hub_.offset_ms) {}

gate::~gate() {
    if (!owner_->same_process()) return;
    hub_.forget(*this);
    owner_->home().in_turn([this] {
        owner_->home().take_back(*this);
        owner_->home().disarm(*this);
        if (listening_) owner_->way()->listening().remove(redis::channel_kind::shard, hub_.channel_of(key_) + hub_.client_id(), *this);
    });
}

std::string gate::rules_for(settings const& how) const {
    return fmt::format("{} {} {}", how.claim_window.count(), how.retention.count(), hub_.channel_of(key_));
}

// ---- requests

task<gate_answer> gate::read(std::shared_ptr<gate> self, task<reply> answer) {
    auto const said = co_await std::move(answer);
    self->last_contact_ = self->owner_->home().now();
    auto const found = read_gate_answer(said, self->word(), self->name());
    self->clock_.learn(found.now_ms);
    co_return found;
}

task<gate_answer> gate::call(scripts::script const& script, std::initializer_list<detail::argument> words, clock::time_point until) {
    hub_.register_client();
    if (owner_->objects().is_new(noted_)) owner_->objects().add(key_);
    std::array<std::string_view, 1> const keys{key_};
    redis::command_terms const terms{.deadline = until, .slot = slot_, .repeatable = true, .errors_are_replies = true};
    return read(shared_from_this(), redis::run_script(owner_->way(), script, keys, {words.begin(), words.size()}, terms));
}

std::string gate::new_id() { return fmt::format("{}.{}", hub_.client_id(), hub_.next_number()); }

std::int64_t gate::latest(clock::time_point until) const noexcept {
    auto const left = until == clock::time_point::max() ? longest_budget : std::chrono::ceil<milliseconds>(until - owner_->home().now());
    return clock_.now() + std::clamp(left, milliseconds{10}, longest_budget).count();
}

// ---- visitors

void gate::listen() noexcept {
    if (!owner_->is_cluster()) return hub_.listen();
    if (std::exchange(listening_, true)) return;
    owner_->way()->listening().add(redis::channel_kind::shard, hub_.channel_of(key_) + hub_.client_id(), *this);
}

void gate::enter(visitor& who) noexcept {
    if (owner_->closed()) return who.fail(errc::cancelled, "the client is closed");
    who.entry = ++entries_;
    visitors_.push_back(who);
    hub_.changed();
    tell(trace_what::queued, &who);
    listen();
    // What came in the same read as the answer to its own command has been told already.
    bool const is_news = who.how().changes != changes_;
    if (is_news && who.how().any_change) return who.finish(gate_word::unknown);
    if (is_news) return want();
    if (!asking_ && !linked()) rest();
}

void gate::leave(visitor& who) noexcept {
    who.unlink();
    hub_.changed();
    if (visitors_.empty() && !asking_) rest();
}

void gate::tell(trace_what what, visitor const* who, std::string_view detail) noexcept {
    if (!hub_.tracing().is_on()) return;
    auto const waited = who == nullptr ? clock::duration{0} : owner_->home().now() - who->since();
    hub_.tracing().tell({.what = what,
                         .kind = word(),
                         .use = who == nullptr ? std::string_view{} : purpose(*who),
                         .name = name_,
                         .waited = std::chrono::duration_cast<std::chrono::microseconds>(waited),
                         .at = std::chrono::system_clock::time_point{milliseconds{clock_.now()}},
                         .detail = detail});
}

void gate::want() noexcept {
    wanted_ = true;
    if (std::exchange(asking_, true)) return;
    owner_->home().hand_in(*this);  // behind all who come in this turn
}

void gate::arrive() noexcept {
    if (!closing_) {
        ask_for_all(shared_from_this());
        return;
    }
    asking_ = false;
    rest();
    hub_.count_release(-1);
}

void gate::fire() noexcept {
    if (!visitors_.empty()) want();
}

void gate::rest() noexcept {
    auto& home = owner_->home();
    if (!visitors_.empty()) return home.arm(*this, next_look_ > home.now() ? next_look_ : home.now() + look_every_);
    home.disarm(*this);
    if (!registered_.empty()) take_back(shared_from_this(), std::exchange(registered_, {}));
}

detail::root gate::ask_for_all(std::shared_ptr<gate> self) {
    auto& me = *self;
    while (std::exchange(me.wanted_, false) && !me.visitors_.empty()) {
        auto const covered = me.entries_;
        auto const until = me.owner_->home().now() + longest_budget;
        auto const id = me.new_id();
        me.registered_ = id;  // it may register us, whatever becomes of its answer
        gate_answer said;
        try {
            auto question = me.ask(id, until);
            said = co_await std::move(question);
        } catch (error const& problem) {
            me.registered_ = id;
            me.failed(problem.reason(), problem.what());
            continue;
        }
        me.next_look_ = me.owner_->home().now() + me.look_every_;
        me.registered_ = said.what == gate_word::waiting ? id : std::string{};
        if (said.what == gate_word::late) me.wanted_ = true;
        me.answered(said, covered);
    }
    if (me.closing_) co_return;
    me.asking_ = false;
    me.rest();
}

detail::root gate::take_back(std::shared_ptr<gate> self, std::string id) {
    auto const* const script = self->leaving();
    if (script == nullptr) co_return;
    self->hub_.count_release(+1);
    try {
        auto request = self->call(*script, {id, self->rules_}, self->owner_->home().now() + leave_time);
        co_await std::move(request);
    } catch (error const&) {
        // Without a server there is nobody to tell. What it still knows of us goes with the next change, or after the retention.
    }
    self->hub_.count_release(-1);
}

void gate::answered(gate_answer const& said, std::uint64_t covered) noexcept {
    bool freed = false;
    for (auto at = visitors_.begin(); at != visitors_.end();) {
        auto& one = *at++;
        if (one.entry > covered) break;
        if (!frees(said, one)) continue;
        one.finish(said.what);
        freed = true;
    }
    // Who is left may wait for something that the answer did not speak of.
    if (freed && !visitors_.empty()) want();
}

void gate::failed(errc reason, std::string_view why) noexcept {
    bool const passing = reason == errc::timeout || reason == errc::unavailable || reason == errc::indeterminate;
    auto const now = owner_->home().now();
    auto const patience = owner_->deadline({}) - now;
    for (auto at = visitors_.begin(); at != visitors_.end();) {
        auto& one = *at++;
        if (passing && now - std::max(one.since(), last_contact_) < patience) continue;
        one.fail(passing ? hopeless() : reason, why);
    }
    next_look_ = now + retry_delay;
}

// ---- what the server tells

void gate::free_the_curious() noexcept {
    for (auto at = visitors_.begin(); at != visitors_.end();) {
        auto& one = *at++;
        if (one.how().any_change) one.finish(gate_word::unknown);
    }
}

void gate::changed() noexcept {
    ++changes_;
    registered_.clear();
    free_the_curious();
    if (!visitors_.empty()) want();
}

void gate::reconnected() noexcept {
    // What is under way is sent, maybe again, behind the subscription, and so is its answer younger than that.
    free_the_curious();
    if (!visitors_.empty() && !asking_) want();
}

void gate::close() noexcept {
    if (std::exchange(closing_, true)) return;
    while (!visitors_.empty()) visitors_.front().fail(errc::cancelled, "the client was closed");
    // After those who were just told: what they owe goes out before.
    hub_.count_release(+1);
    owner_->home().keep_for_this_turn(shared_from_this());
    owner_->home().take_back(*this);
    owner_->home().hand_in(*this);
}

void gate::message(std::string_view, std::string_view payload) noexcept {
    if (payload.starts_with('=') && payload.substr(1) == key_) changed();
}

void gate::subscribed() noexcept {
    ++changes_;
    free_the_curious();
    if (!visitors_.empty()) want();
}

void gate::refused(errc reason, std::string_view why) noexcept {
    if (reason != errc::cancelled) log(log_level::error, fmt::format("no wake-ups for '{}': {}", name_, why));
}

// ---- what the objects share

void require_usable(gate const& at) { at.owner()->require_same_process(); }
void require_blocking(gate const& at) {
    require_usable(at);
    at.owner()->require_blocking_is_allowed();
}

task<gate_answer> count_once(std::shared_ptr<gate> at, scripts::script const& script, std::string rules, std::int64_t n) {
    auto const limit = at->owner()->deadline({});
    pause turn{at->owner(), 0ms};
    co_await turn;
    auto const until = std::min(limit, at->owner()->home().now() + longest_try);
    auto session = at->home().sessions().borrow();
    while (true) {
        auto const latest = at->latest(until);
        gate_answer said;
        try {
            task<gate_answer> request;
            if (n == 0) {
                request = at->call(script, {session.id, session.sequence, latest, rules}, until);
            } else {
                request = at->call(script, {n, session.id, session.sequence, latest, rules}, until);
            }
            said = co_await std::move(request);
        } catch (timeout_error const& problem) {
            throw indeterminate_error(fmt::format("whether '{}' was changed is not known: {}", at->name(), problem.what()));
        }
        if (said.what == gate_word::late) continue;  // it did not count, and now the server's time is known
        at->home().sessions().give_back(std::move(session));
        at->tell(trace_what::signalled, nullptr, script.name.substr(script.name.find('_') + 1));  // set, clear, count_down
        co_return said;
    }
}

task<bool> wait_at(std::shared_ptr<gate> at, gate::clock::time_point until) {
    visitor mine{at, {.deadline = until}};
    co_await mine;
    if (mine.outcome()) co_return true;
    if (!at->home().is_connected(at->slot())) {
        throw unavailable_error(fmt::format("{} '{}': no server could be reached in the time allowed", at->word(), at->name()));
    }
    co_return false;
}

gate::clock::time_point limit_of(settings const& how) {
    return how.wait_limit.count() == 0 ? gate::clock::time_point::max() : gate::clock::now() + how.wait_limit;
}

gate::place parts::place_of(client& by, std::string_view word, std::string_view name, lease_options const& options) {
    auto const& core = detail::core_access::of(by);
    core->require_same_process();
    return {.owner = core,
            .key = base::key_name(core->options().prefix, name, word),
            .name = std::string{name},
            .how = resolve(options, core->options().defaults, name)};
}

std::shared_ptr<gate> parts::find(gate::place const& where, std::shared_ptr<gate> (*make)(gate::place)) {
    return hub::of(*where.owner).gate_for(where.key, [&] { return make(where); });
}

std::shared_ptr<void> parts::keep(gate const& at, settings const& how) { return key_keepalive::keep(*at.owner(), at.key(), how.retention); }

}  // namespace lockstep::engine
