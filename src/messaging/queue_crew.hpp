#pragma once

// Handlers at work: loops that take an item, handle it, and take the next. What becomes of an item leaves together with the wish for the next.

#include "messaging/depot.hpp"

#include <lockstep/detail/raw_queue.hpp>

#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>
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
    /// When this is the last that is asked of it.
    void finish() noexcept;
    std::uint64_t done() const noexcept { return done_; }
    std::uint64_t failed() const noexcept { return failed_; }
    depot const& place() const noexcept { return *depot_; }

private:
    class ending;
    static task<void> work(std::shared_ptr<queue_crew> self);
    static void work_on_thread(std::shared_ptr<queue_crew> self);
    void returned(raw_item& from) noexcept;
    void threw(raw_item& from, std::exception_ptr why) noexcept;
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
    boost::intrusive::list<ending, boost::intrusive::base_hook<redis::list_hook>, boost::intrusive::constant_time_size<false>> waiting_;
    std::mutex mutex_;
    std::vector<std::jthread> threads_;
};

}  // namespace lockstep::detail
