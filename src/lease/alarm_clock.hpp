#pragma once

// Who sees a lease end, whatever else hangs: one thread for the process that sleeps on CLOCK_BOOTTIME (which goes on while the machine
// is suspended), apart from all I/O. It looks at leases when they could be at risk or over, and has their stop tokens tripped.
//
// Tokens run users' callbacks, which may block: they run on threads of their own, never on this one. One such thread is there from the
// beginning. More are made while callbacks block, so that none keeps another token from tripping; where the system refuses one, what is
// to be stopped waits for the first that is free, and a thread is asked for again.

#include "base/clock.hpp"

#include <boost/intrusive/set.hpp>

#include <condition_variable>
#include <deque>
#include <mutex>
#include <stop_token>
#include <vector>

namespace lockstep::engine {

class alarm_clock {
public:
    using time_point = base::boot_clock::time_point;

    /// Something that has a time at which to look at it.
    class sleeper : public boost::intrusive::set_base_hook<> {
    public:
        /// Under the alarm's lock: appends what has to be stopped, and says when to look again; `time_point::max()`: not any more.
        virtual time_point ring(time_point now, std::vector<std::stop_source>& stops) noexcept = 0;

        friend bool operator<(sleeper const& left, sleeper const& right) noexcept { return left.at_ < right.at_; }

    protected:
        ~sleeper() = default;

    private:
        friend class alarm_clock;
        time_point at_{};
    };

    /// This process's. It is never destroyed: leases may outlive statics. Throws `std::system_error` where it can't have its threads.
    static alarm_clock& instance();

    /// Rings at `when` at the latest. What rings earlier is asked and goes on, so a lease that is prolonged need not be set anew.
    void set_locked(sleeper& who, time_point when);  ///< with `lock()` held
    void forget(sleeper& who) noexcept;
    /// Requests the stop on one of its threads.
    void stop(std::stop_source source) noexcept;

    /// Protects what sleepers' `ring` reads.
    std::mutex& lock() noexcept { return mutex_; }

private:
    alarm_clock();
    void make_threads();
    void watch() noexcept;
    void ring_due() noexcept;
    void set_timer(time_point when) noexcept;
    void ring_by(time_point when) noexcept;
    void add_runner() noexcept;
    void help_runners() noexcept;
    enum class runner : bool { lasting, extra };
    void run_stops(runner which) noexcept;

    bool is_watched_ = false;
    bool has_runner_ = false;

    std::mutex mutex_;
    boost::intrusive::multiset<sleeper> sleepers_;
    time_point armed_ = time_point::max();
    int timer_;

    std::mutex stops_mutex_;
    std::condition_variable stops_changed_;
    std::deque<std::stop_source> stops_;
    unsigned runners_ = 0;
    unsigned idle_ = 0;
    time_point waits_since_{};  // the first of them, where there is one
};

}  // namespace lockstep::engine
