#include "lease/hub.hpp"

#include "base/names.hpp"
#include "base/random.hpp"
#include "lease/gate.hpp"

#include <lockstep/log.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <utility>

namespace lockstep::engine {
namespace {

constexpr unsigned index_bits = 24;
constexpr std::uint64_t index_mask = (std::uint64_t{1} << index_bits) - 1;

}  // namespace

hub& hub::of(detail::core& owner) {
    return static_cast<hub&>(owner.extend("lease", [](detail::core& core) { return std::make_unique<hub>(core); }));
}

hub::hub(detail::core& owner)
    : owner_(owner), alarm_(alarm_clock::instance()), client_id_(base::random_id().substr(0, 12)),
      channel_(owner.options().prefix + ":wake:"), is_monitored_(owner.options().monitoring) {}

hub::~hub() {
    if (!owner_.same_process()) return;  // in a child of fork() a mutex may be somebody's who is not here
    for (auto* const one : spare_) delete one;
}

// ---- rooms

std::shared_ptr<room> hub::room_for(std::shared_ptr<detail::core> owner, kind const& what, std::string_view name) {
    auto key = base::key_name(owner_.options().prefix, name, what.word);
    std::lock_guard const guard{rooms_mutex_};
    auto& known = rooms_[key];
    auto found = known.lock();
    if (!found) {
        found = std::make_shared<room>(std::move(owner), *this, what, std::move(key), std::string{name});
        known = found;
    }
    return found;
}

void hub::forget(room const& gone) noexcept {
    std::lock_guard const guard{rooms_mutex_};
    auto const found = rooms_.find(gone.key());
    if (found != rooms_.end() && found->second.expired()) rooms_.erase(found);
}

std::string hub::channel_of(std::string_view key) const {
    if (!owner_.is_cluster()) return channel_;
    return std::string{key.substr(0, key.rfind(':'))} + ":wake:";  // the key's own slot
}

target hub::target_for(std::shared_ptr<detail::core> owner, kind const& what, std::string_view name, lease_options const& options) {
    target made;
    made.how = resolve(options, owner_.options().defaults, name);
    made.where = room_for(std::move(owner), what, name);
    made.rules = fmt::format("{} {} {}", made.how.claim_window.count(), made.how.retention.count(), made.where->channel());
    return made;
}

// ---- gates

std::shared_ptr<gate> hub::gate_for(std::string const& key, std::function<std::shared_ptr<gate>()> const& make) {
    std::lock_guard const guard{rooms_mutex_};
    auto& known = gates_[key];
    auto found = known.lock();
    if (!found) {
        found = make();
        known = found;
    }
    return found;
}

void hub::forget(gate const& gone) noexcept {
    std::lock_guard const guard{rooms_mutex_};
    auto const found = gates_.find(gone.key());
    if (found != gates_.end() && found->second.expired()) gates_.erase(found);
}

std::vector<std::shared_ptr<gate>> hub::gates() {
    std::lock_guard const guard{rooms_mutex_};
    std::vector<std::shared_ptr<gate>> alive;
    for (auto const& [key, one] : gates_) {
        if (auto found = one.lock()) alive.push_back(std::move(found));
    }
    return alive;
}

// ---- holds

hold& hub::new_hold(std::shared_ptr<target const> what) {
    hold* made = nullptr;
    {
        std::lock_guard const guard{spare_mutex_};
        if (!spare_.empty()) {
            made = spare_.back();
            spare_.pop_back();
        }
    }
    if (made == nullptr) made = new hold{*this};
    std::uint64_t index = table_.size();
    if (vacant_.empty()) {
        table_.push_back(made);
    } else {
        index = vacant_.back();
        vacant_.pop_back();
        table_[index] = made;
    }
    registration_.begin();
    made->permits = what->amount;
    made->become(std::move(what), ++serial_ << index_bits | index, client_id_);
    return *made;
}

void hub::end_hold(hold& done) noexcept {
    auto const index = done.number() & index_mask;
    table_[index] = nullptr;
    vacant_.push_back(static_cast<std::uint32_t>(index));
    done.let_go();
}

void hub::recycle(hold& unused) noexcept {
    if (!owner_.same_process()) return;
    auto const kept = std::move(unused.target_);  // and with it this hub, until the end of this call
    {
        std::lock_guard const guard{spare_mutex_};
        if (spare_.size() < owner_.options().pool_size) {
            spare_.push_back(&unused);
            return;
        }
    }
    delete &unused;
}

// ---- the agenda

void hub::schedule(hold& who, hold::clock::time_point when) noexcept {
    unschedule(who);
    who.agenda_time_ = when;
    agenda_.insert(who);
    if (&*agenda_.begin() == &who) set_timer();
}

void hub::unschedule(hold& who) noexcept {
    if (who.agenda_hook::is_linked()) agenda_.erase(agenda_.iterator_to(who));
}

void hub::set_timer() noexcept {
    // Left alone when it is set too early: it then finds nothing due and is set anew.
    auto const when = agenda_.begin()->agenda_time();
    if (!linked() || when < due()) reactor().arm(*this, when);
}

void hub::fire() noexcept {
    auto const now = reactor().now();
    while (!agenda_.empty() && agenda_.begin()->agenda_time() <= now) {
        auto& who = *agenda_.begin();
        agenda_.erase(agenda_.begin());
        who.act();
    }
    // Renewals that are due soon share this write.
    std::vector<hold*> soon;
    for (auto& one : agenda_) {
        if (one.agenda_time() > now + std::chrono::milliseconds{10}) break;
        if (one.may_renew()) soon.push_back(&one);
    }
    for (auto* const one : soon) one->act();
    registration_.go_along();
    if (!agenda_.empty()) set_timer();
}

// ---- pushes

void hub::listen() noexcept {
    if (std::exchange(listening_, true)) return;
    owner_.way()->listening().add(redis::channel_kind::plain, channel_ + client_id_, *this);
}

void hub::message(std::string_view, std::string_view payload) noexcept {
    if (payload.starts_with('?')) return registration_.watched(payload.substr(1));
    if (payload.starts_with('!') || payload.starts_with('~')) {
        auto* const one = find_hold(payload.substr(1));
        if (one == nullptr) return;
        if (payload.front() == '!') return one->evicted();
        if (one->now() == hold::state::held) one->asked();
        return;
    }
    if (!payload.starts_with('=')) return pushed(payload);
    std::shared_ptr<gate> found;
    {
        std::lock_guard const guard{rooms_mutex_};
        auto const known = gates_.find(payload.substr(1));
        if (known != gates_.end()) found = known->second.lock();
    }
    if (found) found->changed();
}

// One that is not known any more has sent its cancellation, which will find what it was told of.
void hub::pushed(std::string_view id) noexcept {
    if (id.starts_with('+')) {  // its end has come by the server's clock: somebody asks whether it is well
        auto* const one = find_hold(id.substr(1));
        if (one != nullptr && one->may_renew()) one->act();
    } else if (auto* const one = find_hold(id)) {
        one->told();
    }
}

hold* hub::find_hold(std::string_view id) const noexcept {
    if (!id.starts_with(client_id_) || id.size() < client_id_.size() + 2) return nullptr;
    auto const text = id.substr(client_id_.size() + 1);
    std::uint64_t number = 0;
    auto const [end, problem] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (problem != std::errc{} || end != text.data() + text.size()) return nullptr;
    auto const index = number & index_mask;
    if (index >= table_.size() || table_[index] == nullptr || table_[index]->number() != number) return nullptr;
    return table_[index];
}

void hub::subscribed() noexcept {
    if (owner_.is_cluster()) return;  // there each name has its own channel
    for (std::size_t i = 0; i < table_.size(); ++i) {
        auto* const one = table_[i];
        if (one == nullptr || one->now() != hold::state::waiting) continue;
        one->looks_with_others = true;
        one->what()->where->ask_again(*one);
    }
    for (auto const& one : gates()) one->reconnected();
}

void hub::refused(errc reason, std::string_view why) noexcept {
    if (reason == errc::cancelled) return;
    if (owner_.is_cluster()) return;  // for people only
    // It stays among those who listen, and is subscribed with the next connection.
    log(log_level::error, fmt::format("no wake-ups from the server, so those who wait look again only now and then: {}", why));
}

lockstep::statistics hub::counters() const noexcept {
    lockstep::statistics sum;
    owner_.way()->add_to(sum);
    return sum;
}

std::vector<ledger::total> hub::totals() const {
    return owner_.home().locked([this] { return ledger_.totals(); });
}

std::uint64_t hub::connects() const noexcept { return counters().connects; }
bool hub::is_connected(std::int16_t slot) const noexcept { return owner_.way()->reaches(slot); }

// ---- the end

void hub::count_release(int change) noexcept {
    releasing_ += change;
    if (releasing_ == 0 && closed_) std::exchange(closed_, nullptr)();
}

void hub::see_to(task<reply> work) {
    bool const waits = closing_ && is_connected();
    if (waits) count_release(+1);
    start(std::move(work), [this, waits](std::exception_ptr, std::optional<reply>) {
        if (waits) count_release(-1);
    });
}

void hub::close(std::function<void()> done) noexcept {
    closing_ = true;
    while (!pauses_.empty()) pauses_.front().fail(errc::cancelled, "the client was closed");
    count_release(+1);  // this call: not done before everything has been said
    closed_ = std::move(done);
    for (std::size_t i = 0; i < table_.size(); ++i) {
        auto* const one = table_[i];
        if (one == nullptr) continue;
        auto const what = one->what();
        switch (one->now()) {
            case hold::state::held: one->lose("the client was closed"); break;
            case hold::state::watching:
            case hold::state::owing: one->tell_next(); break;  // owing: what came for nobody has most likely come by now
            case hold::state::asking:
            case hold::state::waiting:
            case hold::state::claiming: what->where->failed(*one, errc::cancelled, "the client was closed"); break;
            default: break;
        }
        what->where->fail_all(errc::cancelled, "the client was closed");
    }
    for (auto const& one : gates()) one->close();
    registration_.end();  // behind all that was counted and told here
    tracer_.end();
    count_release(-1);
}

}  // namespace lockstep::engine
