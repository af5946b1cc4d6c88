#pragma once

/// `work_stealing_queue`: each worker has a lane of its own; who has nothing to do takes from the fullest other lane.
///
///     lockstep::work_stealing_queue<page> pages{client, "crawl", "worker-3"};
///     pages.push(page{"/"});                             // into its own lane
///     while (auto item = pages.dequeue(10s)) {
///         for (auto const& link : visit(item->value())) pages.push(link);
///         item->ack();
///     }
///
/// Work that makes more work stays with its worker as long as others are busy, and is shared when they are not. Everything else is as in `queue`:
/// leases, renewal, nack, dead letters, at-least-once. There are no priorities, no delays, no keys and no maximum length.
///
/// Order: a worker takes the oldest item of its lane. A thief takes the youngest half of the fullest lane (or the youngest one: `half = false`),
/// which keep their order in the thief's lane, behind what is there;
/// now and then one is from any other lane, so that none is passed over for ever. What comes back is in front, in the lane of whoever gave it back, or found
/// that its holder was dead. Between lanes there is no order.
///
/// A worker that died leaves its lane to the thieves, and what it held comes back after `visibility`. Nobody polls: when all lanes are empty
/// `dequeue` waits for a push, the lane's own worker first.
///
/// Failure and threads: as `queue`. Two programs may use the same worker's name; they share its lane.

#include <lockstep/queue.hpp>

#include <utility>

namespace lockstep {

struct stealing_options {
    bool half = true;         ///< steal half of a lane at once; false: one item
    queue_options items{};    ///< `max_length` does not count
};

template <class T, class Codec = codec<T>>
    requires codec_for<Codec, T>
class work_stealing_queue : public detail::queue_base<T, Codec> {
public:
    /// `worker`: the name of its lane, 1 to 100 bytes without spaces, controls and braces; the same after a restart, or another one.
    work_stealing_queue(client& by, std::string_view name, std::string_view worker, stealing_options const& options = {})
        : work_stealing_queue::queue_base(by, name, without_limit(options.items), {.lane = checked(worker), .steals_half = options.half}),
          worker_(worker) {}

    std::string const& worker() const noexcept { return worker_; }

    /// Into its own lane. Its id.
    std::string push(T const& value, std::stop_token token = {}) { return push_to(worker_, value, std::move(token)); }
    task<std::string> async_push(T const& value) { return async_push_to(worker_, value); }
    /// Into another worker's.
    std::string push_to(std::string_view worker, T const& value, std::stop_token token = {}) {
        return this->blocking(async_push_to(worker, value), std::move(token));
    }
    task<std::string> async_push_to(std::string_view worker, T const& value) {
        std::vector<std::string> bytes;
        bytes.push_back(Codec::encode(value));
        return only(this->raw_.async_enqueue(std::move(bytes), {}, detail::raw_queue::until::max(), worker));
    }
    /// Up to 4,000 in one round trip, in order, into its own lane.
    std::vector<enqueued> push_many(std::span<T const> values, std::stop_token token = {}) {
        return this->blocking(async_push_many(values), std::move(token));
    }
    task<std::vector<enqueued>> async_push_many(std::span<T const> values) {
        std::vector<std::string> bytes;
        bytes.reserve(values.size());
        for (auto const& one : values) bytes.push_back(Codec::encode(one));
        return this->raw_.async_enqueue(std::move(bytes), {}, detail::raw_queue::until::max(), worker_);
    }

    /// Lanes that are not empty, with what waits in them, the longest first.
    std::vector<std::pair<std::string, std::int64_t>> lanes(std::stop_token token = {}) const { return this->blocking(async_lanes(), std::move(token)); }
    task<std::vector<std::pair<std::string, std::int64_t>>> async_lanes() const { return this->raw_.async_lanes(); }

private:
    static queue_options without_limit(queue_options how) {
        how.max_length = 0;
        return how;
    }
    static std::string_view checked(std::string_view worker) { return worker.empty() ? " " : worker; }  // empty would be no lane at all
    static task<std::string> only(task<std::vector<enqueued>> sending) {
        auto all = co_await std::move(sending);
        co_return std::move(all.front().id);
    }

    std::string worker_;
};

}  // namespace lockstep
