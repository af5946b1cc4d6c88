#include "messaging/mailbox.hpp"

#include "base/quiet_thread.hpp"

#include <lockstep/error.hpp>
#include <lockstep/log.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace lockstep::detail {

namespace {
constexpr int at_a_time = 64;  // then others get their turn at the executor
}

mailbox::mailbox(std::shared_ptr<core> owner, std::string name, bus_handler handler, bus_subscribe_options options)
    : owner_(std::move(owner)), name_(std::move(name)), handler_(std::move(handler)), options_(std::move(options)) {}

mailbox::~mailbox() {
    if (thread_.joinable()) thread_.detach();  // closed by its own handler or where nobody may wait; it is about to end
}

void mailbox::begin() {
    if (options_.executor) return;
    thread_ = base::quiet_thread([self = shared_from_this()] { self->work(); });
}

void mailbox::put(std::string channel, std::string payload) {
    std::unique_lock guard{mutex_};
    if (messages_ >= options_.capacity && options_.when_full == overflow::block) {
        changed_.wait(guard, [this] { return closed_ || messages_ < options_.capacity; });
    }
    if (closed_) return;
    if (messages_ >= options_.capacity) {
        ++counters_.dropped;
        if (options_.when_full == overflow::drop_newest) return;
        // Gaps stay: one that is not told would be a lie.
        items_.erase(std::find_if(items_.begin(), items_.end(), [](item const& one) { return !one.is_gap; }));
        --messages_;
    }
    items_.push_back({.is_gap = false, .channel = std::move(channel), .payload = std::move(payload)});
    ++messages_;
    call_worker(std::move(guard));
}

void mailbox::put_gap() {
    std::unique_lock guard{mutex_};
    if (closed_) return;
    ++counters_.gaps;
    if (!items_.empty() && items_.back().is_gap) return;
    items_.push_back({.is_gap = true, .channel = {}, .payload = {}});
    call_worker(std::move(guard));
}

void mailbox::call_worker(std::unique_lock<std::mutex> guard) noexcept {
    if (!options_.executor) {
        guard.unlock();
        changed_.notify_all();
        return;
    }
    if (std::exchange(scheduled_, true)) return;
    guard.unlock();
    try {
        options_.executor([self = shared_from_this()] { self->work_for_a_while(); });
    } catch (std::exception const& problem) {
        log(log_level::error, fmt::format("the executor of '{}' refuses work: {}", name_, problem.what()));
        guard.lock();
        scheduled_ = false;  // the next message tries again
    }
}

/// False: there is none.
bool mailbox::take(item& next) {
    if (closed_ || items_.empty()) return false;
    next = std::move(items_.front());
    items_.pop_front();
    if (!next.is_gap && messages_-- == options_.capacity) changed_.notify_all();
    return true;
}

void mailbox::work() noexcept {
    while (true) {
        item next;
        {
            std::unique_lock guard{mutex_};
            changed_.wait(guard, [this] { return closed_ || !items_.empty(); });
            if (!take(next)) return;
        }
        handle(next);
    }
}

void mailbox::work_for_a_while() noexcept {
    for (int i = 0; i != at_a_time; ++i) {
        item next;
        {
            std::lock_guard const guard{mutex_};
            if (!take(next)) {
                scheduled_ = false;
                return;
            }
        }
        handle(next);
    }
    std::unique_lock guard{mutex_};
    scheduled_ = false;
    if (!closed_ && !items_.empty()) call_worker(std::move(guard));
}

void mailbox::handle(item const& what) noexcept {
    std::lock_guard const guard{running_};
    if (is_closed()) return;
    {
        std::lock_guard const state{mutex_};
        runs_on_ = std::this_thread::get_id();
    }
    bool failed = true;
    try {
        if (!what.is_gap) {
            handler_(what.channel, what.payload);
        } else if (options_.on_gap) {
            options_.on_gap();
        }
        failed = false;
    } catch (conversion_error const& problem) {  // mostly before the handler was called: the payload is not of its type
        log(log_level::error, fmt::format("a message on '{}' could not be read: {}", name_, problem.what()));
    } catch (std::exception const& problem) {
        log(log_level::error, fmt::format("the handler of '{}' threw: {}", name_, problem.what()));
    } catch (...) {
        log(log_level::error, fmt::format("the handler of '{}' threw", name_));
    }
    std::lock_guard const state{mutex_};
    runs_on_ = std::thread::id{};
    if (failed) {
        ++counters_.failed;
    } else if (!what.is_gap) {
        ++counters_.delivered;
    }
}

void mailbox::close() noexcept {
    std::unique_lock guard{mutex_};
    closed_ = true;
    bool const is_handler = runs_on_ == std::this_thread::get_id();
    guard.unlock();
    changed_.notify_all();
    if (is_handler || !owner_->may_block()) return;  // the handler may need this thread to come to its end
    std::unique_lock until_it_returned{running_};
    until_it_returned.unlock();
    if (thread_.joinable()) thread_.join();
}

bool mailbox::is_closed() const {
    std::lock_guard const guard{mutex_};
    return closed_;
}

bus_counters mailbox::counters() const {
    std::lock_guard const guard{mutex_};
    auto made = counters_;
    made.waiting = messages_;
    return made;
}

}  // namespace lockstep::detail
