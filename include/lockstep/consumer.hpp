#pragma once

/// `consumer`: one worker of a group over a stream. Each entry goes to one consumer of the group and is acknowledged when its handler returns.
///
///     lockstep::consumer billing{client, "orders", [](lockstep::delivery const& what) { charge(what.as<order>()); },
///                                {.group = "billing", .concurrency = 8}};
///     ...                                     // works on its own threads until stop() or the end of `billing`
///
/// The handler is a function, run on `concurrency` threads of the consumer's own, or a coroutine (it returns `lockstep::task<void>`), of which as many run
/// at a time, beginning on the client's I/O thread, where nothing may block.
///
/// At least once: what was added and not trimmed away is handled, also when consumers are killed, replies are lost, the server fails over or the
/// group is deleted (it is made anew and begins at the beginning of the stream). Now and then an entry is handled twice; `idempotency` helps with
/// what must not be. Order is that of the stream for one consumer with a concurrency of 1 while nothing fails.
///
/// An entry whose handler throws is tried again after a growing delay: here once, then by any consumer of the group. When it has been delivered
/// `max_deliveries` times it is moved to `stream::dead_letters`, with the reason in the field "dead.reason"; an entry whose handler throws `reject` is moved
/// at once. `lockstep::later` (<lockstep/later.hpp>) postpones an entry, and `busy_error` (of `idempotency`: another client is doing it) has it tried again
/// later: neither counts as a failure or a delivery. Entries of consumers that are gone are taken over when they were not renewed for
/// `idle_limit`; a consumer that lives renews what it has, however long its handlers take.
///
/// A consumer whose handlers fail one after the other (10 times without a success) slows down: it gives what it has back to the group and tries one entry at
/// growing intervals, of 10 s at most, until one succeeds. So a sick process leaves the stream to the healthy ones. At no time does it hold more than
/// `max_pending` entries.
///
/// Failure: nothing is thrown at you after construction. While the server is away it tries again, and logs that.
/// Threads: everything may be called from any thread, but for destruction. Not from the handler: `stop`, destruction.

#include <lockstep/client.hpp>
#include <lockstep/key.hpp>
#include <lockstep/stream_types.hpp>
#include <lockstep/task.hpp>

#include <chrono>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

namespace lockstep {

namespace detail {
class consumer_state;
}

struct delivery : stream_entry {
    std::int64_t deliveries = 1;  ///< this one included
    std::stop_token stop{};       ///< trips when the consumer ends and will not wait any longer
};

/// Thrown by a handler: this entry will never be handled, move it to the dead letters.
class reject : public std::runtime_error {
public:
    using std::runtime_error::runtime_error;
};

/// What a consumer runs: a function of a `delivery const&` that returns nothing, or `task<void>`. The delivery lives until it has ended.
class delivery_handler {
public:
    template <class F>
        requires(!std::same_as<std::remove_cvref_t<F>, delivery_handler> && std::invocable<F&, delivery const&>)
    delivery_handler(F work) {
        if constexpr (std::same_as<std::invoke_result_t<F&, delivery const&>, task<void>>) {
            coroutine = std::move(work);
        } else {
            function = std::move(work);
        }
    }
    std::function<void(delivery const&)> function{};
    std::function<task<void>(delivery const&)> coroutine{};
};

struct consumer_options {
    std::string group{};         ///< must be given
    std::string name{};          ///< this consumer's in its group; empty: a new one. A fixed one goes on with what an earlier one had; never two at a time
    std::string start = "0";     ///< of a group that is new: "0" (all that is in the stream) or "$" (what is added from now on)
    std::size_t concurrency = 1;
    std::size_t batch = 100;     ///< the most that one read takes; less while handlers are slow, so that others get some
    std::size_t max_pending = 0; ///< the most that it holds, waiting, running and not yet acknowledged together; 0: 10 times the larger of batch and concurrency
    std::chrono::milliseconds idle_limit{30'000};  ///< entries that nobody renewed for so long are taken over
    std::int64_t max_deliveries = 20;              ///< then to the dead letters; 0: tried for ever
    std::chrono::milliseconds retry_min{1'000};    ///< the first delay before another try; doubled each time, with jitter
    std::chrono::milliseconds retry_max{600'000};
    std::chrono::milliseconds dead_retention{std::chrono::hours{24 * 14}};  ///< older dead letters are dropped, and counted; 0: kept for ever
    std::int64_t max_dead_letters = 0;             ///< the oldest beyond about so many are dropped, and counted; 0: any number is kept
    std::chrono::milliseconds stop_limit{30'000};  ///< how long `stop` waits for handlers before it asks them to end
    std::function<void()> on_gap{};                ///< entries were trimmed away or deleted before they were delivered to the group; runs where handlers do
};

/// Of this consumer, since it began.
struct consumer_statistics {
    std::uint64_t received = 0;      ///< entries, those taken over included
    std::uint64_t acknowledged = 0;  ///< handled, and the server knows
    std::uint64_t failed = 0;        ///< times that a handler threw, `later` and `busy_error` not included
    std::uint64_t retried = 0;       ///< tried again here, or taken after it was given back
    std::uint64_t returned = 0;      ///< given back to the group
    std::uint64_t postponed = 0;     ///< times that a handler threw `later`
    std::uint64_t dead = 0;          ///< moved to the dead letters
    std::uint64_t dead_dropped = 0;  ///< dead letters that this consumer dropped, by `dead_retention` or `max_dead_letters`
    std::uint64_t missed = 0;        ///< entries that were trimmed away or deleted before they were delivered to the group, as far as the server can tell
    std::uint64_t gaps = 0;          ///< times that such were found
    std::uint64_t recovered = 0;     ///< taken over from others or from an earlier one of its name, or found again after a lost reply
    std::uint64_t interruptions = 0; ///< times that its connection or its group had to be made anew
    std::size_t waiting = 0;         ///< here, not begun
    std::size_t running = 0;
    double per_second = 0;           ///< acknowledged, in the last seconds
};

/// Of the whole group, as the server sees it.
struct consumer_backlog {
    std::optional<std::int64_t> lag{};  ///< not delivered to anybody yet; nothing: unknown
    std::int64_t pending = 0;           ///< delivered, not acknowledged
};

class consumer {
public:
    /// Begins at once, be the server there or not. Throws `invalid_argument_error` for bad names and options out of range, and `std::system_error` where
    /// there can't be so many threads.
    consumer(client& by, std::string_view stream, delivery_handler handler, consumer_options options);
    /// Of a stream that other programs made, or may use.
    consumer(client& by, lockstep::key const& stream, delivery_handler handler, consumer_options options);
    explicit consumer(std::shared_ptr<detail::consumer_state> state) noexcept;
    consumer(consumer&&) noexcept = default;
    consumer& operator=(consumer&&) noexcept;
    /// As `stop`, also when the client was closed before: no handler runs any more. On an I/O thread, where it can't wait, it only lets it end: await `async_stop` before.
    ~consumer();

    /// Takes no more, waits until all that it has is handled and acknowledged, and leaves the group. What waits for another try is given back to the group.
    /// After `stop_limit`, or a request of the token, what has not begun is given back too, handlers are asked to end, and what still runs
    /// a second later is given back while it runs on. It waits for the handlers to return in any case. What is given back without having
    /// failed counts neither as a failure nor as a delivery. Idempotent.
    void stop(std::stop_token token = {});
    task<void> async_stop();
    /// Takes no more, gives back what has not begun, asks handlers to end at once and waits for them up to the limit. What runs then is given back, uncounted, so that
    /// others get it at once, while its handler runs on. Whether all handlers had ended; if not, destruction waits for them.
    bool stop(std::chrono::milliseconds limit, std::stop_token token = {});
    task<bool> async_stop(std::chrono::milliseconds limit);

    consumer_statistics statistics() const;
    consumer_backlog backlog() const;
    task<consumer_backlog> async_backlog() const;
    /// As the server knows it.
    std::string const& name() const noexcept;

private:
    std::shared_ptr<detail::consumer_state> state_;
};

}  // namespace lockstep
