#pragma once

// All that this process wants of one name: who waits, in which order, and who gets what the server grants.
//
// With a cohort, those who wait share one hold at the server, and a hold that is released passes to the next of them without the
// server, a bounded number of times; then it goes back, behind it a new one queues for those who still wait, and other processes have
// their turn. Without one, each waiter has a hold of its own. In turns, except construction and destruction.

#include "core/core.hpp"
#include "lease/kind.hpp"
#include "lease/server_clock.hpp"
#include "lease/tally.hpp"
#include "lease/waiter.hpp"
#include "redis/subscriptions.hpp"

#include <lockstep/trace.hpp>

#include <boost/intrusive/list.hpp>

#include <memory>
#include <string>

namespace lockstep::detail {
class core;
}

namespace lockstep::engine {

class hub;

class room final : public std::enable_shared_from_this<room>, redis::listener {
public:
    /// What was asked and given up can run so much later at most.
    static constexpr std::chrono::milliseconds longest_budget{5'000};

    room(std::shared_ptr<detail::core> owner, hub& home, kind const& what, std::string key, std::string name);
    ~room();

    std::shared_ptr<detail::core> const& owner() const noexcept { return owner_; }
    hub& home() const noexcept { return hub_; }
    engine::kind const& kind() const noexcept { return kind_; }
    std::string const& key() const noexcept { return key_; }
    /// Monitors list it. From any thread.
    void note_use() noexcept {
        if (owner_->objects().is_new(noted_)) owner_->objects().add(key_);
    }
    std::string const& name() const noexcept { return name_; }
    std::int16_t slot() const noexcept { return slot_; }
    /// The channel in the rules that scripts get.
    std::string channel() const;

    // Waiters:
    void enter(waiter& who);
    void leave(waiter& who) noexcept;

    // Holds:
    void granted(hold& held, answer const& said) noexcept;
    void refused(hold& held) noexcept;  ///< a try that was busy, or a token that is gone
    void queued(hold& held, bool place_is_new) noexcept;
    void failed(hold& held, errc reason, std::string_view why) noexcept;
    /// It was told to ask again, or has no answer: for whom, and how long may it take?
    void ask_again(hold& held) noexcept;
    /// A lease of this process gave it back.
    void released(hold& held) noexcept;
    void lost(hold& held) noexcept;
    void detached(hold& held) noexcept;
    /// It was given back and offered to somebody: should it look whether that arrived?
    bool watch(hold& held, answer const& said) noexcept;
    /// More was put in, and may have been offered to one that waits and will not take it: this client looks once, a claim window later,
    /// whether it went on.
    void gave(std::shared_ptr<target const> what) noexcept;
    waiter::clock::time_point look_by() const noexcept { return look_by_; }
    void no_longer_watched(hold& held) noexcept;
    void no_longer_queued(hold& held) noexcept;

    // For people: what is counted and told.
    void tell(trace_what what, hold const& held, std::string_view detail = {}, std::chrono::nanoseconds waited = {}) noexcept;
    void gave_up(waiter const& who, trace_what how) noexcept;  ///< its time is over, or it was cancelled
    void count_loss(hold& held, std::string_view why) noexcept;
    void tell_signal(std::string_view detail) noexcept;  ///< something was put in

    void learn(std::int64_t server_ms) noexcept;
    std::int64_t server_now() const noexcept;
    /// The client closes, or can't go on: all who wait end with this error.
    void fail_all(errc reason, std::string_view why) noexcept;
    void look_again_all() noexcept;
    /// How many wait for what this hold stands for, where it is the one that they share.
    std::int64_t sharing(hold const& one) const noexcept {
        return &one == asker_ || &one == tenant_ ? static_cast<std::int64_t>(waiting_.size()) : 0;
    }

    /// Since when the first of them does.
    waiter::clock::time_point waits_since() const noexcept { return waiting_.front().since(); }

private:
    void hear() noexcept;
    bool shares(waiter const& who) const noexcept;
    void ask_for_all() noexcept;
    void give(hold& held, waiter& who) noexcept;
    bool may_pass(hold const& held) const noexcept;
    std::chrono::milliseconds budget_of(hold const& held) const noexcept;
    void stop_watching() noexcept;
    counts& count();
    void count_grant(hold& held, waiter& who) noexcept;
    void count_end(hold& held, trace_what how, std::string_view why = {}) noexcept;
    void tell_waiting(trace_what what, waiter const& who) noexcept;
    void look_in_time(hold& first) noexcept;

    // Cluster: its own channel.
    void message(std::string_view channel, std::string_view payload) noexcept override;
    void subscribed() noexcept override { look_again_all(); }
    void interrupted() noexcept override {}
    void refused(errc reason, std::string_view why) noexcept override;

    using waiter_list = boost::intrusive::list<waiter, boost::intrusive::base_hook<redis::list_hook>,
                                               boost::intrusive::constant_time_size<false>>;
    using hold_list =
        boost::intrusive::list<hold, boost::intrusive::base_hook<hold_hook>, boost::intrusive::constant_time_size<false>>;

    std::shared_ptr<detail::core> owner_;
    hub& hub_;
    engine::kind const& kind_;
    std::string key_;
    std::string name_;
    std::int16_t slot_;
    bool listening_ = false;
    waiter_list waiting_;       // those who share a hold
    hold* asker_ = nullptr;     // the one that asks or waits for them
    hold* tenant_ = nullptr;    // the one that one of them has
    hold_list queue_;           // holds that wait at the server, as they came; the first looks again
    hold* watching_ = nullptr;  // looks when nobody of the queue does
    waiter::clock::time_point look_by_ = waiter::clock::time_point::max();  // something was handed on: has it arrived by then?
    std::shared_ptr<tally> tally_;
    waiter::clock::time_point last_contact_{};
    server_clock clock_;
    detail::object_index::mark noted_;
};

}  // namespace lockstep::engine
