#pragma once

// What this process listens to: channels, patterns and shard channels, on whatever connections their owner chooses.
//
// Each channel is subscribed once however many listeners it has. After a reconnect everything is subscribed again before anything else
// is sent, and listeners hear of it: messages may have been missed between `interrupted` and `subscribed`. A shard channel
// that the server gives up because its slot moved is placed anew. All calls in turns.

#include "redis/connection.hpp"

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

class subscriptions {
public:
    /// Chooses a connection for a channel; null: none now, `place_all` will be called later.
    class placer {
    public:
        virtual connection* place(channel_kind kind, std::string_view channel) noexcept = 0;
        /// A shard channel is not at home where it was looked for.
        virtual void misplaced() noexcept {}

    protected:
        ~placer() = default;
    };

    explicit subscriptions(placer& owner) noexcept;
    ~subscriptions();

    void add(channel_kind kind, std::string const& channel, listener& who);
    void remove(channel_kind kind, std::string const& channel, listener& who) noexcept;
    bool empty() const noexcept { return channels_.empty(); }

    // What connections report:
    void connected(connection& at) noexcept;
    void disconnected(connection& at) noexcept;
    void pushed(connection& at, reply_view push) noexcept;
    /// This connection is about to go.
    void forget(connection& at) noexcept;
    /// The placer may answer differently now: places what has no place or another one.
    void place_all() noexcept;
    void refuse_all(errc reason, std::string_view why) noexcept;

private:
    class call;
    struct entry {
        connection* at = nullptr;
        bool confirmed = false;
        std::vector<listener*> listeners;
    };
    using key = std::pair<channel_kind, std::string>;

    void subscribe(connection& at, channel_kind kind, std::vector<std::string> channels, bool first);
    void unsubscribe(connection& at, channel_kind kind, std::string const& channel);
    void call_refused(connection& at, channel_kind kind, std::vector<std::string> const& channels, std::string_view text) noexcept;
    template <class F>
    void tell(key const& which, F what) noexcept;
    void confirm(connection& at, channel_kind kind, std::string_view channel) noexcept;
    void given_up(connection& at, std::string_view channel) noexcept;
    void deliver(channel_kind kind, std::string_view subscription, std::string_view channel, std::string_view payload) noexcept;

    placer& placer_;
    std::map<key, entry> channels_;
    std::vector<std::unique_ptr<call>> calls_;
};

}  // namespace lockstep::redis
