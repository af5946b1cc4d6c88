#pragma once

/// `event_bus`: publish and subscribe, typed, by channel and by glob pattern. For news that nobody needs who is not listening just now.
///
///     lockstep::event_bus bus{client, "shop"};
///     auto news = bus.subscribe<order>("orders.created", [](order const& what) { show(what); });
///     bus.publish("orders.created", order{7, "book"});
///     ...                                                    // ends with `news`
///
/// At most once: a message is delivered to those who are connected when it is published. After a broken connection everything is subscribed again and
/// `on_gap` tells that messages may have been missed. Who must not miss any uses `durable_bus`, which has the same interface (but for the
/// options of a subscription: nothing waits in a queue there, so nothing is dropped from one).
///
/// Handlers run one at a time per subscription, in the order of arrival, on your executor or on a thread of the subscription's own, never on the
/// client's I/O thread. Between arrival and handler is a queue of `capacity`; `when_full` says what becomes of a handler that is too slow.
///
/// Channels belong to the bus: those of another name are others. In a Cluster a bus uses sharded pub/sub, where each channel lives on one shard; there
/// patterns need `patterns = true`, with which every message goes to all nodes. All programs of a bus must say the same.
///
/// Failure: `invalid_argument_error`, `indeterminate_error` (the reply to a publish was lost: it is not repeated), `conversion_error` is logged and counted where a
/// message is not of the type that its subscriber expects. Threads: everything may be called from any thread.

#include <lockstep/bus_subscription.hpp>
#include <lockstep/client.hpp>
#include <lockstep/codec.hpp>
#include <lockstep/task.hpp>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

namespace lockstep {

namespace detail {
struct event_bus_state;
}

struct event_bus_options {
    bool patterns = false;  ///< of a bus in a Cluster that is also subscribed to by patterns: plain pub/sub, all messages to all nodes
};

class event_bus {
public:
    event_bus(client& by, std::string_view name, event_bus_options options = {});

    /// To how many connections the server has passed it on (in a Cluster with `patterns`: those of one node).
    template <class T, codec_for<T> Codec = codec<T>>
    std::int64_t publish(std::string_view channel, T const& value) {
        return publish_bytes(channel, Codec::encode(value));
    }
    template <class T, codec_for<T> Codec = codec<T>>
    task<std::int64_t> async_publish(std::string_view channel, T const& value) {
        return async_publish_bytes(channel, Codec::encode(value));
    }

    /// `handler(T const&)` or `handler(T const&, std::string_view channel)`. Returns when the server has confirmed it.
    template <class T, codec_for<T> Codec = codec<T>, class F>
    bus_subscription subscribe(std::string_view channel, F handler, bus_subscribe_options options = {}) {
        return subscribe_bytes(channel, false, detail::decoding<T, Codec>(std::move(handler)), std::move(options));
    }
    template <class T, codec_for<T> Codec = codec<T>, class F>
    task<bus_subscription> async_subscribe(std::string_view channel, F handler, bus_subscribe_options options = {}) {
        return async_subscribe_bytes(channel, false, detail::decoding<T, Codec>(std::move(handler)), std::move(options));
    }
    /// Every channel that fits: `*` any text, `?` one character, `[ab]` one of these, `\` before one that is meant as it is.
    template <class T, codec_for<T> Codec = codec<T>, class F>
    bus_subscription subscribe_pattern(std::string_view pattern, F handler, bus_subscribe_options options = {}) {
        return subscribe_bytes(pattern, true, detail::decoding<T, Codec>(std::move(handler)), std::move(options));
    }
    template <class T, codec_for<T> Codec = codec<T>, class F>
    task<bus_subscription> async_subscribe_pattern(std::string_view pattern, F handler, bus_subscribe_options options = {}) {
        return async_subscribe_bytes(pattern, true, detail::decoding<T, Codec>(std::move(handler)), std::move(options));
    }

private:
    std::int64_t publish_bytes(std::string_view channel, std::string payload);
    task<std::int64_t> async_publish_bytes(std::string_view channel, std::string payload);
    bus_subscription subscribe_bytes(std::string_view channel, bool is_pattern, detail::bus_handler handler, bus_subscribe_options options);
    task<bus_subscription> async_subscribe_bytes(std::string_view channel, bool is_pattern, detail::bus_handler handler, bus_subscribe_options options);

    std::shared_ptr<detail::event_bus_state> state_;
};

}  // namespace lockstep
