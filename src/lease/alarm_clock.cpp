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

constexpr unsigned most_runners = 32;

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
    return *made;
}

alarm_clock::alarm_clock() : timer_(::timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC)) {
    if (timer_ < 0) throw std::system_error(errno, std::generic_category(), "timerfd_create");
    base::quiet_thread([this] { watch(); }).detach();
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
}

void alarm_clock::stop(std::stop_source source) {
    std::lock_guard const guard{stops_mutex_};
    stops_.push_back(std::move(source));
    if (stops_.size() > idle_ && runners_ < most_runners) {  // the others may hang in a callback
        ++runners_;
        base::quiet_thread([this] { run_stops(); }).detach();
    }
    stops_changed_.notify_one();
}

void alarm_clock::run_stops() noexcept {
    pthread_setname_np(pthread_self(), "lockstep-stop");
    std::unique_lock guard{stops_mutex_};
    for (;;) {
        ++idle_;
        bool const more = stops_changed_.wait_for(guard, std::chrono::seconds{1}, [this] { return !stops_.empty(); });
        --idle_;
        if (!more) break;
        auto source = std::move(stops_.front());
        stops_.pop_front();
        guard.unlock();
        source.request_stop();
        source = std::stop_source{std::nostopstate};
        guard.lock();
    }
    --runners_;
}

}  // namespace lockstep::engine
