#pragma once

/// `queue`: work that is done at least once, by whoever is free.
///
///     lockstep::queue<order> orders{client, "orders"};        // #include <lockstep/json.hpp> for types of your own
///     orders.enqueue(order{4711});
///
///     if (auto item = orders.dequeue(5s)) {                    // by any program; nobody polls
///         ship(item->value());
///         item->ack();                                         // now it is gone
///     }                                                        // without that it is given back here
///
///     auto worker = orders.consume({.concurrency = 8}, [](lockstep::queue_item<order>& item) { ship(item.value()); });
///
/// An item that is taken is leased: it is renewed while this process lives, and comes back, in front, after `visibility` when it was killed.
/// So an item is handled at least once; it may be handled twice, and the handler has to bear that. What was enqueued and
/// acknowledged by the server is not lost while the server keeps its data.
///
/// Order: of one priority first in, first out, as enqueued through one object; what comes back (nack, a dead consumer) is in front. With several
/// consumers items are begun in that order, and end in any.
///
/// Failure: nothing from `dequeue` means "none came in time", and from `try_enqueue` "no room". Everything else is thrown: `lease_lost_error` (ack,
/// nack and extend of an item that has gone to somebody else or to the dead letters; nothing was changed), `timeout_error` or `indeterminate_error`
/// (the answer did not come in time; what was asked may have been done, once), `unavailable_error`, `cancelled_error`, `server_error`,
/// `conversion_error` (from `value()`), `invalid_argument_error`. A lost reply loses nothing and enqueues nothing twice.
///
/// Threads: everything may be called from any thread; a single item by one at a time. The object may be destroyed while its tasks go on, and items may
/// outlive it. What is asked at the same time through one object leaves together, in one call of a script: use one object per queue.

#include <lockstep/codec.hpp>
#include <lockstep/detail/raw_queue.hpp>
#include <lockstep/detail/time_after.hpp>

#include <concepts>
#include <exception>
#include <span>
#include <type_traits>
#include <utility>

namespace lockstep {

/// An item that this process holds. Destroyed without `ack` it is given back, at once.
template <class T, class Codec = codec<T>>
class queue_item {
public:
    /// Decodes it. Throws `conversion_error`.
    T value() const { return Codec::decode(raw_.bytes()); }
    std::string_view bytes() const { return raw_.bytes(); }
    std::string_view id() const { return raw_.id(); }
    /// Which delivery this is, from 1 on.
    std::int32_t deliveries() const { return raw_.deliveries(); }
    /// Is it still ours, as far as can be known without asking?
    bool is_valid() const { return raw_.is_valid(); }
    /// Trips when it is not any more, a little before others can get it.
    std::stop_token stop_token() const { return raw_.stop_token(); }

    /// It is done.
    void ack(std::stop_token token = {}) { raw_.ack(std::move(token)); }
    task<void> async_ack() { return raw_.async_ack(); }
    /// It is not done: somebody gets it again, after the delay (10 years at most); or it is dead, for this reason, if that was its last delivery.
    void nack(std::chrono::milliseconds delay = {}, std::string_view reason = "nack", std::stop_token token = {}) {
        raw_.nack(delay, reason, std::move(token));
    }
    task<void> async_nack(std::chrono::milliseconds delay = {}, std::string_view reason = "nack") { return raw_.async_nack(delay, reason); }
    /// Its lease ends after this time (1 ms to 10 years) from now on, or later if it is renewed.
    void extend(std::chrono::milliseconds time, std::stop_token token = {}) { raw_.extend(time, std::move(token)); }
    task<void> async_extend(std::chrono::milliseconds time) { return raw_.async_extend(time); }

    explicit queue_item(detail::raw_item raw) noexcept : raw_(std::move(raw)) {}

private:
    detail::raw_item raw_;
};

/// An item that nobody could handle.
template <class T, class Codec = codec<T>>
struct dead_letter {
    std::string id;     ///< of the letter, for `requeue` and `drop`
    std::string item;   ///< the id that the item had
    std::string bytes;
    std::string reason;  ///< of the last nack, or that its lease ended
    std::int32_t deliveries = 0;
    std::chrono::system_clock::time_point died{};
    std::size_t size = 0;  ///< of the payload; larger than `bytes`, which is empty, if this client cannot receive that much (`max_reply_bytes`)
    T value() const { return Codec::decode(bytes); }
};

/// Handlers that `consume` started.
///
/// A worker whose handlers mostly throw takes fewer items, up to one every 5 s, so that others who can handle them get them; a few that succeed end that.
/// Failures are logged, in one line at once and then in one every 20 s at most.
///
/// Destruction stops them as `stop` does, and waits for them. After `consume_options::stop_limit` it trips the stop tokens of those that still run, a second
/// later it gives back what they handle, and it waits until they have returned, for a thread cannot be ended. On an I/O thread or one of the executor that the
/// client lives on, where it can't wait, it only lets them end: await `async_stop` before.
class queue_worker {
public:
    /// No more items are taken; handlers that run finish, and what they did is acknowledged. Returns then. Not in a handler.
    void stop(std::stop_token token = {}) { raw_.stop(std::move(token)); }
    task<void> async_stop() { return raw_.async_stop(); }
    /// The same, but the stop tokens of handlers that run trip at once (coroutines are cancelled, too), and after `limit` the items of those that have not
    /// ended are given back: others get them at once, and it counts neither as a failure nor as a delivery. So do items whose handlers
    /// throw because of the token. Returns whether all had ended by then. What a handler does after that is not acknowledged.
    bool stop(std::chrono::milliseconds limit, std::stop_token token = {}) { return raw_.stop(limit, std::move(token)); }
    task<bool> async_stop(std::chrono::milliseconds limit) { return raw_.async_stop_within(limit); }
    /// The same without waiting.
    void request_stop() noexcept { raw_.request_stop(); }
    std::uint64_t done() const noexcept { return raw_.done(); }      ///< items whose handler returned
    std::uint64_t failed() const noexcept { return raw_.failed(); }  ///< whose handler threw

    explicit queue_worker(detail::raw_worker raw) noexcept : raw_(std::move(raw)) {}

private:
    detail::raw_worker raw_;
};

namespace detail {

/// What `queue` and `work_stealing_queue` have in common.
template <class T, class Codec>
class queue_base {
public:
    using item = queue_item<T, Codec>;
    using letter = dead_letter<T, Codec>;

    /// The first that is ready; waits as long as it takes, or so long.
    std::optional<item> dequeue(std::chrono::milliseconds time, std::stop_token token = {}) {
        return blocking(async_dequeue(time), std::move(token));
    }
    item dequeue(std::stop_token token = {}) { return blocking(async_dequeue(), std::move(token)); }
    task<std::optional<item>> async_dequeue(std::chrono::milliseconds time) {
        return typed(raw_.async_dequeue(time.count() > 0 ? time_after(time) : raw_queue::until::min()));
    }
    task<item> async_dequeue() { return surely(raw_.async_dequeue(raw_queue::until::max())); }
    /// One that is ready now.
    std::optional<item> try_dequeue(std::stop_token token = {}) { return dequeue(std::chrono::milliseconds{0}, std::move(token)); }
    task<std::optional<item>> async_try_dequeue() { return async_dequeue(std::chrono::milliseconds{0}); }

    /// Runs `handler(queue_item<T>&)` or `handler(T)` for item after item. One that returns void runs on threads of its own, `concurrency` of
    /// them; one that returns `task<void>` on the client's I/O thread, and must not block. An item whose handler ends is acknowledged,
    /// one whose handler throws is given back with the exception's text as the reason. One that throws `reject` (consumer.hpp) makes the item a dead
    /// letter at once, for that reason; `later` (later.hpp) puts it off, and `busy_error` (idempotency.hpp) for a growing time: neither of them counts
    /// as a failure or as a delivery.
    template <class Handler>
    queue_worker consume(consume_options const& how, Handler handler) {
        auto kept = std::make_shared<Handler>(std::move(handler));
        if constexpr (std::invocable<Handler&, item&>) {
            using result = std::invoke_result_t<Handler&, item&>;
            if constexpr (std::is_void_v<result>) return on_threads(how, [kept](raw_item& raw) {
                item whole{raw.alias()};
                (*kept)(whole);
            });
            else return as_tasks(how, [kept](raw_item& raw) { return handle(*kept, item{raw.alias()}); });
        } else {
            using result = std::invoke_result_t<Handler&, T&>;
            if constexpr (std::is_void_v<result>) return on_threads(how, [kept](raw_item& raw) {
                T value = Codec::decode(raw.bytes());
                (*kept)(value);
            });
            else return as_tasks(how, [kept](raw_item& raw) { return handle(*kept, T(Codec::decode(raw.bytes()))); });
        }
    }

    queue_counts counts(std::stop_token token = {}) const { return blocking(async_counts(), std::move(token)); }
    task<queue_counts> async_counts() const { return raw_.async_counts(); }
    /// Nothing is delivered any longer, by any process, until `resume`: what comes waits, consumers wait as for an empty queue, and `dequeue` finds nothing
    /// in time. What was delivered before is not affected: its lease is renewed, and it may be acknowledged. A queue stays paused until it is resumed,
    /// even when it is empty and nobody uses it. False: it was paused already.
    bool pause(std::stop_token token = {}) { return blocking(async_pause(), std::move(token)); }
    task<bool> async_pause() { return raw_.async_pause(true); }
    /// What waits is delivered at once. False: it was not paused.
    bool resume(std::stop_token token = {}) { return blocking(async_resume(), std::move(token)); }
    task<bool> async_resume() { return raw_.async_pause(false); }
    /// Removes all that wait, those that are put off included; what is held stays with its holders. How many there were.
    std::int64_t purge(std::stop_token token = {}) { return blocking(async_purge(), std::move(token)); }
    task<std::int64_t> async_purge() { return raw_.async_purge(); }

    /// The oldest dead letters, so many at most, and fewer where they have more than 8 MiB together. With `after`, the id of a letter, those
    /// behind that one: a list of all begins without it, goes on after the last one of each page, and ends with an empty page.
    std::vector<letter> dead_letters(std::size_t most = 100, std::stop_token token = {}) const { return dead_letters(most, {}, std::move(token)); }
    std::vector<letter> dead_letters(std::size_t most, std::string_view after, std::stop_token token = {}) const {
        return blocking(async_dead_letters(most, after), std::move(token));
    }
    task<std::vector<letter>> async_dead_letters(std::size_t most = 100, std::string_view after = {}) const {
        return letters(raw_.async_dead(most, after));
    }
    /// Puts one back, or all of them, behind all that wait, as a new item with an id of its own. How many.
    std::int64_t requeue_dead(std::string_view id = {}, std::stop_token token = {}) { return blocking(async_requeue_dead(id), std::move(token)); }
    task<std::int64_t> async_requeue_dead(std::string_view id = {}) { return raw_.async_requeue(id, {}); }
    /// Puts back all that died at least this long ago (0 to 10 years), in steps of some ms each, and none that dies meanwhile.
    std::int64_t requeue_dead_older_than(std::chrono::milliseconds age, std::stop_token token = {}) {
        return blocking(async_requeue_dead_older_than(age), std::move(token));
    }
    task<std::int64_t> async_requeue_dead_older_than(std::chrono::milliseconds age) { return raw_.async_requeue({}, age); }
    std::int64_t drop_dead(std::string_view id = {}, std::stop_token token = {}) { return blocking(async_drop_dead(id), std::move(token)); }
    task<std::int64_t> async_drop_dead(std::string_view id = {}) { return raw_.async_drop(id, {}); }
    std::int64_t drop_dead_older_than(std::chrono::milliseconds age, std::stop_token token = {}) {
        return blocking(async_drop_dead_older_than(age), std::move(token));
    }
    task<std::int64_t> async_drop_dead_older_than(std::chrono::milliseconds age) { return raw_.async_drop({}, age); }

    std::string const& name() const noexcept { return raw_.name(); }

protected:
    queue_base(client& by, std::string_view name, queue_options const& options, lane_options const& lane) : raw_(by, name, options, lane) {}

    template <class R>
    R blocking(task<R> work, std::stop_token token) const {
        raw_.require_blocking();
        return sync_wait(std::move(work), std::move(token));
    }

    raw_queue raw_;

private:
    queue_worker on_threads(consume_options const& how, raw_worker::on_thread call) { return queue_worker{raw_worker{raw_, how, std::move(call)}}; }
    queue_worker as_tasks(consume_options const& how, raw_worker::as_task call) { return queue_worker{raw_worker{raw_, how, std::move(call)}}; }
    template <class Handler, class What>
    static task<void> handle(Handler& handler, What what) {
        auto work = handler(what);
        co_await std::move(work);
    }
    static task<std::optional<item>> typed(task<std::optional<raw_item>> taking) {
        auto raw = co_await std::move(taking);
        if (!raw) co_return std::nullopt;
        co_return std::optional<item>{item{std::move(*raw)}};
    }
    static task<item> surely(task<std::optional<raw_item>> taking) {
        auto raw = co_await std::move(taking);
        co_return item{std::move(*raw)};
    }
    static task<std::vector<letter>> letters(task<std::vector<raw_letter>> reading) {
        auto raw = co_await std::move(reading);
        std::vector<letter> all;
        for (auto& one : raw) {
            all.push_back({std::move(one.id), std::move(one.item), std::move(one.bytes), std::move(one.reason), one.deliveries, one.died, one.size});
        }
        co_return all;
    }
};

}  // namespace detail

template <class T, class Codec = codec<T>>
    requires codec_for<Codec, T>
class queue : public detail::queue_base<T, Codec> {
public:
    /// Does not ask the server. Throws `invalid_argument_error` for a name that is not 1 to 512 bytes, or options out of range.
    queue(client& by, std::string_view name, queue_options const& options = {}) : queue::queue_base(by, name, options, {}) {}

    /// Waits for room where there is a `max_length`.
    enqueued enqueue(T const& value, enqueue_options const& how = {}, std::stop_token token = {}) {
        return this->blocking(async_enqueue(value, how), std::move(token));
    }
    task<enqueued> async_enqueue(T const& value, enqueue_options const& how = {}) { return only(send(value, how, detail::raw_queue::until::max())); }
    /// Nothing: there is no room.
    std::optional<enqueued> try_enqueue(T const& value, enqueue_options const& how = {}, std::stop_token token = {}) {
        return this->blocking(async_try_enqueue(value, how), std::move(token));
    }
    task<std::optional<enqueued>> async_try_enqueue(T const& value, enqueue_options const& how = {}) { return first(send(value, how, detail::raw_queue::until::min())); }

    /// Waits so long for room; nothing: there was none.
    std::optional<enqueued> try_enqueue_for(T const& value, std::chrono::milliseconds time, enqueue_options const& how = {}, std::stop_token token = {}) {
        return this->blocking(async_try_enqueue_for(value, time, how), std::move(token));
    }
    task<std::optional<enqueued>> async_try_enqueue_for(T const& value, std::chrono::milliseconds time, enqueue_options const& how = {}) {
        return first(send(value, how, time.count() > 0 ? detail::time_after(time) : detail::raw_queue::until::min()));
    }

    /// Up to 4,000 in one round trip, in order. With a `max_length` it waits for room for all of them; more than that at once are refused
    /// (`invalid_argument_error`). If it is cancelled or fails, those before it are enqueued, and the error says how many. They must have no key.
    std::vector<enqueued> enqueue_many(std::span<T const> values, enqueue_options const& how = {}, std::stop_token token = {}) {
        return this->blocking(async_enqueue_many(values, how), std::move(token));
    }
    task<std::vector<enqueued>> async_enqueue_many(std::span<T const> values, enqueue_options const& how = {}) {
        std::vector<std::string> bytes;
        bytes.reserve(values.size());
        for (auto const& one : values) bytes.push_back(Codec::encode(one));
        return this->raw_.async_enqueue(std::move(bytes), how, detail::raw_queue::until::max());
    }

private:
    task<std::vector<enqueued>> send(T const& value, enqueue_options const& how, detail::raw_queue::until time) {
        std::vector<std::string> bytes;
        bytes.push_back(Codec::encode(value));
        return this->raw_.async_enqueue(std::move(bytes), how, time);
    }
    static task<enqueued> only(task<std::vector<enqueued>> sending) {
        auto all = co_await std::move(sending);
        co_return std::move(all.front());
    }
    static task<std::optional<enqueued>> first(task<std::vector<enqueued>> sending) {
        auto all = co_await std::move(sending);
        if (all.front().id.empty()) co_return std::nullopt;
        co_return std::optional<enqueued>{std::move(all.front())};
    }
};

}  // namespace lockstep
