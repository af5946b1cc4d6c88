#pragma once

// What this process listens to: channels, patterns and shard channels, on whatever connections their owner chooses.
//
// Each channel is subscribed once however many listeners it has. After a reconnect everything is subscribed again before anything else
// is sent, and listeners hear of it: messages may have been missed between `interrupted` and `subscribed`. A shard channel
// that the server gives up because its slot moved is placed anew. While its slot is between two nodes it is subscribed at both: messages
// are published where the keys are. All calls in turns.

#include "redis/connection.hpp"
#include "redis/verdict.hpp"

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace lockstep::redis {

enum class channel_kind : std::uint8_t { plain, pattern, shard };

class listener {
public:
    virtual void message(std::string_view channel, std::string_view payload) noexcept = 0;
    virtual void subscribed() noexcept = 0;   ///< from now on messages come (again)
    virtual void interrupted() noexcept = 0;  ///< from now on they may be missed
    virtual void refused(errc reason, std::string_view why) noexcept = 0;  ///< they will not come

protected:
    ~listener() = default;
};

class subscriptions final : timer {
public:
    /// Knows which connection a channel belongs to.
    class placer {
    public:
        /// `now` is where it is, or null. Null: nowhere at the moment; `place_all` will be called later.
        virtual connection* place(channel_kind kind, std::string_view channel, connection* now) noexcept = 0;
        /// Shard channels are not at home at `at`, which said `why` (MOVED, or nothing). False: nobody knows another place.
        virtual bool misplaced(connection& at, judgement const& why) noexcept = 0;
        /// Where else messages of this shard channel come from, because its slot migrates there; null: nowhere.
        virtual connection* second_place(std::string_view) noexcept { return nullptr; }
        /// It was not subscribed there.
        virtual void second_refused(std::string_view) noexcept {}
        /// A shard channel is about to be subscribed, or is no longer.
        virtual void begins(std::string_view) {}
        virtual void ends(std::string_view) noexcept {}

    protected:
        ~placer() = default;
    };

    subscriptions(reactor& home, placer& owner) noexcept;
    ~subscriptions();

    void add(channel_kind kind, std::string const& channel, listener& who);
    void remove(channel_kind kind, std::string const& channel, listener& who) noexcept;
    bool empty() const noexcept { return channels_.empty(); }
    /// Does any channel belong to this connection?
    bool uses(connection const& at) const noexcept;
    /// Is it the second place of any?
    bool uses_second(connection const& at) const noexcept;
    /// Does any channel belong nowhere at the moment?
    bool has_homeless() const noexcept;

    // What connections report:
    void connected(connection& at) noexcept;
    void disconnected(connection& at) noexcept;
    void pushed(connection& at, reply_view push) noexcept;
    /// This connection is about to go.
    void forget(connection& at) noexcept;
    void refused(connection& at, errc reason, std::string_view why) noexcept;
    /// The placer may answer differently now: places what has no place or another one.
    void place_all() noexcept;
    /// The same for second places in this slot.
    void place_seconds(std::uint16_t slot) noexcept;
    /// This connection is no second place any more.
    void forget_second(connection& at) noexcept;
    void refuse_all(errc reason, std::string_view why) noexcept;

private:
    class call;
    struct entry {
        connection* at = nullptr;
        bool confirmed = false;
        bool second_confirmed = false;
        connection* second = nullptr;  // the slot's target, while it migrates
        std::vector<listener*> listeners;
    };
    using key = std::pair<channel_kind, std::string>;
    using key_view = std::pair<channel_kind, std::string_view>;
    struct by_key {
        using is_transparent = void;
        bool operator()(key_view const& left, key_view const& right) const noexcept { return left < right; }
    };

    void subscribe(connection& at, channel_kind kind, std::vector<std::string> channels, bool first, bool asking = false);
    void unsubscribe(connection& at, channel_kind kind, std::string const& channel, bool asking = false);
    void subscribe_all(connection& at, bool second);
    void place_second(std::string const& channel, entry& one) noexcept;
    std::vector<key> drop_seconds(connection const& at) noexcept;
    void call_refused(connection& at, channel_kind kind, std::vector<std::string> const& channels, std::string const& why) noexcept;
    void displace(connection& at, std::vector<key> const& which, judgement const& why, std::string_view text) noexcept;
    void put(std::vector<key> const& which, connection* at) noexcept;
    bool is_leaving(connection const& at, channel_kind kind, std::string_view channel) const noexcept;
    void fire() noexcept override { place_all(); }
    template <class F>
    void tell(key_view which, F what) noexcept;
    template <class F>
    void tell(std::vector<key> const& which, F what) noexcept;
    template <class F>
    std::vector<key> those(F condition) const;
    void confirm(connection& at, channel_kind kind, std::string_view channel) noexcept;
    void given_up(connection& at, std::string_view channel) noexcept;
    void deliver(connection& at, key_view which, std::string_view channel, std::string_view payload) noexcept;

    reactor& home_;
    placer& placer_;
    std::map<key, entry, by_key> channels_;
    std::vector<std::unique_ptr<call>> calls_;
    int telling_ = 0;              // listeners are being told something,
    std::vector<listener*> gone_;  // and these have left meanwhile
};

}  // namespace lockstep::redis
