#pragma once

// Where all I/O of a client happens: one executor, one turn at a time.
//
// A turn is one piece of work on the executor: a read that arrived, a timer, requests from other threads. Inside a turn everything
// may be touched without further locks. What a turn leaves to be sent goes out once, at its end: requests issued in the same
// turn share one write. Other threads hand requests in through the inbox, or take the turn lock for the rare things that
// can't wait for a turn (unlinking an operation whose frame dies elsewhere, reading counters).
//
// A thread holds one turn lock at most. Whoever needs another client's inside a turn (a coroutine that one client resumed and that
// destroys what waits for another) lends his own meanwhile, or two such threads could wait for each other for ever. What others do with
// it then is nothing that the coroutine could not have done itself.

#include "base/timer_wheel.hpp"

#include <lockstep/detail/cancellation.hpp>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/intrusive/list.hpp>

#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

namespace lockstep::redis {

namespace asio = boost::asio;

using list_hook = boost::intrusive::list_base_hook<boost::intrusive::link_mode<boost::intrusive::auto_unlink>>;

/// Something that has to be done once at the end of the turn, such as a write.
class turn_end {
public:
    virtual void end_of_turn() noexcept = 0;

protected:
    ~turn_end() = default;

private:
    friend class reactor;
    bool listed_ = false;
};

/// A timer in the reactor's wheel. Fires in a turn, at most 4 ms late.
class timer : public base::timer_node {
public:
    virtual void fire() noexcept = 0;

protected:
    ~timer() = default;
};

/// Something that can arrive from another thread: linked into the inbox, then `arrive()` is called in a turn.
/// (A timer at the same time, because what arrives mostly has a deadline and every further base costs 8 bytes.)
class arrival : public timer, public list_hook {
public:
    using list_hook::unlink;
    virtual void arrive() noexcept = 0;

protected:
    ~arrival() = default;
};

class reactor : public std::enable_shared_from_this<reactor> {
public:
    using clock = std::chrono::steady_clock;

    /// `blocks_here` tells whether the calling thread runs the executor outside of a turn (the user's own executor).
    explicit reactor(asio::any_io_executor executor, std::function<bool()> blocks_here = {});

    /// In a turn. Empty after `shut`.
    asio::any_io_executor const& executor() const noexcept { return executor_; }

    /// Inside a turn of this reactor, on this thread?
    bool here() const noexcept;
    /// False where whoever waits for what needs this reactor may wait for his own thread: on a thread that does I/O, or runs this one's executor.
    bool may_block() const noexcept;
    /// Throws `would_deadlock_error` there.
    void require_blocking_is_allowed() const;

    class turn;
    /// Gives up the lock of this thread's turn, if it is in one, for as long as it lives.
    class lending {
    public:
        lending() noexcept;
        ~lending();
        lending(lending const&) = delete;

    private:
        turn* from_;
    };

    /// From any thread: runs `work` in a turn of its own, later. False: shut, nothing was posted.
    template <class F>
    bool post(F work) {
        std::lock_guard const guard{inbox_mutex_};
        if (shut_) return false;
        post_turn(std::move(work));
        return true;
    }

    /// From any thread: `item.arrive()` will be called in a turn; at the end of this one if called in a turn. False: shut.
    bool hand_in(arrival& item);
    /// Takes it back out, if it is still there. With the turn lock held (a turn, or `locked`).
    void take_back(arrival& item) noexcept;

    /// Runs `work` while no turn runs. From any thread.
    template <class F>
    decltype(auto) locked(F&& work) const {
        if (here()) return work();
        lending const own;
        std::lock_guard const guard{turn_mutex_};
        return work();
    }

    /// Runs `work` in a turn on this thread: in this one, or in one of its own.
    template <class F>
    void in_turn(F&& work);

    /// Something that a coroutine waits for and that will be posted here. `end()` in a turn: the wait is over, or given up.
    class outside : public list_hook {
    public:
        virtual void end() noexcept = 0;

    protected:
        ~outside() = default;
    };

    /// With the lock: is a turn under way, this thread's or one that is lent?
    bool in_a_turn() const noexcept { return turns_ != 0; }

    // In a turn:
    clock::time_point now() const noexcept { return now_; }
    /// The last turn: what arrives in it still arrives, what is waited for outside is given up, then nothing is taken any more and
    /// nothing of the executor is kept, whose context may go.
    void shut() noexcept;
    /// False: shut, nobody would end it.
    bool wait_outside(outside& item) noexcept;
    void at_end_of_turn(turn_end& work);
    /// What the end of the turn would do, now: in the middle of a long turn, so that the server has work meanwhile.
    /// Of what arrives only so much is taken; the rest comes in a turn of its own, after what is there to be read. (A coroutine that asks
    /// again at once whenever it is refused arrives for ever.)
    void settle() noexcept;
    /// How often something was handed in in a turn.
    std::uint64_t arrivals() const noexcept { return arrivals_; }
    void forget(turn_end& work) noexcept;
    void arm(timer& item, clock::time_point due);
    void disarm(timer& item) noexcept { wheel_.remove(item); }

    /// Whatever is still at work further up the stack.
    void keep_for_this_turn(std::shared_ptr<void> what) { kept_.push_back(std::move(what)); }

private:
    template <class F>
    void post_turn(F work);
    void finish_turn() noexcept;
    void drain_inbox() noexcept;
    void set_alarm();

    asio::any_io_executor executor_;
    std::function<bool()> blocks_here_;
    mutable std::mutex turn_mutex_;
    unsigned turns_ = 0;  // more than one: the first is lent
    clock::time_point now_{};
    boost::intrusive::list<arrival, boost::intrusive::constant_time_size<false>> arrived_;  // in this turn
    std::uint64_t arrivals_ = 0;
    std::vector<turn_end*> endings_;
    std::vector<std::shared_ptr<void>> kept_;
    boost::intrusive::list<outside, boost::intrusive::base_hook<list_hook>, boost::intrusive::constant_time_size<false>> outside_;
    base::timer_wheel wheel_;
    std::optional<asio::steady_timer> alarm_;
    clock::time_point alarm_at_ = clock::time_point::max();

    mutable std::mutex inbox_mutex_;
    boost::intrusive::list<arrival, boost::intrusive::constant_time_size<false>> inbox_;
    bool inbox_posted_ = false;
    bool shut_ = false;
};

/// The scope of a turn.
class reactor::turn {
public:
    explicit turn(reactor& owner);
    ~turn();
    turn(turn const&) = delete;

private:
    friend class reactor;

    reactor& owner_;
    lending const own_;  // one client's turn can be taken inside another's
    std::unique_lock<std::mutex> lock_;
    detail::io_thread_mark mark_;
};

template <class F>
void reactor::in_turn(F&& work) {
    if (here()) return work();
    turn const now{*this};
    work();
}

template <class F>
void reactor::post_turn(F work) {
    asio::post(executor_, [self = shared_from_this(), work = std::move(work)]() mutable {
        turn const now{*self};
        work();
    });
}

}  // namespace lockstep::redis
