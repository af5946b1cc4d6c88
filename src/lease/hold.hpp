#pragma once

// One hold at the server, from the first question to the last answer: it asks, waits, claims, is held and renewed, is given back.
//
// One object with one request under way at a time, reused for all of that and then by others, so that steady use allocates nothing.
// What it does next is decided by its room (who gets it, who waits); the hub keeps its table and its agenda (when to renew, to look
// again, to send what is owed). Everything in turns, except what leases ask from other threads: that is atomic or under the
// alarm's lock, because the alarm's thread must see a lease end while the I/O thread hangs.
//
// A hold that is held belongs to one lease at a time: a tenancy. Passing it on inside the process, releasing it and losing it each end
// the tenancy, and a lease whose tenancy is over has lost it.

#include "lease/alarm_clock.hpp"
#include "lease/answer.hpp"
#include "lease/target.hpp"
#include "redis/operation.hpp"

#include <lockstep/lease.hpp>

#include <boost/intrusive/list.hpp>
#include <boost/intrusive/set.hpp>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>

namespace lockstep::engine {

class hub;
class waiter;
class caller;

struct on_agenda;
struct in_queue;

using agenda_hook = boost::intrusive::set_base_hook<boost::intrusive::tag<on_agenda>>;
using hold_hook = boost::intrusive::list_base_hook<boost::intrusive::tag<in_queue>>;

class hold final : public redis::operation,
                   public alarm_clock::sleeper,
                   public agenda_hook,
                   public hold_hook {
public:
    using clock = redis::reactor::clock;

    /// Watching: it was given back and handed on, and looks once more whether that arrived. Owing: it may have got something after it
    /// had given up, and gives that back later.
    enum class state : std::uint8_t { idle, asking, waiting, claiming, held, releasing, watching, owing };

    explicit hold(hub& home) noexcept : hub_(home), departure_(*this) {}
    ~hold();

    // ---- from any thread

    static hold* of(lease const& held) noexcept { return held.hold_; }
    static std::uint64_t tenancy_of(lease const& held) noexcept { return held.tenancy_; }
    static lease make_lease(hold& held, std::uint64_t tenancy, std::uint64_t fence) noexcept { return {&held, tenancy, fence}; }
    void keep() noexcept { references_.fetch_add(1, std::memory_order_relaxed); }
    void let_go() noexcept;
    bool is_valid(std::uint64_t tenancy) const noexcept;
    std::chrono::milliseconds remaining(std::uint64_t tenancy) const noexcept;
    std::stop_token stop_token(std::uint64_t tenancy);
    std::stop_token at_risk_token(std::uint64_t tenancy);
    /// Gives it back without waiting for that. Unused: it was granted, and nobody got it.
    void leave(std::uint64_t tenancy, bool unused = false) noexcept;
    static void drop_unused(lease& granted) noexcept;
    std::shared_ptr<target const> what() const noexcept { return target_; }

    // ---- in turns

    state now() const noexcept { return state_; }
    std::string_view id() const noexcept { return {id_, id_size_}; }
    std::uint64_t number() const noexcept { return number_; }
    std::uint64_t tenancy() const noexcept { return tenancy_.load(std::memory_order_relaxed); }
    clock::time_point agenda_time() const noexcept { return agenda_time_; }

    /// Becomes a new hold; the hub's part is to give it a number.
    void become(std::shared_ptr<target const> what, std::uint64_t number, std::string_view client);
    void ask(std::chrono::milliseconds budget, std::string_view token = {});
    void claim();
    /// The push came: it may be ours.
    void told();
    void give_back() noexcept;
    /// It was granted, and nobody gets it.
    void give_back_unused() noexcept {
        unused_ = true;
        give_back();
    }
    /// Nobody waits for it any more: what it may have got is given back.
    void give_up() noexcept;
    /// The server could not take a look of one that stands in its queue, but may later: it waits on.
    void wait_on() noexcept;
    /// It is lost: when its time is over at the server too, where a renewal that nobody heard of may have prolonged it. Until then whoever had
    /// it stops its work. If it was not lost by time, the server has ended it, or everything ends: at once.
    void give_back_when_over() noexcept;
    /// It was handed on, and nobody will be here to look whether that arrived: the first that still waits is told to.
    void tell_next() noexcept;
    /// Of what it did not have: looks once, at the end of the claim window, whether an offer went on.
    void watch() noexcept;
    /// In a while, as nobody could be asked just now.
    void ask_later() noexcept;
    /// It is held, and would be renewed if its time had come.
    bool may_renew() const noexcept { return state_ == state::held && !renewing_ && target_->how.renew; }
    /// Its time on the agenda has come.
    void act() noexcept;
    void finish() noexcept;
    /// The end, unless something that it asked for may still run.
    void owe_or_finish() noexcept;

    std::uint64_t begin_tenancy(std::uint64_t fence) noexcept;
    enum class ending : std::uint8_t { released, lost };
    void end_tenancy(ending how) noexcept;
    void lose(std::string_view why) noexcept;
    /// Somebody asks for it to be released: at risk, for whoever listens.
    void asked() noexcept;
    /// It was ended by force. In a Cluster this may come before the answer that granted it, which is then no grant.
    void evicted() noexcept;
    /// It was granted: false if the answer came too late. Its end counts from when the request was sent.
    bool set_first_end(std::chrono::milliseconds length) noexcept;
    /// For a command that sets something of it: the server ignores those with smaller ones afterwards.
    std::uint64_t next_set_number() noexcept { return ++set_number_; }
    /// Renews it for somebody who waits for that; also to another amount.
    void prolong(caller& by, std::chrono::milliseconds length);
    /// Ends here without being given back: it lives on as a token.
    void detach() noexcept;

    std::chrono::nanoseconds left() const noexcept;
    void settle_caller(std::exception_ptr problem) noexcept;

    // Kept by the room:
    waiter* wanted_by = nullptr;  ///< the one it is for, where it is not for all of the room
    caller* heard_by = nullptr;   ///< who waits for the end of a release or a renewal
    std::uint64_t fence = 0;
    std::uint64_t last_fence = 0;  ///< of the range that was reserved
    std::uint32_t passes = 0;
    std::int64_t permits = 1;  ///< its target's, unless it was changed since
    clock::time_point granted_at{};

    // For people:
    clock::time_point asked_at{};    ///< when it was first asked for
    clock::time_point tenant_since{};
    bool was_queued = false;
    bool looks_with_others = false;  ///< it asks because another of its name did
    std::unique_ptr<std::string> trace;  ///< what its tenant's `trace_scope` said

    struct earlier {
        bool operator()(hold const& left, hold const& right) const noexcept { return left.agenda_time_ < right.agenda_time_; }
    };

private:
    friend class hub;

    /// Brings a lease's end from another thread into a turn.
    class departure final : public redis::arrival {
    public:
        explicit departure(hold& self) noexcept : self_(self) {}
        ~departure() = default;
        std::uint64_t tenancy = 0;
        bool unused = false;

    private:
        void arrive() noexcept override;
        void fire() noexcept override {}
        hold& self_;
    };

    static constexpr std::chrono::milliseconds release_time{5'000};  // how long a release or a cancellation is tried at a time

    void encode(resp::output& out) override;
    void complete(reply_view said) noexcept override;
    void fail(errc reason, std::string_view why) noexcept override;
    bool use_full_script() noexcept override { return !std::exchange(whole_script_, true); }
    alarm_clock::time_point ring(alarm_clock::time_point now, std::vector<std::stop_source>& stops) noexcept override;

    /// What a request that failed was told: nothing, or that the server refuses it, for good or for the time being.
    enum class refusal : std::uint8_t { none, passing, lasting };
    void failed(errc reason, std::string_view why, refusal how) noexcept;
    void owe_what_may_run() noexcept;
    void depart(bool unused) noexcept;
    void send(state next, clock::time_point deadline) noexcept;
    /// What its caller is told of a request that failed.
    std::exception_ptr unheard(errc reason, std::string_view why) const;
    void answered_ask(answer const& said) noexcept;
    void answered_renewal(answer const& said) noexcept;
    void answered_release(answer const& said) noexcept;
    void queued(answer const& said) noexcept;
    void renew() noexcept;
    void send_renewal(std::chrono::milliseconds length) noexcept;
    void schedule_renewal() noexcept;
    /// By how much it ends here before it can be somebody else's.
    std::chrono::milliseconds margin_of(std::chrono::milliseconds length) const noexcept;
    /// What is about to be sent may shorten it: here it ends by then, whatever becomes of that.
    void lower_end(std::chrono::milliseconds length) noexcept;
    bool set_end(std::chrono::milliseconds length, bool first) noexcept;
    clock::time_point end_as_steady() const noexcept;
    bool over(std::uint64_t tenancy) const noexcept { return tenancy_.load(std::memory_order_acquire) != tenancy; }

    hub& hub_;
    std::shared_ptr<target const> target_;
    std::atomic<std::uint32_t> references_{0};
    std::uint64_t number_ = 0;
    std::string_view token_;  // asking: to adopt
    char id_[44];
    std::uint8_t id_size_ = 0;
    state state_ = state::idle;
    bool told_ = false;          // a push came while an answer was under way
    bool renewing_ = false;
    bool whole_script_ = false;
    bool uncertain_ = false;     // something it asked for may have run, or may still run
    bool evicted_ = false;       // it was ended before the answer came that it has it
    bool leaving_ = false;       // given back because the client closes
    bool unused_ = false;        // given back before anybody had it
    bool lost_ = false;          // given back because it was lost
    clock::time_point agenda_time_{};
    clock::time_point owed_until_{};  // a release; a cancellation that is refused for the time being
    base::boot_clock::time_point sent_at_{};      // what the answer under way counts from
    base::boot_clock::time_point held_since_{};
    std::int64_t deadline_ms_ = 0;                // the server's time after which what was asked must not run
    std::uint64_t connects_ = 0;                  // how often the way had been connected when it first asked
    std::chrono::milliseconds ttl_{0};            // of the request under way
    std::int64_t change_to_ = -1;                 // another amount, with the renewal under way
    std::uint64_t set_number_ = 0;                // of the last command that set something of it: later ones have larger ones
    std::chrono::milliseconds extended_to_{0};    // what it was extended to, if that is longer than its ttl: renewals keep it

    std::atomic<std::uint64_t> tenancy_{0};
    std::atomic<std::int64_t> ends_at_{0};  // boot clock, ns; 0: not held
    // Under the alarm's lock:
    std::int64_t risk_at_ = 0;
    bool at_risk_ = false;
    bool over_ = false;
    std::optional<std::stop_source> stop_;
    std::optional<std::stop_source> risk_;

    departure departure_;
};

/// Keeps a hold from being reused.
class hold_reference {
public:
    explicit hold_reference(hold& held) noexcept : held_(&held) { held.keep(); }
    hold_reference(hold_reference&& other) noexcept : held_(std::exchange(other.held_, nullptr)) {}
    ~hold_reference() {
        if (held_ != nullptr) held_->let_go();
    }
    hold& operator*() const noexcept { return *held_; }

private:
    hold* held_;
};

}  // namespace lockstep::engine
