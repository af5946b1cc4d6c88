#pragma once

// What waits between the arrival of messages and their handler: a bounded queue, and the one who empties it, on a thread of its own or on
// the user's executor. One handler at a time, in order.

#include "core/core.hpp"

#include <lockstep/bus_subscription.hpp>

#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>

namespace lockstep::detail {

class mailbox : public std::enable_shared_from_this<mailbox> {
public:
    mailbox(std::shared_ptr<core> owner, std::string name, bus_handler handler, bus_subscribe_options options);
    ~mailbox();

    void begin();
    /// From one thread. With `block` it waits while it is full, until it is closed.
    void put(std::string channel, std::string payload);
    void put_gap();
    /// When it returns no handler runs, and none will, unless this is called by the handler or where nobody may wait (`core::may_block`): then one that runs
    /// comes to its end.
    void close() noexcept;
    bus_counters counters() const;
    bool is_closed() const;

private:
    struct item {
        bool is_gap;
        std::string channel;
        std::string payload;
    };

    void work() noexcept;
    void work_for_a_while() noexcept;
    bool take(item& next);
    void handle(item const& what) noexcept;
    void call_worker(std::unique_lock<std::mutex> guard) noexcept;

    std::shared_ptr<core> const owner_;
    std::string const name_;
    bus_handler const handler_;
    bus_subscribe_options const options_;

    mutable std::mutex mutex_;
    std::condition_variable changed_;  // something came, room came, or it was closed
    std::deque<item> items_;
    std::size_t messages_ = 0;  // of the items
    bool closed_ = false;
    bool scheduled_ = false;  // at the executor
    bus_counters counters_;

    std::mutex running_;  // held while a handler runs
    std::thread::id runs_on_{};
    std::thread thread_;
};

}  // namespace lockstep::detail
