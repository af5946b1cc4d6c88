#include "redis/slot_migrations.hpp"

#include "base/random.hpp"
#include "redis/router.hpp"
#include "redis/slot.hpp"
#include "resp/encoder.hpp"

#include <fmt/format.h>

#include <array>
#include <utility>
#include <vector>

namespace lockstep::redis {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds announce_every{200};   // at most, for each slot
constexpr milliseconds announce_jitter{200};  // those who wait for their turn to announce mostly receive another's before it
constexpr milliseconds travel_time{100};      // an announcement that comes so much later than an ASK was made after it
constexpr milliseconds refused_for{500};      // until a target that refused is tried again
constexpr milliseconds question_time{5'000};
constexpr milliseconds subscribing_time{30};
constexpr milliseconds heard_time{1'000};

/// The smallest number in each slot. Made once, in less than a millisecond: the checksum of a number is that of its first digits and one step.
std::uint32_t number_in(std::uint16_t slot) {
    static auto const numbers = [] {
        std::array<std::uint32_t, slot_count> smallest{};
        std::vector<std::uint16_t> sums;
        for (std::uint32_t n = 0, missing = slot_count; missing != 0; ++n) {
            auto const before = n < 10 ? std::uint16_t{0} : sums[n / 10];
            auto const index = static_cast<std::uint8_t>(before >> 8 ^ static_cast<std::uint8_t>('0' + n % 10));
            auto const sum = static_cast<std::uint16_t>(before << 8 ^ crc16::table[index]);
            sums.push_back(sum);
            auto& first = smallest[sum % slot_count];
            if (first != 0) continue;
            first = n + 1;
            --missing;
        }
        return smallest;
    }();
    return numbers[slot] - 1;
}

}  // namespace

/// One command to the node that has the slot, whose answer nobody needs.
class slot_migrations::question final : public operation {
public:
    question(router& way, std::uint16_t of, std::vector<std::string> words) : words_(std::move(words)) {
        slot = static_cast<std::int16_t>(of);
        repeatable = true;
        use_way({std::shared_ptr<void>{}, &way});  // which outlives this
        begin(way.home().now() + question_time, nullptr);
    }
    ~question() { withdraw(); }
    void encode(resp::output& out) override {
        resp::command_header(out, words_.size());
        for (auto const& word : words_) resp::bulk(out, word);
    }
    void complete(reply_view) noexcept override {}
    void fail(errc, std::string_view) noexcept override {}

private:
    std::vector<std::string> words_;
};

struct slot_migrations::migration final : timer {
    migration(slot_migrations& owner, std::uint16_t of) noexcept : all(owner), slot(of) {}
    ~migration() {
        if (linked()) all.way_.home().disarm(*this);
    }
    void fire() noexcept override { all.tell(*this); }
    bool is_busy() const noexcept { return linked() || under_way(telling) || under_way(probing); }
    static bool under_way(std::optional<question> const& one) noexcept { return one && one->where() != operation::place::idle; }

    slot_migrations& all;
    std::uint16_t slot;
    connection* target = nullptr;
    std::string address;                          // of the target
    reactor::clock::time_point asked_at{};        // the last ASK that is to be announced
    reactor::clock::time_point quiet_until{};     // it was announced just now
    reactor::clock::time_point refused_until{};
    reactor::clock::time_point heard_until{};     // another client noticed before this one
    reactor::clock::time_point wait_until{};      // until then requests wait for those who subscribe at the target
    std::optional<question> telling;
    std::optional<question> probing;
};

slot_migrations::slot_migrations(router& way, subscriptions& listening, std::string prefix)
    : way_(way), listening_(listening), prefix_(std::move(prefix)) {}
slot_migrations::~slot_migrations() = default;

std::string slot_migrations::channel_of(std::uint16_t slot) const { return fmt::format("{}:{{{}}}:migrating", prefix_, number_in(slot)); }

slot_migrations::migration& slot_migrations::at(std::uint16_t slot) {
    auto& found = migrations_[slot];
    if (!found) found = std::make_unique<migration>(*this, slot);
    return *found;
}

bool slot_migrations::is_migrating_channel(std::string_view channel, std::uint16_t slot) const {
    return channel.ends_with(":migrating") && channel == channel_of(slot);
}

// Its own comes first, so that whoever looks again when a channel is subscribed receives every announcement from then on.
void slot_migrations::begins(std::string_view channel) {
    auto const slot = key_slot(channel);
    if (prefix_.empty() || is_migrating_channel(channel, slot)) return;
    if (++channels_[slot] == 1) listening_.add(channel_kind::shard, channel_of(slot), *this);
}

void slot_migrations::ends(std::string_view channel) noexcept {
    auto const slot = key_slot(channel);
    if (prefix_.empty() || is_migrating_channel(channel, slot)) return;
    auto const found = channels_.find(slot);
    if (found == channels_.end() || --found->second != 0) return;
    channels_.erase(found);
    listening_.remove(channel_kind::shard, channel_of(slot), *this);
}

// ---- what shows that a slot migrates

bool slot_migrations::asked(std::uint16_t slot, connection& target, std::string const& address, operation const& request) noexcept {
    if (prefix_.empty() || closed_) return false;
    auto const now = way_.home().now();
    auto& which = at(slot);
    which.address = address;
    bool const own = which.probing && &*which.probing == &request;
    if (!own && !(which.telling && &*which.telling == &request)) announce(which);
    if (which.target != &target && now >= which.refused_until) {
        if (!own && now >= which.heard_until) which.wait_until = now + subscribing_time;  // it is the first to notice
        which.target = &target;
        listening_.place_seconds(slot);
    }
    return !own && now < which.wait_until;
}

void slot_migrations::announce(migration& which) noexcept {
    auto const now = way_.home().now();
    which.asked_at = now;
    if (now >= which.quiet_until) return tell(which);
    if (which.linked()) return;
    auto const jitter = milliseconds{base::random_below(static_cast<std::uint64_t>(announce_jitter.count()))};
    way_.home().arm(which, which.quiet_until + jitter);
}

void slot_migrations::tell(migration& which) noexcept {
    auto& home = way_.home();
    if (which.linked()) home.disarm(which);
    which.quiet_until = home.now() + announce_every;
    if (migration::under_way(which.telling)) return home.arm(which, which.quiet_until);
    which.telling.emplace(way_, which.slot, std::vector<std::string>{"SPUBLISH", channel_of(which.slot), which.address});
}

void slot_migrations::message(std::string_view channel, std::string_view payload) noexcept {
    if (closed_) return;
    auto& which = at(key_slot(channel));
    auto const now = way_.home().now();
    which.quiet_until = now + announce_every;
    which.heard_until = now + heard_time;
    if (which.linked() && which.asked_at + travel_time < now) way_.home().disarm(which);
    if (which.target == nullptr || which.address != payload) probe(which);
}

void slot_migrations::probe(migration& which) noexcept {
    if (migration::under_way(which.probing)) return;
    which.probing.emplace(way_, which.slot, std::vector<std::string>{"EXISTS", channel_of(which.slot)});
}

// ---- where its keys may be

connection* slot_migrations::second_place(std::string_view channel) const noexcept {
    if (migrations_.empty()) return nullptr;
    auto const slot = key_slot(channel);
    auto const found = migrations_.find(slot);
    if (found == migrations_.end() || is_migrating_channel(channel, slot)) return nullptr;
    return found->second->target;
}

void slot_migrations::second_refused(std::string_view channel) noexcept {
    auto const found = migrations_.find(key_slot(channel));
    if (found == migrations_.end()) return;
    found->second->target = nullptr;
    found->second->refused_until = way_.home().now() + refused_for;
}

void slot_migrations::forget(connection const& target) noexcept {
    for (auto const& [slot, one] : migrations_) {
        if (one->target == &target) one->target = nullptr;
    }
}

void slot_migrations::remove_finished(std::function<connection const*(std::uint16_t)> const& owner_of) noexcept {
    std::erase_if(migrations_, [&](auto const& entry) {
        auto& one = *entry.second;
        if (one.target != nullptr && one.target == owner_of(one.slot)) one.target = nullptr;
        return one.target == nullptr && !one.is_busy();
    });
}

void slot_migrations::close() noexcept {
    closed_ = true;
    for (auto const& [slot, one] : migrations_) {
        if (one->linked()) way_.home().disarm(*one);
    }
}

}  // namespace lockstep::redis
