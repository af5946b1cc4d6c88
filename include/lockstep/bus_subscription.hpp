#pragma once

/// What `event_bus` and `durable_bus` share: how a subscription is meant, and what holds it.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string_view>
#include <type_traits>
#include <utility>

namespace lockstep {

/// What happens to messages that come while `capacity` others wait for the handler.
enum class overflow {
    drop_oldest,  ///< of those that wait
    drop_newest,  ///< the one that comes
    /// Nothing is dropped here: the subscription has a connection (and an I/O thread) of its own and stops reading it. The server then keeps what comes, up to its
    /// `client-output-buffer-limit pubsub`; beyond that it cuts the connection, which is a gap. Publishers never wait, nor do other subscriptions.
    block,
};

struct bus_subscribe_options {
    std::size_t capacity = 1'000;
    overflow when_full = overflow::drop_oldest;
    /// Runs a function, soon, on whatever thread; e.g. `[&](auto f) { boost::asio::post(pool, std::move(f)); }`. Empty: a thread of the subscription's own.
    std::function<void(std::function<void()>)> executor{};
    std::function<void()> on_gap{};  ///< run where the handler runs, between the messages before the gap and those after it
};

struct bus_counters {
    std::uint64_t delivered = 0;  ///< the handler returned
    std::uint64_t failed = 0;     ///< the handler threw, or the message was not of its type; logged
    std::uint64_t dropped = 0;    ///< the queue was full
    std::uint64_t gaps = 0;
    std::size_t waiting = 0;
};

namespace detail {
class bus_listening;

using bus_handler = std::function<void(std::string_view channel, std::string_view payload)>;

/// A handler of bytes that decodes for a handler of `T`.
template <class T, class Codec, class F>
bus_handler decoding(F handler) {
    return [handler = std::move(handler)](std::string_view channel, std::string_view payload) mutable {
        T const value = Codec::decode(payload);
        if constexpr (std::is_invocable_v<F&, T const&, std::string_view>) {
            handler(value, channel);
        } else {
            handler(value);
        }
    };
}
}  // namespace detail

/// Ends the subscription when it goes. When `end` returns, the handler does not run and will not run again. It does not wait where that could be for ever: called
/// by the handler itself, or on a thread that does the client's I/O (in a coroutine; with `make_client`, anywhere on the threads of its executor). There a handler
/// that runs just then runs to its end, after `end` has returned, with what it refers to; none begins.
class [[nodiscard]] bus_subscription {
public:
    bus_subscription() noexcept = default;
    explicit bus_subscription(std::shared_ptr<detail::bus_listening> state) noexcept;
    bus_subscription(bus_subscription&&) noexcept = default;
    bus_subscription& operator=(bus_subscription&& other) noexcept;
    ~bus_subscription();

    void end() noexcept;
    bus_counters counters() const;
    explicit operator bool() const noexcept { return state_ != nullptr; }

private:
    std::shared_ptr<detail::bus_listening> state_;
};

}  // namespace lockstep
