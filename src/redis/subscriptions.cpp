#include "redis/subscriptions.hpp"

#include "base/random.hpp"
#include "redis/slot.hpp"
#include "resp/encoder.hpp"

#include <algorithm>
#include <array>

namespace lockstep::redis {
namespace {

struct words {
    char const* subscribe;
    char const* unsubscribe;
};
constexpr std::array<words, 3> verbs{{{"SUBSCRIBE", "UNSUBSCRIBE"}, {"PSUBSCRIBE", "PUNSUBSCRIBE"}, {"SSUBSCRIBE", "SUNSUBSCRIBE"}}};

words const& verbs_of(channel_kind kind) { return verbs[static_cast<std::size_t>(kind)]; }

}  // namespace

/// A SUBSCRIBE or UNSUBSCRIBE on its way. It is answered by pushes, which look like those that the server sends on its own (a shard
/// channel that it gives up), or by an error in-band. A HELLO behind it, which a server always answers, shows where it ends.
class subscriptions::call final : public operation {
public:
    call(subscriptions& owner, connection& at, channel_kind kind, std::vector<std::string> channels, bool begins)
        : owner_(owner), at_(at), kind_(kind), channels_(std::move(channels)), begins_(begins) {
        fenced = true;
        replies = 2;
    }
    void encode(resp::output& out) override {
        resp::command_header(out, channels_.size() + 1);
        resp::bulk(out, std::string_view{begins_ ? verbs_of(kind_).subscribe : verbs_of(kind_).unsubscribe});
        for (auto const& channel : channels_) resp::bulk(out, channel);
        resp::append_command(out, "HELLO");
    }
    void restart() noexcept override { refusal_.clear(); }
    void complete(reply_view answer) noexcept override {
        if (answer.is_error()) {
            refusal_ = answer.text();
            return;
        }
        auto const self = owned();
        if (!refusal_.empty() && begins_) owner_.call_refused(at_, kind_, channels_, refusal_);
    }
    void fail(errc, std::string_view) noexcept override { auto const self = owned(); }  // the reconnect subscribes anew

    bool is_at(connection const& at) const noexcept { return &at_ == &at; }
    bool gives_up(connection const& at, channel_kind kind, std::string_view channel) const noexcept {
        return !begins_ && &at_ == &at && kind_ == kind && channels_.front() == channel;
    }

private:
    std::unique_ptr<call> owned() noexcept {
        auto const mine = std::find_if(owner_.calls_.begin(), owner_.calls_.end(), [this](auto const& one) { return one.get() == this; });
        auto self = std::move(*mine);
        owner_.calls_.erase(mine);
        return self;
    }

    subscriptions& owner_;
    connection& at_;
    channel_kind kind_;
    std::vector<std::string> channels_;
    bool begins_;
    std::string refusal_;
};

subscriptions::subscriptions(reactor& home, placer& owner) noexcept : home_(home), placer_(owner) {}
subscriptions::~subscriptions() = default;

void subscriptions::subscribe(connection& at, channel_kind kind, std::vector<std::string> channels, bool first, bool asking) {
    constexpr std::size_t most = 1000;
    for (std::size_t begin = 0; begin < channels.size(); begin += most) {
        auto const end = std::min(channels.size(), begin + most);
        std::vector<std::string> part{channels.begin() + static_cast<std::ptrdiff_t>(begin), channels.begin() + static_cast<std::ptrdiff_t>(end)};
        auto& sent = *calls_.emplace_back(std::make_unique<call>(*this, at, kind, std::move(part), true));
        sent.asking = asking;
        if (first) {
            at.submit_first(sent);
        } else {
            at.submit(sent);
        }
    }
}

void subscriptions::unsubscribe(connection& at, channel_kind kind, std::string const& channel, bool asking) {
    auto& sent = *calls_.emplace_back(std::make_unique<call>(*this, at, kind, std::vector{channel}, false));
    sent.asking = asking;
    at.submit(sent);
}

void subscriptions::add(channel_kind kind, std::string const& channel, listener& who) {
    if (kind == channel_kind::shard && channels_.find(key_view{kind, channel}) == channels_.end()) placer_.begins(channel);
    auto const [found, fresh] = channels_.try_emplace({kind, channel});
    auto& one = found->second;
    one.listeners.push_back(&who);
    if (one.confirmed) return who.subscribed();
    if (!fresh) return;
    one.at = placer_.place(kind, channel, nullptr);
    if (one.at == nullptr) return;
    one.at->open();
    if (auto const reason = one.at->refusal()) return who.refused(*reason, one.at->last_trouble());
    if (one.at->ready()) subscribe(*one.at, kind, {channel}, false);  // otherwise connected() will
    if (kind == channel_kind::shard) place_second(channel, one);
}

void subscriptions::remove(channel_kind kind, std::string const& channel, listener& who) noexcept {
    auto const found = channels_.find(key_view{kind, channel});
    if (found == channels_.end()) return;
    if (telling_ != 0) gone_.push_back(&who);
    std::erase(found->second.listeners, &who);
    if (!found->second.listeners.empty()) return;
    auto* const at = found->second.at;
    auto* const second = found->second.second;
    channels_.erase(found);
    if (at != nullptr && at->ready()) unsubscribe(*at, kind, channel);
    if (second != nullptr && second->ready()) unsubscribe(*second, kind, channel, true);
    if (kind == channel_kind::shard) placer_.ends(channel);
}

template <class F>
void subscriptions::tell(key_view which, F what) noexcept {
    auto const found = channels_.find(which);
    if (found == channels_.end()) return;
    if (found->second.listeners.size() == 1) return what(*found->second.listeners.front());
    // A listener may remove itself or others while it is told.
    auto const listeners = found->second.listeners;
    ++telling_;
    for (auto* const who : listeners) {
        if (std::find(gone_.begin(), gone_.end(), who) == gone_.end()) what(*who);
    }
    if (--telling_ == 0) gone_.clear();
}

template <class F>
void subscriptions::tell(std::vector<key> const& which, F what) noexcept {
    for (auto const& one : which) tell(one, what);
}

template <class F>
std::vector<subscriptions::key> subscriptions::those(F condition) const {
    std::vector<key> found;
    for (auto const& [which, one] : channels_) {
        if (condition(one)) found.push_back(which);
    }
    return found;
}

bool subscriptions::has_homeless() const noexcept {
    return std::any_of(channels_.begin(), channels_.end(), [](auto const& one) { return one.second.at == nullptr; });
}

bool subscriptions::uses_second(connection const& at) const noexcept {
    return std::any_of(channels_.begin(), channels_.end(), [&](auto const& one) { return one.second.second == &at; });
}

bool subscriptions::uses(connection const& at) const noexcept {
    return std::any_of(channels_.begin(), channels_.end(), [&](auto const& one) { return one.second.at == &at; });
}

void subscriptions::connected(connection& at) noexcept {
    // What could not be sent before is out of date: it would come after the calls below and undo them.
    std::erase_if(calls_, [&](auto const& one) { return one->is_at(at); });
    subscribe_all(at, false);
    subscribe_all(at, true);
}

void subscriptions::subscribe_all(connection& at, bool second) {
    for (auto const kind : {channel_kind::shard, channel_kind::pattern, channel_kind::plain}) {
        std::map<std::uint16_t, std::vector<std::string>> together;  // shard channels of one call must share a slot
        for (auto& [which, one] : channels_) {
            if (which.first != kind || (second ? one.second : one.at) != &at) continue;
            auto const group = kind == channel_kind::shard ? key_slot(which.second) : std::uint16_t{0};
            together[group].push_back(which.second);
        }
        for (auto& [group, channels] : together) subscribe(at, kind, std::move(channels), true, second);
    }
}

void subscriptions::disconnected(connection& at) noexcept {
    auto const lost = those([&](entry const& one) { return one.at == &at && one.confirmed; });
    for (auto const& which : lost) channels_.find(which)->second.confirmed = false;
    tell(lost, [](listener& who) { who.interrupted(); });
    // Whether the slot still migrates is found out by those who look.
    auto const missed = drop_seconds(at);
    tell(missed, [](listener& who) { who.interrupted(); });
    tell(missed, [](listener& who) { who.subscribed(); });
}

std::vector<subscriptions::key> subscriptions::drop_seconds(connection const& at) noexcept {
    auto dropped = those([&](entry const& one) { return one.second == &at; });
    for (auto const& which : dropped) {
        auto& one = channels_.find(which)->second;
        one.second = nullptr;
        one.second_confirmed = false;
    }
    return dropped;
}

void subscriptions::forget_second(connection& at) noexcept { drop_seconds(at); }

void subscriptions::forget(connection& at) noexcept {
    disconnected(at);
    for (auto& [which, one] : channels_) {
        if (one.at == &at) one.at = nullptr;
    }
}

void subscriptions::place_all() noexcept {
    std::vector<key> moved;
    for (auto& [which, one] : channels_) {
        auto* const at = placer_.place(which.first, which.second, one.at);
        if (at != one.at && at != nullptr) {
            one.at = at;
            if (one.second == at) one.second = nullptr;
            if (std::exchange(one.confirmed, false)) moved.push_back(which);
            at->open();
            if (at->ready()) subscribe(*at, which.first, {which.second}, false);
        }
        if (which.first == channel_kind::shard) place_second(which.second, one);
    }
    tell(moved, [](listener& who) { who.interrupted(); });
}

void subscriptions::place_second(std::string const& channel, entry& one) noexcept {
    auto* at = placer_.second_place(channel);
    if (at == one.at) at = nullptr;
    if (at == one.second) return;
    auto* const before = std::exchange(one.second, at);
    one.second_confirmed = false;
    if (before != nullptr && before->ready()) unsubscribe(*before, channel_kind::shard, channel, true);
    if (at == nullptr) return;
    at->open();
    if (at->ready()) subscribe(*at, channel_kind::shard, {channel}, false, true);
}

void subscriptions::place_seconds(std::uint16_t slot) noexcept {
    for (auto& [which, one] : channels_) {
        if (which.first == channel_kind::shard && key_slot(which.second) == slot) place_second(which.second, one);
    }
}

void subscriptions::refused(connection& at, errc reason, std::string_view why) noexcept {
    drop_seconds(at);
    auto const all = those([&](entry const& one) { return one.at == &at; });
    tell(all, [&](listener& who) { who.refused(reason, why); });
}

void subscriptions::refuse_all(errc reason, std::string_view why) noexcept {
    home_.disarm(*this);
    auto const all = those([](entry const&) { return true; });
    tell(all, [&](listener& who) { who.refused(reason, why); });
}

void subscriptions::call_refused(connection& at, channel_kind kind, std::vector<std::string> const& channels, std::string const& why) noexcept {
    std::vector<key> which;
    std::vector<key> seconds;
    for (auto const& channel : channels) {
        auto const found = channels_.find(key_view{kind, channel});
        if (found == channels_.end()) continue;
        if (found->second.at == &at) which.push_back(found->first);
        if (found->second.second != &at) continue;
        found->second.second = nullptr;
        found->second.second_confirmed = false;
        placer_.second_refused(channel);
        seconds.push_back(found->first);
    }
    // Not there, or not any more. Whoever listens looks; and will again when it hears that the slot migrates.
    tell(seconds, [](listener& who) { who.subscribed(); });
    if (which.empty()) return;
    auto const judged = judge(why);
    switch (judged.what) {
        case verdict::moved:
        case verdict::ask: return displace(at, which, judged, why);
        case verdict::retry_later:
            put(which, nullptr);
            home_.arm(*this, home_.now() + std::chrono::milliseconds{10 + base::random_below(20)});
            return;
        default: tell(which, [&](listener& who) { who.refused(errc::server, why); });
    }
}

void subscriptions::put(std::vector<key> const& which, connection* at) noexcept {
    for (auto const& one : which) {
        if (auto const found = channels_.find(one); found != channels_.end()) found->second.at = at;
    }
}

void subscriptions::displace(connection& at, std::vector<key> const& which, judgement const& why, std::string_view text) noexcept {
    if (which.empty()) return;
    put(which, nullptr);
    if (placer_.misplaced(at, why)) return;
    put(which, &at);
    tell(which, [&](listener& who) { who.refused(errc::server, text); });
}

void subscriptions::pushed(connection& at, reply_view push) noexcept {
    if (push.size() < 3 || !push[0].is_text() || !push[1].is_text()) return;
    auto const word = push[0].text();
    auto const name = push[1].text();
    if (word == "message") return deliver(at, {channel_kind::plain, name}, name, push[2].text());
    if (word == "smessage") return deliver(at, {channel_kind::shard, name}, name, push[2].text());
    if (word == "pmessage" && push.size() == 4) return deliver(at, {channel_kind::pattern, name}, push[2].text(), push[3].text());
    if (word == "subscribe") return confirm(at, channel_kind::plain, name);
    if (word == "psubscribe") return confirm(at, channel_kind::pattern, name);
    if (word == "ssubscribe") return confirm(at, channel_kind::shard, name);
    if (word == "sunsubscribe") return given_up(at, name);
}

void subscriptions::confirm(connection& at, channel_kind kind, std::string_view channel) noexcept {
    key_view const which{kind, channel};
    auto const found = channels_.find(which);
    // It may be that we gave it up and took it up again since: then this confirms what an UNSUBSCRIBE is about to end.
    if (found == channels_.end() || is_leaving(at, kind, channel)) return;
    auto& one = found->second;
    if (one.at != &at && one.second != &at) return;
    if (std::exchange(one.at == &at ? one.confirmed : one.second_confirmed, true)) return;
    tell(which, [](listener& who) { who.subscribed(); });
}

bool subscriptions::is_leaving(connection const& at, channel_kind kind, std::string_view channel) const noexcept {
    return std::any_of(calls_.begin(), calls_.end(), [&](auto const& one) { return one->gives_up(at, kind, channel); });
}

void subscriptions::given_up(connection& at, std::string_view channel) noexcept {
    key const which{channel_kind::shard, channel};
    auto const found = channels_.find(which);
    // It may be that we gave it up ourselves, and took it up again since.
    if (found == channels_.end() || is_leaving(at, channel_kind::shard, channel)) return;
    if (found->second.second == &at) {  // some servers do that when the slot becomes theirs
        found->second.second_confirmed = false;
        return subscribe(at, channel_kind::shard, {std::string{channel}}, false, true);
    }
    if (found->second.at != &at) return;
    if (std::exchange(found->second.confirmed, false)) tell(which, [](listener& who) { who.interrupted(); });
    displace(at, {which}, {}, "the server gave the channel up");
}

void subscriptions::deliver(connection& at, key_view which, std::string_view channel, std::string_view payload) noexcept {
    auto const found = channels_.find(which);
    if (found == channels_.end() || (found->second.at != &at && found->second.second != &at)) return;  // it comes by another connection too
    tell(which, [&](listener& who) { who.message(channel, payload); });
}

}  // namespace lockstep::redis
