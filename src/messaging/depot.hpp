#pragma once

// What this process has to do with one queue, through one object: who wants items, what is to be enqueued, what is held.
//
// There are two pumps, one for each direction, with at most one call under way each; where many jobs come, two calls bring them. What is asked meanwhile is
// gathered and leaves with the next call, all of it together; a single request leaves at once. A call carries the sequence of its caller, so that it is done
// once however often it is sent. A pull that is not answered is sent again as it is: what it took is not lost.
//
// Nobody polls: when there is nothing, the pull leaves our name at the server, and the next one who enqueues has us told. The push is a
// hint. An item that comes alone to a queue that is empty is in the message itself, leased for a moment: it is handed out at once, and the next
// pull prolongs its lease or says what became of it. Who was told and died leaves items lying: whoever enqueued looks once more after the claim window, and has the next one told.
// In turns, except construction and destruction.

#include "core/keyed.hpp"
#include "lease/server_clock.hpp"
#include "lease/session_pool.hpp"
#include "messaging/queue_waiters.hpp"
#include "messaging/queue_wire.hpp"
#include "messaging/repeated_log.hpp"
#include "redis/subscriptions.hpp"

#include <lockstep/detail/raw_queue.hpp>

#include <boost/intrusive/list.hpp>

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::engine {
class hub;
}

namespace lockstep::detail {

/// Calls a member of its depot: at a time, or once all who come in this turn have come.
class depot_signal final : public redis::arrival {
public:
    depot_signal(depot& of, void (depot::*what)() noexcept) noexcept : depot_(of), what_(what) {}
    void raise() noexcept;  ///< at the end of the turn, unless it is going to be already

private:
    void arrive() noexcept override;
    void fire() noexcept override { (depot_.*what_)(); }

    depot& depot_;
    void (depot::*what_)() noexcept;
    bool raised_ = false;
    bool waited_ = false;
};

class depot final : public std::enable_shared_from_this<depot>, redis::listener {
public:
    using clock = redis::reactor::clock;
    using milliseconds = std::chrono::milliseconds;

    static std::shared_ptr<depot> make(std::shared_ptr<core> owner, std::string_view name, queue_options const& how, lane_options const& lane);
    depot(std::shared_ptr<core> owner, std::string_view name, queue_options const& how, lane_options const& lane);
    ~depot();

    keyed const& what() const noexcept { return what_; }
    queue_options const& how() const noexcept { return how_; }
    std::string const& rules() const noexcept { return rules_; }
    size_limits const& limits() const noexcept { return limits_; }
    std::string const& lane() const noexcept { return lane_; }
    std::shared_ptr<core> const& owner() const noexcept { return what_.owner(); }
    bool is_connected() const noexcept;
    std::string lane_key(std::string_view lane) const;
    /// A script that counts something, once however often it is sent: on these keys and the caller's record, with these words behind rules,
    /// sequence and deadline.
    static task<std::string> ask_once(std::shared_ptr<depot> self, scripts::script const& script, std::vector<std::string> keys,
                                      std::vector<std::string> more);
    /// The same, of one that answers a number.
    static task<std::int64_t> run_once(std::shared_ptr<depot> self, scripts::script const& script, std::vector<std::string> keys,
                                       std::vector<std::string> more);

    void enter(taker& who) noexcept;
    void leave(taker& who) noexcept;
    void enter(shipment& what);
    void leave(shipment& what) noexcept;
    void enter(flusher& who) noexcept;
    void judge(verdict what);
    /// One that comes in a later turn, which whoever waits for all verdicts waits for, too. From any thread, but for the second.
    void expect_verdict() noexcept { ++expected_; }
    void judge_expected(verdict what);
    void forget_verdict() noexcept { --expected_; }  // the client is closed
    /// Prolongs all that is held, and so learns what is not any more.
    void renew_now() noexcept { prolong(); }
    /// Nobody saw it, and it counts as if it had not been taken.
    void give_back(std::shared_ptr<held_item> what);
    /// Those whose `stopping` this is do not wait any more.
    void dismiss(std::atomic<bool> const* stopping) noexcept;
    /// `done` when what is held was given back.
    void close(std::function<void()> done) noexcept;

    /// Of jobs: a call of ours had so many forgotten before their retention was over, completed and failed ones. In a turn; must not throw.
    std::function<void(std::uint64_t, std::uint64_t)> on_dropped;

private:
    friend class depot_signal;
    template <class Waiter>
    using list_of = boost::intrusive::list<Waiter, boost::intrusive::base_hook<redis::list_hook>, boost::intrusive::constant_time_size<false>>;
    using held_list = boost::intrusive::list<held_item, boost::intrusive::base_hook<held_hook>>;

    struct pull_call {
        std::int64_t sequence = 0;
        std::vector<verdict> verdicts;  // those that are done first
        std::size_t acks = 0;
        std::size_t want = 0;
        std::size_t ahead = 0;  // and so many more, if there are
        std::uint64_t covered = 0;  // how many takers had come
        bool waits = false;
        std::string victim;
        base::boot_clock::time_point sent{};
        clock::time_point begun{};
    };
    struct push_call {
        struct parcel {
            shipment* from;
            std::size_t index;
        };
        std::int64_t sequence = 0;
        std::string lane;
        std::vector<std::string> words;  // options and payload of each
        std::vector<parcel> parcels;
        bool waits = false;
        bool is_named = false;  // and we are told when there is room

        std::vector<shipment*> senders() const;  // who still waits for it
    };

    /// There are two, for jobs: where many come, server and client work at the same time.
    struct pusher {
        engine::session session;
        std::vector<std::string> keys;
        push_call* what = nullptr;  // is under way
    };

    // depot.cpp
    redis::reactor& home() const noexcept { return owner()->home(); }
    engine::hub& hub() const noexcept { return hub_; }
    std::int64_t latest() const noexcept;
    void listen() noexcept;
    void name_here();
    task<reply> run(scripts::script const& script, std::span<std::string const> keys, std::span<argument const> words, bool yields = false);
    task<void> say_leave(std::string waiting, std::string name, std::string_view word);
    void see_to(task<void> work) noexcept;
    void look_after_them() noexcept;
    void look_after() noexcept;
    static task<void> nudge(std::shared_ptr<depot> self, milliseconds in);
    void message(std::string_view channel, std::string_view payload) noexcept override;
    void subscribed() noexcept override;
    void interrupted() noexcept override {}
    void refused(errc reason, std::string_view why) noexcept override;
    void flushed() noexcept;
    void ended() noexcept;

    // depot_pull.cpp
    void go_pulling() noexcept;
    void look_again() noexcept;
    void offered(std::string_view message);
    void hold(std::shared_ptr<held_item> const& item);
    void letters_dropped(std::int64_t count);
    void put_off_too_large(std::string_view token, large_entry const& what);
    void hand_out(std::vector<std::shared_ptr<held_item>> items) noexcept;
    void prolong() noexcept;
    bool has_to_pull() const noexcept;
    pull_call next_pull();
    task<reply> ask(pull_call const& what);
    bool pulled(pull_call& what, reply const& said);
    bool pull_failed(pull_call& what, errc reason, std::string const& why) noexcept;
    void settled(verdict& what, bool is_lost, base::boot_clock::time_point sent) noexcept;
    void failed(verdict& what, std::exception_ptr why) noexcept;
    void let_go(held_item& what) noexcept;
    void rest_pulling() noexcept;
    static root pull_all(std::shared_ptr<depot> self);

    // depot_push.cpp
    void go_pushing() noexcept;
    void look_for_room() noexcept;
    bool is_pushing() const noexcept;
    bool may_be_full() const noexcept { return how_.max_length ? *how_.max_length > 0 : is_bounded_; }
    list_of<shipment>::iterator first_unsent() noexcept;
    std::size_t count_to_push(pusher const& by) noexcept;
    push_call next_push(pusher& by, std::size_t about);
    task<reply> ask(push_call const& what, pusher const& by);
    static task<void> put_again(std::shared_ptr<depot> self, std::vector<std::shared_ptr<held_item>> items);
    bool pushed(push_call& what, reply const& said);
    void push_failed(push_call& what, errc reason, std::string const& why) noexcept;
    void rest_pushing() noexcept;
    static root push_all(std::shared_ptr<depot> self, pusher& by);

    keyed what_;
    queue_options how_;
    size_limits limits_;
    std::string lane_;
    std::string job_words_;  // empty: these are no jobs
    bool steals_half_ = true;
    engine::hub& hub_;
    engine::server_clock clock_;
    std::string channel_;
    std::string rules_;
    engine::session pull_session_;
    std::string name_;  // under which we wait at the server; '+': items may come in the message
    bool listening_ = false;
    bool closing_ = false;
    std::function<void()> closed_;
    int owed_ = 0;  // what must have been said before the client closes
    scripts::script const& pull_script_;
    scripts::script const& push_script_;
    std::vector<std::string> pull_keys_;
    std::vector<std::string> push_keys_;

    list_of<taker> takers_;
    list_of<flusher> flushers_;
    held_list holding_;
    std::deque<verdict> verdicts_;
    std::uint64_t said_ = 0;  // verdicts that there were
    std::atomic<std::uint64_t> expected_{0};  // how many other threads have sent, and how many of these have come
    std::uint64_t arrived_ = 0;
    std::uint64_t entries_ = 0;
    bool pulling_ = false;
    bool look_ = false;        // it is time to ask for items
    bool quiet_ = false;       // the last answer had none, and nothing was told since
    bool registered_ = false;  // our name may be at the server
    bool told_ = false;        // of items, and we have not asked for them yet
    std::string victim_;
    clock::time_point next_look_{};
    clock::time_point last_contact_{};
    std::int64_t ahead_ms_ = 0;  // the server's clock less the boot clock, at most
    depot_signal pull_signal_{*this, &depot::go_pulling};
    depot_signal look_timer_{*this, &depot::look_again};
    depot_signal keeper_{*this, &depot::prolong};

    list_of<shipment> shipments_;
    std::array<pusher, 2> pushers_;
    bool send_ = false;  // it is time to send what there is
    bool told_them_ = false;  // who waited was told of the last ones: who waits for the next is to hear of them first
    bool full_ = false;  // there is no room, and we will be told
    bool told_of_room_ = false;  // and we have not used it yet
    bool is_bounded_ = false;    // by a limit that we did not set
    repeated_log drops_{std::chrono::minutes{1}};
    repeated_log too_large_{std::chrono::seconds{20}};
    depot_signal push_signal_{*this, &depot::go_pushing};
    depot_signal room_timer_{*this, &depot::look_for_room};
    depot_signal nudge_timer_{*this, &depot::look_after};
    clock::time_point told_at_{};         // somebody, of items
    std::shared_ptr<depot> looks_after_;  // itself, while that is armed: also when nobody uses it any more
};

}  // namespace lockstep::detail
