#include "redis/subscriptions.hpp"

#include "redis/slot.hpp"
#include "redis/verdict.hpp"
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

/// A SUBSCRIBE or UNSUBSCRIBE on its way. Never abandoned: what it is answered by depends on whether it is refused.
class subscriptions::call final : public operation {
public:
    call(subscriptions& owner, connection& at, channel_kind kind, std::vector<std::string> channels, bool begins)
        : owner_(owner), at_(at), kind_(kind), channels_(std::move(channels)), begins_(begins) {
        by_push = true;
        replies = static_cast<std::uint16_t>(channels_.size());
    }
    void encode(resp::output& out) override {
        resp::command_header(out, channels_.size() + 1);
        resp::bulk(out, std::string_view{begins_ ? verbs_of(kind_).subscribe : verbs_of(kind_).unsubscribe});
        for (auto const& channel : channels_) resp::bulk(out, channel);
    }
    void complete(reply_view answer) noexcept override {
        auto const self = owned();
        if (answer.is_error() && begins_) owner_.call_refused(at_, kind_, channels_, answer.text());
    }
    void fail(errc, std::string_view) noexcept override { auto const self = owned(); }  // the reconnect subscribes anew

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
};

subscriptions::subscriptions(placer& owner) noexcept : placer_(owner) {}
subscriptions::~subscriptions() = default;

void subscriptions::subscribe(connection& at, channel_kind kind, std::vector<std::string> channels, bool first) {
    constexpr std::size_t most = 1000;
    for (std::size_t begin = 0; begin < channels.size(); begin += most) {
        auto const end = std::min(channels.size(), begin + most);
        std::vector<std::string> part{channels.begin() + static_cast<std::ptrdiff_t>(begin), channels.begin() + static_cast<std::ptrdiff_t>(end)};
        auto& sent = *calls_.emplace_back(std::make_unique<call>(*this, at, kind, std::move(part), true));
        if (first) {
            at.submit_first(sent);
        } else {
            at.submit(sent);
        }
    }
}

void subscriptions::unsubscribe(connection& at, channel_kind kind, std::string const& channel) {
    at.submit(*calls_.emplace_back(std::make_unique<call>(*this, at, kind, std::vector{channel}, false)));
}

void subscriptions::add(channel_kind kind, std::string const& channel, listener& who) {
    auto const [found, fresh] = channels_.try_emplace({kind, channel});
    auto& one = found->second;
    one.listeners.push_back(&who);
    if (one.confirmed) return who.subscribed();
    if (!fresh) return;
    one.at = placer_.place(kind, channel);
    if (one.at == nullptr) return;
    one.at->open();
    if (auto const reason = one.at->refusal()) return who.refused(*reason, one.at->last_trouble());
    if (one.at->ready()) subscribe(*one.at, kind, {channel}, false);  // otherwise connected() will
}

void subscriptions::remove(channel_kind kind, std::string const& channel, listener& who) noexcept {
    auto const found = channels_.find({kind, channel});
    if (found == channels_.end()) return;
    std::erase(found->second.listeners, &who);
    if (!found->second.listeners.empty()) return;
    auto* const at = found->second.at;
    channels_.erase(found);
    if (at != nullptr && at->ready()) unsubscribe(*at, kind, channel);
}

template <class F>
void subscriptions::tell(key const& which, F what) noexcept {
    // A listener may remove itself or others while it is told.
    auto found = channels_.find(which);
    if (found == channels_.end()) return;
    auto const listeners = found->second.listeners;
    for (auto* const who : listeners) {
        found = channels_.find(which);
        if (found == channels_.end()) return;
        auto const& now = found->second.listeners;
        if (std::find(now.begin(), now.end(), who) != now.end()) what(*who);
    }
}

void subscriptions::connected(connection& at) noexcept {
    for (auto const kind : {channel_kind::shard, channel_kind::pattern, channel_kind::plain}) {
        std::map<std::uint16_t, std::vector<std::string>> together;  // shard channels of one call must share a slot
        for (auto& [which, one] : channels_) {
            if (which.first != kind || one.at != &at) continue;
            auto const group = kind == channel_kind::shard ? key_slot(which.second) : std::uint16_t{0};
            together[group].push_back(which.second);
        }
        for (auto& [group, channels] : together) subscribe(at, kind, std::move(channels), true);
    }
}

void subscriptions::disconnected(connection& at) noexcept {
    std::vector<key> lost;
    for (auto& [which, one] : channels_) {
        if (one.at == &at && std::exchange(one.confirmed, false)) lost.push_back(which);
    }
    for (auto const& which : lost) tell(which, [](listener& who) { who.interrupted(); });
}

void subscriptions::forget(connection& at) noexcept {
    disconnected(at);
    for (auto& [which, one] : channels_) {
        if (one.at == &at) one.at = nullptr;
    }
}

void subscriptions::place_all() noexcept {
    std::vector<key> moved;
    for (auto& [which, one] : channels_) {
        auto* const at = placer_.place(which.first, which.second);
        if (at == one.at || at == nullptr) continue;
        one.at = at;
        if (std::exchange(one.confirmed, false)) moved.push_back(which);
        at->open();
        if (at->ready()) subscribe(*at, which.first, {which.second}, false);
    }
    for (auto const& which : moved) tell(which, [](listener& who) { who.interrupted(); });
}

void subscriptions::refuse_all(errc reason, std::string_view why) noexcept {
    std::vector<key> all;
    for (auto const& [which, one] : channels_) all.push_back(which);
    for (auto const& which : all) tell(which, [&](listener& who) { who.refused(reason, why); });
}

void subscriptions::call_refused(connection& at, channel_kind kind, std::vector<std::string> const& channels, std::string_view text) noexcept {
    std::string const why{text};
    auto const judged = judge(why);
    bool const elsewhere = judged.what == verdict::moved || judged.what == verdict::ask || judged.what == verdict::retry_later;
    for (auto const& channel : channels) {
        auto const found = channels_.find({kind, channel});
        if (found == channels_.end() || found->second.at != &at) continue;
        if (elsewhere) {
            found->second.at = nullptr;
        } else {
            tell({kind, channel}, [&](listener& who) { who.refused(errc::server, why); });
        }
    }
    if (elsewhere) placer_.misplaced();
}

void subscriptions::pushed(connection& at, reply_view push) noexcept {
    if (push.size() < 3 || !push[0].is_text() || !push[1].is_text()) return;
    auto const word = push[0].text();
    auto const name = push[1].text();
    if (word == "message") return deliver(channel_kind::plain, name, name, push[2].text());
    if (word == "smessage") return deliver(channel_kind::shard, name, name, push[2].text());
    if (word == "pmessage" && push.size() == 4) return deliver(channel_kind::pattern, name, push[2].text(), push[3].text());
    if (word == "subscribe") return confirm(at, channel_kind::plain, name);
    if (word == "psubscribe") return confirm(at, channel_kind::pattern, name);
    if (word == "ssubscribe") return confirm(at, channel_kind::shard, name);
    if (word == "sunsubscribe") return given_up(at, name);
}

void subscriptions::confirm(connection& at, channel_kind kind, std::string_view channel) noexcept {
    key const which{kind, channel};
    auto const found = channels_.find(which);
    if (found == channels_.end() || found->second.at != &at || std::exchange(found->second.confirmed, true)) return;
    tell(which, [](listener& who) { who.subscribed(); });
}

void subscriptions::given_up(connection& at, std::string_view channel) noexcept {
    key const which{channel_kind::shard, channel};
    auto const found = channels_.find(which);
    if (found == channels_.end() || found->second.at != &at) return;  // we gave it up ourselves
    found->second.at = nullptr;
    if (std::exchange(found->second.confirmed, false)) tell(which, [](listener& who) { who.interrupted(); });
    placer_.misplaced();
}

void subscriptions::deliver(channel_kind kind, std::string_view subscription, std::string_view channel, std::string_view payload) noexcept {
    tell({kind, std::string{subscription}}, [&](listener& who) { who.message(channel, payload); });
}

}  // namespace lockstep::redis
