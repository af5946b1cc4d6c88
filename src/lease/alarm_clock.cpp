#include "lease/alarm_clock.hpp"

#include "base/quiet_thread.hpp"

#include <pthread.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <system_error>
#include <utility>

namespace lockstep::engine {
namespace {

constexpr unsigned made_at_once = 32;           // so many runners at most for what is lost in one moment; others when those do not get on
constexpr std::chrono::milliseconds stall{10};  // none of them took anything for so long: they hang in callbacks

}  // namespace

alarm_clock& alarm_clock::instance() {
    static std::mutex guard;
    static alarm_clock* made = nullptr;
    static pid_t owner = 0;
    std::lock_guard const locked{guard};
    if (owner != ::getpid()) {  // also in a child of fork(), where the parent's thread is not
        made = new alarm_clock;
        owner = ::getpid();
    }
    made->make_threads();
    return *made;
}

alarm_clock::alarm_clock() : timer_(::timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC)) {
    if (timer_ < 0) throw std::system_error(errno, std::generic_category(), "timerfd_create");
}

// Those that could not be made are tried anew with the next client.
void alarm_clock::make_threads() {
    if (!has_runner_) {
        std::lock_guard const guard{stops_mutex_};
        base::quiet_thread([this] { run_stops(runner::lasting); }).detach();
        ++runners_;
        has_runner_ = true;
    }
    if (is_watched_) return;
    base::quiet_thread([this] { watch(); }).detach();
    is_watched_ = true;
}

void alarm_clock::set_locked(sleeper& who, time_point when) {
    if (who.is_linked()) {
        if (who.at_ <= when) return;
        sleepers_.erase(sleepers_.iterator_to(who));
    }
    who.at_ = when;
    sleepers_.insert(who);
    if (when < armed_) set_timer(when);
}

void alarm_clock::forget(sleeper& who) noexcept {
    std::lock_guard const guard{mutex_};
    if (who.is_linked()) sleepers_.erase(sleepers_.iterator_to(who));
}

void alarm_clock::set_timer(time_point when) noexcept {
    armed_ = when;
    itimerspec spec{};
    if (when != time_point::max()) {
        auto const since = std::max(when.time_since_epoch(), base::boot_clock::duration{1});  // 0 would switch it off
        auto const seconds = std::chrono::duration_cast<std::chrono::seconds>(since);
        spec.it_value.tv_sec = seconds.count();
        spec.it_value.tv_nsec = (since - seconds).count();
    }
    ::timerfd_settime(timer_, TFD_TIMER_ABSTIME, &spec, nullptr);
}

void alarm_clock::watch() noexcept {
    pthread_setname_np(pthread_self(), "lockstep-alarm");
    for (;;) {
        std::uint64_t times = 0;
        if (::read(timer_, &times, sizeof times) < 0 && errno != EINTR) return;
        ring_due();
    }
}

void alarm_clock::ring_due() noexcept {
    std::vector<std::stop_source> stops;
    {
        std::lock_guard const guard{mutex_};
        auto const now = base::boot_clock::now();
        while (!sleepers_.empty() && sleepers_.begin()->at_ <= now) {
            auto& who = *sleepers_.begin();
            sleepers_.erase(sleepers_.begin());
            auto const again = who.ring(now, stops);
            if (again == time_point::max()) continue;
            who.at_ = std::max(again, now + std::chrono::milliseconds{1});
            sleepers_.insert(who);
        }
        set_timer(sleepers_.empty() ? time_point::max() : sleepers_.begin()->at_);
    }
    for (auto& one : stops) stop(std::move(one));
    help_runners();
}

void alarm_clock::ring_by(time_point when) noexcept {
    std::lock_guard const guard{mutex_};
    if (when < armed_) set_timer(when);
}

// ---- stop tokens

void alarm_clock::stop(std::stop_source source) noexcept {
    bool waits = false;
    {
        std::lock_guard const guard{stops_mutex_};
        if (stops_.empty()) waits_since_ = base::boot_clock::now();
        stops_.push_back(std::move(source));
        waits = stops_.size() > idle_;  // the others may hang in a callback
        if (waits && runners_ < made_at_once) add_runner();
        stops_changed_.notify_one();
    }
    if (waits) ring_by(base::boot_clock::now() + stall);
}

void alarm_clock::add_runner() noexcept {
    try {
        base::quiet_thread([this] { run_stops(runner::extra); }).detach();
        ++runners_;
    } catch (std::system_error const&) {
        // No thread to be had: tried again while something waits, and meanwhile the first runner that is free takes it.
    }
}

// On the thread that watches: while stops wait and no runner takes any, there has to be another one.
void alarm_clock::help_runners() noexcept {
    {
        std::lock_guard const guard{stops_mutex_};
        if (stops_.empty()) return;
        auto const now = base::boot_clock::now();
        if (idle_ == 0 && now - waits_since_ >= stall) {
            add_runner();
            waits_since_ = now;
        }
    }
    ring_by(base::boot_clock::now() + stall);
}

void alarm_clock::run_stops(runner which) noexcept {
    pthread_setname_np(pthread_self(), "lockstep-stop");
    std::unique_lock guard{stops_mutex_};
    for (;;) {
        ++idle_;
        auto const there_is_one = [this] { return !stops_.empty(); };
        if (which == runner::lasting) {
            stops_changed_.wait(guard, there_is_one);
        } else {
            stops_changed_.wait_for(guard, std::chrono::seconds{1}, there_is_one);
        }
        --idle_;
        if (stops_.empty()) break;
        auto source = std::move(stops_.front());
        stops_.pop_front();
        waits_since_ = base::boot_clock::now();
        guard.unlock();
        source.request_stop();
        source = std::stop_source{std::nostopstate};
        guard.lock();
    }
    --runners_;
}

}  // namespace lockstep::engine
