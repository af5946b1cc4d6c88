#pragma once

// What is under `queue` and `work_stealing_queue`: the same for bytes, compiled once. Nothing here is for users.

#include <lockstep/client.hpp>
#include <lockstep/queue_options.hpp>
#include <lockstep/task.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace lockstep::detail {

class depot;
struct held_item;
class queue_crew;
struct queue_tally;

/// One item that this process holds. Given back when it is destroyed.
class raw_item {
public:
    raw_item() noexcept = default;
    explicit raw_item(std::shared_ptr<held_item> what) noexcept : what_(std::move(what)) {}
    raw_item(raw_item&& other) noexcept : what_(std::move(other.what_)), is_alias_(other.is_alias_) {}
    raw_item& operator=(raw_item&& other) noexcept;
    ~raw_item();
    /// The same one; it is not given back when this is destroyed.
    raw_item alias() const;

    std::string_view bytes() const;
    std::string_view id() const;
    std::int32_t deliveries() const;
    bool is_valid() const;
    std::stop_token stop_token() const;

    void ack(std::stop_token token);
    task<void> async_ack();
    void nack(std::chrono::milliseconds delay, std::string_view reason, std::stop_token token);
    task<void> async_nack(std::chrono::milliseconds delay, std::string_view reason);
    void extend(std::chrono::milliseconds time, std::stop_token token);
    task<void> async_extend(std::chrono::milliseconds time);

    /// Without waiting for the answer; an error goes to `failed`, which may be empty.
    void ack_soon(std::function<void(std::exception_ptr)> failed) noexcept;
    void nack_soon(std::chrono::milliseconds delay, std::string reason) noexcept;
    /// It is dead, for this reason.
    void reject_soon(std::string reason) noexcept;
    /// Somebody gets it again after the delay, and this delivery does not count.
    void postpone_soon(std::chrono::milliseconds delay) noexcept;
    /// Trips its stop token.
    void ask_to_stop() noexcept;

private:
    held_item& it() const;
    std::shared_ptr<held_item> what_;
    bool is_alias_ = false;
};

struct raw_letter {
    std::string id;
    std::string item;
    std::string bytes;
    std::string reason;
    std::size_t size = 0;
    std::int32_t deliveries = 0;
    std::chrono::system_clock::time_point died{};
};

struct lane_options {
    std::string_view lane{};  ///< of a work-stealing queue
    bool steals_half = true;
    std::string_view job_type{};  ///< it is the queue of the jobs of this type
    std::string_view job_words{};  ///< as job_pull.lua wants them: '<worker>\n<keep>'
};

class raw_queue {
public:
    raw_queue(client& by, std::string_view name, queue_options const& options, lane_options const& lane = {});

    using until = std::chrono::steady_clock::time_point;
    /// Waits for room until then; `until::min()`: not at all. What has none comes back at the end of the list as ids without text.
    task<std::vector<enqueued>> async_enqueue(std::vector<std::string> what, enqueue_options const& how, until time, std::string_view lane = {});
    /// Nothing: none came by then. `until::min()`: only what is there now.
    task<std::optional<raw_item>> async_dequeue(until time);
    task<queue_counts> async_counts() const;
    /// Of a work-stealing queue: lanes that are not empty, the longest first.
    task<std::vector<std::pair<std::string, std::int64_t>>> async_lanes() const;
    task<std::int64_t> async_purge();
    task<bool> async_pause(bool pauses);
    task<std::vector<raw_letter>> async_dead(std::size_t most, std::string_view after) const;
    /// One letter by its id, or when there is none all that died so long ago.
    task<std::int64_t> async_requeue(std::string_view id, std::chrono::milliseconds older_than);
    task<std::int64_t> async_drop(std::string_view id, std::chrono::milliseconds older_than);

    void require_blocking() const;
    std::string const& name() const noexcept;
    std::shared_ptr<depot> const& place() const noexcept { return depot_; }
    std::shared_ptr<queue_tally> const& tally() const noexcept { return tally_; }

private:
    std::shared_ptr<depot> depot_;
    std::shared_ptr<queue_tally> tally_;  // of all such queues of its client
};

/// Handlers at work on a queue.
class raw_worker {
public:
    using on_thread = std::function<void(raw_item&)>;
    using as_task = std::function<task<void>(raw_item&)>;
    raw_worker(raw_queue const& from, consume_options const& how, on_thread handler);
    raw_worker(raw_queue const& from, consume_options const& how, as_task handler);
    raw_worker(raw_worker&&) noexcept = default;
    raw_worker& operator=(raw_worker&& other) noexcept;
    ~raw_worker();

    void request_stop() noexcept;
    void stop(std::stop_token token);
    bool stop(std::chrono::milliseconds limit, std::stop_token token);
    task<void> async_stop();
    task<bool> async_stop_within(std::chrono::milliseconds limit);
    std::uint64_t done() const noexcept;
    std::uint64_t failed() const noexcept;

private:
    std::shared_ptr<queue_crew> crew_;
};

}  // namespace lockstep::detail
