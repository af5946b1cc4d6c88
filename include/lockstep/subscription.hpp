#pragma once

/// Listening to Redis channels.
///
///     auto news = client.subscribe("news", [](lockstep::message const& message) { std::cout << message.payload << '\n'; });
///     ...                                                    // ends with `news`
///
/// Handlers run on the client's I/O thread, one at a time: keep them short, never block there. What they throw is logged. At most once: what is published while the
/// connection is down is missed; `on_gap` tells that it may have happened, after the subscription is in force again.

#include <functional>
#include <memory>
#include <string>
#include <string_view>

namespace lockstep {

struct message {
    std::string_view channel;  ///< valid during the call
    std::string_view payload;
};

using message_handler = std::function<void(message const&)>;

enum class subscription_kind {
    channel,  ///< one channel, SUBSCRIBE
    pattern,  ///< every channel that fits a glob pattern, PSUBSCRIBE
    shard,    ///< a shard channel, SSUBSCRIBE: in a Cluster it stays on the nodes of its slot and follows the slot when it moves
};

struct subscription_options {
    std::string channel{};
    message_handler handler{};
    subscription_kind kind = subscription_kind::channel;
    std::function<void()> on_gap{};  ///< messages may have been missed; they come again from now on
};

namespace detail {
class subscription_state;
}

/// Ends the subscription when it goes. When `unsubscribe` returns the handler does not run and will not run again, unless it was
/// called from the handler itself.
class [[nodiscard]] subscription {
public:
    subscription() noexcept = default;
    explicit subscription(std::shared_ptr<detail::subscription_state> state) noexcept;
    subscription(subscription&&) noexcept = default;
    subscription& operator=(subscription&& other) noexcept;
    ~subscription();

    void unsubscribe() noexcept;
    explicit operator bool() const noexcept { return state_ != nullptr; }

private:
    std::shared_ptr<detail::subscription_state> state_;
};

}  // namespace lockstep
