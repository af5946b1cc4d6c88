#pragma once

// One hold of a redlock, from the first question to the last answer: asked for on all nodes at once, held, extended, given back.
//
// It goes in rounds: each asks every node that matters and counts their votes (ballot.hpp). Nodes answer in their own turns, maybe on threads
// of their own; the vote that decides a round brings it home, and all that follows from it happens there. What both sides touch is under the
// hold's lock. The alarm's thread sees a lease end while all others hang, as for every lease (lease/alarm_clock.hpp).
//
// A hold is one acquisition with one token, never used for another. The object is used again when nobody has it any more.

#include "lease/alarm_clock.hpp"
#include "quorum/ballot.hpp"
#include "quorum/leg.hpp"
#include "quorum/plan.hpp"

#include <lockstep/redlock_lease.hpp>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::quorum {

class caller;
class fleet;
class room;
class seeker;

/// How an attempt ended.
struct outcome {
    enum class kind : std::uint8_t { got, busy, unavailable, refused, misused };
    kind what = kind::busy;
    std::chrono::milliseconds left{0};  ///< busy: until the holder's time is over; 0: not known
    bool heard = false;                 ///< busy: the holder knows that we wait
    bool split = false;                 ///< busy: nobody has a majority
    std::string why{};                  ///< the last three: what a node said, or what was wrong
};

class grip final : public redis::arrival, public engine::alarm_clock::sleeper {
public:
    grip(std::size_t nodes, engine::alarm_clock& alarm);
    ~grip();

    // ---- from any thread

    void keep() noexcept { references_.fetch_add(1, std::memory_order_relaxed); }
    void let_go() noexcept;
    static grip* of(redlock_lease const& held) noexcept { return held.held_; }
    static redlock_lease make_lease(grip& held, std::shared_ptr<anchor> nodes) noexcept;
    std::shared_ptr<fleet> const& nodes() const noexcept { return fleet_; }
    plan const& what() const noexcept { return *plan_; }
    std::string const& token() const noexcept { return token_; }
    std::uint64_t fence() const noexcept { return fence_; }
    std::chrono::milliseconds remaining() const noexcept;
    std::stop_token stop_token();
    std::stop_token at_risk_token();
    /// Gives it back without waiting for that.
    void leave() noexcept;
    /// Nobody refers to it any more.
    void forget_nodes() noexcept { fleet_.reset(); }

    // ---- in turns of home

    void become(std::shared_ptr<fleet> nodes, std::uint32_t index);
    std::uint32_t index() const noexcept { return index_; }
    /// Its room hears how that ended. `told`: what the holder is told, if it has one; empty: nobody is told.
    void take(std::shared_ptr<plan const> what, std::shared_ptr<room> by, std::string told);
    /// What it got, if anything, is given back, and nobody waits for that.
    void give_back() noexcept;
    void release(caller& by);
    void prolong(caller& by, std::chrono::milliseconds length);
    void forget(caller const& gone) noexcept;
    bool is_idle() const noexcept { return phase_ == phase::idle; }
    void lose(std::string_view why) noexcept;
    bool is_held() const noexcept { return phase_ == phase::held; }
    /// It is being asked for, and fewer than a quorum have answered.
    bool is_unanswered() noexcept;
    /// These wait for what it holds.
    void wanted(std::vector<std::string> waiters);
    /// The client closes: gives back what it has, and ends.
    void close() noexcept;
    /// It ends with nothing more being sent. No turn runs any more, or this is one.
    void drop() noexcept;

    seeker* own = nullptr;  ///< who it is for, where it is not for all of its room

private:
    friend class leg;

    enum class phase : std::uint8_t { idle, taking, fencing, held, lingering, releasing };
    enum event : std::uint8_t { decided = 1, settled = 2, departed = 4 };
    /// What the answers of a round say besides yes and no.
    struct findings {
        std::uint64_t fence = 0;
        std::uint64_t now_us = 0;
        std::int64_t left_ms = 0;
        bool heard = false;
        std::size_t errors = 0;
        std::vector<std::string> tokens{};
        std::string trouble{};
        void clear();
    };

    /// For nodes that do not live where decisions are made: there a round has a time of its own.
    class limit final : public redis::timer {
    public:
        explicit limit(grip& of) noexcept : of_(of) {}
        void fire() noexcept override { of_.round_is_over(); }

    private:
        grip& of_;
    };
    struct end_times {
        std::int64_t end, risk;
    };

    static constexpr int most_fence_rounds = 5;

    void arrive() noexcept override;
    void fire() noexcept override;
    engine::alarm_clock::time_point ring(engine::alarm_clock::time_point now, std::vector<std::stop_source>& stops) noexcept override;

    // In turns of a node:
    void voted(leg& by, vote what, findings const* more, std::string_view trouble = {}, bool answered = true) noexcept;
    void bring_home(std::uint8_t what) noexcept;

    void handle(std::uint8_t events) noexcept;
    void ask_all(request what, std::chrono::milliseconds ttl, std::chrono::milliseconds time);
    void round_is_over() noexcept;
    void decide() noexcept;
    void decide_taking(ballot const& seen);
    void decide_fencing(ballot const& seen);
    void decide_extension(ballot const& seen);
    void decide_release(ballot const& seen);
    void obtained();
    void not_obtained(ballot const& seen);
    void begin_fencing(std::uint64_t at_least);
    void begin_release();
    void begin_extension(std::chrono::milliseconds length);
    void schedule() noexcept;
    void extend_soon() noexcept;
    /// All have answered: a node that lost the key gets it again, and then shows that it kept it, without waiting for the next extension.
    void repair() noexcept;
    end_times ends_after(std::chrono::milliseconds length) const noexcept;
    bool set_end(std::chrono::milliseconds length, bool first) noexcept;
    void end_no_later_than(std::chrono::milliseconds length) noexcept;
    void end_tokens(bool lost) noexcept;
    void finish() noexcept;
    std::chrono::nanoseconds left_ns() const noexcept;

    std::size_t const size_;
    engine::alarm_clock& alarm_;
    std::unique_ptr<leg[]> legs_;
    std::shared_ptr<fleet> fleet_;
    std::shared_ptr<plan const> plan_;
    std::shared_ptr<room> room_;
    std::atomic<std::uint32_t> references_{0};
    std::uint32_t index_ = 0;
    std::string token_;
    std::string told_;
    std::uint64_t fence_ = 0;
    std::vector<std::string> wanted_by_;
    std::vector<std::string> woken_;  // as they were when the release began
    bool wakes_all_ = false;
    caller* heard_by_ = nullptr;
    caller* next_caller_ = nullptr;  // wants an extension, after the one that is under way
    phase phase_ = phase::idle;
    bool extending_ = false;
    bool repairing_ = false;  // the next extension is for nodes that lack the key, and not for a longer time
    bool released_again_ = false;
    int fence_rounds_ = 0;
    std::chrono::milliseconds next_length_{0};
    std::chrono::milliseconds length_{0};  // of the request under way
    base::boot_clock::time_point sent_at_{};
    base::boot_clock::time_point kept_until_{};  // nodes keep it until then at least
    limit limit_{*this};

    std::mutex mutex_;  // what follows
    std::uint32_t round_ = 0;
    std::uint32_t handled_ = 0;  // the last one that was decided and acted upon
    std::uint32_t proven_ = 0;   // the last extension that was won: nobody else had it until then
    bool changed_ = false;       // a node lost the key, or got it again
    ballot ballot_;
    findings findings_;
    bool is_decided_ = false;
    std::size_t busy_ = 0;
    std::uint8_t events_ = 0;
    bool is_posted_ = false;

    std::atomic<std::int64_t> ends_at_{0};  // boot clock, ns; 0: not held
    // Under the alarm's lock:
    std::int64_t risk_at_ = 0;
    bool at_risk_ = false;
    bool over_ = true;
    std::optional<std::stop_source> stop_;
    std::optional<std::stop_source> risk_;
};

}  // namespace lockstep::quorum
