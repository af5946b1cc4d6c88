#pragma once

/// `durable_bus`: the event bus's interface over a stream. What was published is kept, and nobody misses it.
///
///     lockstep::durable_bus bus{client, "shop", {.max_length = 1'000'000}};
///     bus.publish("orders.created", order{7, "book"});
///     auto mails = bus.subscribe<order>("orders.created", send_mail, {.group = "mailer"}); // each message to one of this group and channel
///     auto cache = bus.subscribe_pattern<order>("orders.*", update, {.from = "0"});        // each message to this subscription, from the beginning
///
/// All channels of a bus are one stream, in the order of publication; a subscription is to a channel or by a glob pattern and passes over what does not fit (it is
/// read all the same: give unrelated traffic a bus of its own). A message counts once however often its publication had to be sent.
///
/// With a `group`: a `consumer`, with all that it promises: at least once, retries, dead letters (`stream_of_it().dead_letters()`), taking over from the dead.
/// Subscriptions share messages where group and pattern are the same, letter by letter; with another pattern, or as a single channel, the same group
/// gets all that fits it once more. At the server the group is `<group>{<pattern>}`, which has 512 bytes at most (in the group `%`, braces and
/// control characters are percent-encoded; a channel is a pattern in which `\` stands before each of `*?[]^\`). It stays there when nobody subscribes
/// any more, and keeps its place: `stream_of_it().destroy_group`.
/// Without: the subscription reads from `from` on, in order, each message once while it lives; broken connections lose and double nothing; a handler that throws is
/// logged and the next message follows. It reads no faster than its handler works, and nothing is dropped unless the stream is trimmed before it was read:
/// then `on_gap` tells. To go on after a restart, keep the id that the handler gets and begin `from` there.
///
/// Handlers take `(T const&)`, `(T const&, std::string_view channel)`, or `(T const&, stream_entry const&)`, and run on your executor or on threads of the
/// subscription's own. Failure and threads: as for `stream` and `consumer`.

#include <lockstep/codec.hpp>
#include <lockstep/consumer.hpp>
#include <lockstep/stream.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

namespace lockstep {

namespace detail {
class durable_listening;
struct stream_state;
using entry_handler = std::function<void(stream_entry const&)>;

template <class T, class Codec, class F>
entry_handler entry_decoding(F handler);
}  // namespace detail

struct durable_subscribe_options {
    std::string group{};              ///< shared by those with the same pattern; empty: every message to this subscription
    std::string from = "$";           ///< where to begin: "$" (from now on), "0" (all that is kept), or an id, which is passed over. Of a group: when it is new with this pattern
    std::size_t concurrency = 1;      ///< of a group; without one it is 1
    std::int64_t max_deliveries = 20;  ///< of a group, as in consumer_options; so are those that follow
    std::chrono::milliseconds idle_limit{30'000};
    std::size_t max_pending = 0;
    std::chrono::milliseconds retry_min{1'000};
    std::chrono::milliseconds retry_max{600'000};
    std::chrono::milliseconds dead_retention{std::chrono::hours{24 * 14}};
    /// As in `bus_subscribe_options`; a thread of the subscription's waits while one runs there. If it throws, that is as if the handler did.
    std::function<void(std::function<void()>)> executor{};
    std::function<void()> on_gap{};   ///< messages were trimmed away before they were read. Without a group also: all up to the id `from` were, or the stream was deleted
};

struct durable_counters {
    std::uint64_t delivered = 0;  ///< the handler returned (with a group: and the server knows)
    std::uint64_t failed = 0;     ///< the handler threw
    std::uint64_t passed = 0;     ///< did not fit the pattern
    std::uint64_t gaps = 0;
    std::string position{};       ///< without a group: the id of the last message that was read
};

/// Ends the subscription when it goes: when `end` returns no handler runs. What was handed to an executor and has not begun does not begin; with a group it
/// stays for others. Not to be called by the handler. On a thread that does the client's I/O (in a coroutine; with `make_client`, anywhere on the threads of its
/// executor) it does not wait: there a handler that runs just then runs to its end, after `end` has returned, with what it refers to.
class [[nodiscard]] durable_subscription {
public:
    durable_subscription() noexcept = default;
    explicit durable_subscription(std::shared_ptr<detail::durable_listening> state) noexcept;
    durable_subscription(durable_subscription&&) noexcept = default;
    durable_subscription& operator=(durable_subscription&& other) noexcept;
    ~durable_subscription();

    void end() noexcept;
    durable_counters counters() const;
    explicit operator bool() const noexcept { return state_ != nullptr; }

private:
    std::shared_ptr<detail::durable_listening> state_;
};

class durable_bus {
public:
    static constexpr std::string_view channel_field = "channel";

    durable_bus(client& by, std::string_view name, stream_options options = {});
    /// Over a stream that other programs made, or may use. Their entries are messages where they have the fields "channel" and "data".
    durable_bus(client& by, lockstep::key const& at, stream_options options = {});

    /// The message's id.
    template <class T, codec_for<T> Codec = codec<T>>
    std::string publish(std::string_view channel, T const& value) {
        return stream_.add(fields_of(channel, Codec::encode(value)));
    }
    template <class T, codec_for<T> Codec = codec<T>>
    task<std::string> async_publish(std::string_view channel, T const& value) {
        return stream_.async_add(fields_of(channel, Codec::encode(value)));
    }

    template <class T, codec_for<T> Codec = codec<T>, class F>
    durable_subscription subscribe(std::string_view channel, F handler, durable_subscribe_options options = {}) {
        return subscribe_entries(channel, false, detail::entry_decoding<T, Codec>(std::move(handler)), std::move(options));
    }
    template <class T, codec_for<T> Codec = codec<T>, class F>
    task<durable_subscription> async_subscribe(std::string_view channel, F handler, durable_subscribe_options options = {}) {
        return async_subscribe_entries(channel, false, detail::entry_decoding<T, Codec>(std::move(handler)), std::move(options));
    }
    /// Every channel that fits, as in `event_bus::subscribe_pattern`.
    template <class T, codec_for<T> Codec = codec<T>, class F>
    durable_subscription subscribe_pattern(std::string_view pattern, F handler, durable_subscribe_options options = {}) {
        return subscribe_entries(pattern, true, detail::entry_decoding<T, Codec>(std::move(handler)), std::move(options));
    }
    template <class T, codec_for<T> Codec = codec<T>, class F>
    task<durable_subscription> async_subscribe_pattern(std::string_view pattern, F handler, durable_subscribe_options options = {}) {
        return async_subscribe_entries(pattern, true, detail::entry_decoding<T, Codec>(std::move(handler)), std::move(options));
    }

    stream& stream_of_it() noexcept { return stream_; }

private:
    stream_fields fields_of(std::string_view channel, std::string payload) const;
    durable_subscription subscribe_entries(std::string_view channel, bool is_pattern, detail::entry_handler handler, durable_subscribe_options options);
    task<durable_subscription> async_subscribe_entries(std::string_view channel, bool is_pattern, detail::entry_handler handler, durable_subscribe_options options);

    stream stream_;
    std::shared_ptr<detail::stream_state> state_;  // of that stream
};

template <class T, class Codec, class F>
detail::entry_handler detail::entry_decoding(F handler) {
    return [handler = std::move(handler)](stream_entry const& entry) mutable {
        T const value = entry.as<T, Codec>();
        if constexpr (std::is_invocable_v<F&, T const&, stream_entry const&>) {
            handler(value, entry);
        } else if constexpr (std::is_invocable_v<F&, T const&, std::string_view>) {
            handler(value, std::string_view{*entry.find(durable_bus::channel_field)});
        } else {
            handler(value);
        }
    };
}

}  // namespace lockstep
