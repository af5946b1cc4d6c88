#pragma once

// Handlers at work: loops that take an item, handle it, and take the next. What becomes of an item leaves together with the wish for the next.
//
// While most handlers fail (failure_throttle), one loop at a time takes an item, after a delay, so that workers that can handle them get the others.
//
// To stop, loops take no more, and end when their handlers do. stop_within() also trips the tokens of those that run, and gives back what they handle
// when its time is over; a loop that ends after that finds its item is no longer in in_progress_, and leaves it alone.

#include "messaging/depot.hpp"
#include "messaging/doorbell.hpp"
#include "messaging/failure_throttle.hpp"
#include "messaging/repeated_log.hpp"

#include <lockstep/detail/raw_queue.hpp>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

namespace lockstep::detail {

class queue_crew : public std::enable_shared_from_this<queue_crew> {
public:
    queue_crew(raw_queue const& from, consume_options const& how);

    void run(raw_worker::on_thread handler);
    void run(raw_worker::as_task handler);

    // From any thread:
    void request_stop() noexcept;
    static task<void> stop(std::shared_ptr<queue_crew> self);
    static task<bool> stop_within(std::shared_ptr<queue_crew> self, std::chrono::milliseconds limit);
    /// As its destruction does: with the stop limit of the options.
    static task<void> end(std::shared_ptr<queue_crew> self);
    /// When this is the last that is asked of it.
    void finish() noexcept;
    std::uint64_t done() const noexcept { return done_; }
    std::uint64_t failed() const noexcept { return failed_; }
    depot const& place() const noexcept { return *depot_; }

private:
    class ending;
    using clock = std::chrono::steady_clock;
    static task<void> work(std::shared_ptr<queue_crew> self);
    static void work_on_thread(std::shared_ptr<queue_crew> self);
    static task<bool> ended_by(std::shared_ptr<queue_crew> self, clock::time_point until);
    static task<void> handle(std::shared_ptr<queue_crew> self, raw_item& item);
    /// How long until a loop may take an item; none: now, and end_take() has to follow.
    std::optional<std::chrono::milliseconds> begin_take() noexcept;
    void end_take() noexcept;
    void begin(raw_item& item) noexcept;
    /// False: it was given back meanwhile.
    bool end(raw_item& item) noexcept;
    void ask_handlers_to_stop() noexcept;
    void give_back_all() noexcept;
    void returned(raw_item& from) noexcept;
    void threw(raw_item& from, std::exception_ptr why) noexcept;
    void log_failure(raw_item const& of, std::string const& why) noexcept;
    std::chrono::milliseconds busy_delay(std::string_view id);
    void loop_ended() noexcept;
    void report(std::exception_ptr why) const noexcept;

    std::shared_ptr<depot> depot_;
    std::shared_ptr<queue_tally> tally_;
    consume_options how_;
    raw_worker::on_thread on_thread_;
    raw_worker::as_task as_task_;
    std::atomic<bool> stopping_{false};
    std::atomic<std::uint64_t> done_{0};
    std::atomic<std::uint64_t> failed_{0};
    std::size_t loops_ = 0;  // in turns
    std::atomic<bool> asked_to_stop_{false};  // handlers, to end
    std::stop_source halt_;                   // of those that are coroutines
    failure_throttle throttle_;
    repeated_log failures_{std::chrono::seconds{20}};
    std::atomic<std::size_t> taking_{0};  // loops that take or handle an item
    doorbell changed_;                    // loops that wait may have to do something
    std::condition_variable_any stopped_;  // with mutex_
    std::mutex items_mutex_;
    std::set<raw_item*> in_progress_;
    std::map<std::string, int, std::less<>> busy_;  // how often items found something busy
    boost::intrusive::list<ending, boost::intrusive::base_hook<redis::list_hook>, boost::intrusive::constant_time_size<false>> waiting_;
    std::mutex mutex_;
    std::vector<std::jthread> threads_;
};

}  // namespace lockstep::detail
