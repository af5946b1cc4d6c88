#include "messaging/held_item.hpp"

#include "messaging/message_counts.hpp"
#include "messaging/queue_wire.hpp"

#include <algorithm>
#include <mutex>
#include <utility>

namespace lockstep::detail {

using base::boot_clock;
using engine::alarm_clock;
using std::chrono::milliseconds;
using std::chrono::nanoseconds;

namespace {

std::int64_t in_ns(boot_clock::time_point time) noexcept { return time.time_since_epoch().count(); }

}  // namespace

held_item::held_item(std::shared_ptr<depot> where, std::string_view by, std::string_view what)
    : at(std::move(where)), token(by), entry(what) {
    auto const parts = read_entry(entry);
    id = parts.id;
    payload = parts.payload;
    deliveries = parts.deliveries + 1;
}

held_item::~held_item() {
    if (watched_) alarm_clock::instance().forget(*this);
}

bool held_item::is_valid() const noexcept {
    if (lost || now == state::over) return false;
    auto const end = ends_at_.load(std::memory_order_acquire);
    return end == 0 || in_ns(boot_clock::now()) < end;
}

void held_item::set_end(boot_clock::time_point sent, milliseconds length) noexcept {
    auto const margin = std::max<nanoseconds>(length / 10, milliseconds{2});
    auto const end = in_ns(sent + nanoseconds{length} - margin);
    if (end > ends_at_.load(std::memory_order_relaxed)) ends_at_.store(end, std::memory_order_release);  // as at the server: never shorter
}

std::stop_token held_item::token_for_stop() {
    auto& alarm = alarm_clock::instance();
    std::stop_source found{std::nostopstate};
    {
        std::lock_guard const guard{alarm.lock()};
        if (!stop_) {
            stop_.emplace();
            auto const end = ends_at_.load(std::memory_order_acquire);
            if (end != 0) {
                alarm.set_locked(*this, alarm_clock::time_point{nanoseconds{end}});
                watched_ = true;
            }
        }
        found = *stop_;
    }
    if (!is_valid() || asked_to_stop) found.request_stop();
    return found.get_token();
}

alarm_clock::time_point held_item::ring(alarm_clock::time_point time, std::vector<std::stop_source>& stops) noexcept {
    auto const end = ends_at_.load(std::memory_order_acquire);
    if (now == state::over) return alarm_clock::time_point::max();
    if (in_ns(time) < end) return alarm_clock::time_point{nanoseconds{end}};
    if (stop_) stops.push_back(*stop_);
    return alarm_clock::time_point::max();
}

void held_item::lose() noexcept {
    if (!lost.exchange(true) && tally) queue_tally::count(tally->lost);
    ask_to_stop();
}

void held_item::ask_to_stop() noexcept {
    asked_to_stop = true;
    auto& alarm = alarm_clock::instance();
    std::optional<std::stop_source> stop;
    {
        std::lock_guard const guard{alarm.lock()};
        stop = stop_;
    }
    if (stop) alarm.stop(std::move(*stop));
}

}  // namespace lockstep::detail
