#pragma once

// Behind a `consumer`. The entries that it has, and who does what with them:
//
//   reader   (coroutine)  XREADGROUP on a connection of its own; after a broken one first what was given to this consumer unheard
//   workers  (threads, or up to `concurrency` coroutines)  run the handler
//   flusher  (coroutine, while there is something)  acknowledges in batches: one request under way, the next takes what came meanwhile;
//            moves to the dead letters, gives back to the group
//   keeper   (coroutine)  renews what is here, lets failed ones be tried again, takes what was given back and what the dead had
//
// An entry is here from when it came until the server has confirmed its acknowledgement; one that comes again meanwhile is not taken twice. Never more than
// `max_pending` are: nothing is taken while so many are here, and what comes beyond (a read that waits had asked for it before others were taken over) is
// given back at once.
//
// An entry that fails is tried here once more. After that it is given back to the group, and may be taken by any consumer when its delay has passed: it waits
// at the server, in a sorted set by that time (stream_return.lua), and the consumers are told of it. While the circuit is open (failure_circuit.hpp) everything that
// fails is given back at once, and so is what has not begun.

#include "base/backoff.hpp"
#include "core/keyed.hpp"
#include "messaging/doorbell.hpp"
#include "messaging/failure_circuit.hpp"
#include "messaging/repeated_log.hpp"
#include "messaging/message_counts.hpp"
#include "redis/subscriptions.hpp"

#include <lockstep/consumer.hpp>

#include <array>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <exception>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

namespace lockstep::detail {

struct entry_number {
    std::uint64_t ms = 0;
    std::uint64_t number = 0;
    static entry_number of(std::string_view id) noexcept;
    bool operator==(entry_number const&) const = default;
    struct hash {
        std::size_t operator()(entry_number const& id) const noexcept { return static_cast<std::size_t>(id.ms * 0x9E3779B97F4A7C15ull ^ id.number * 0xC2B2AE3D27D4EB4Full); }
    };
};

class consumer_state : public std::enable_shared_from_this<consumer_state>, redis::listener {
public:
    using clock = std::chrono::steady_clock;
    using milliseconds = std::chrono::milliseconds;

    /// `grace`: how long handlers that were asked to end may go on before `stop` gives their entries back.
    consumer_state(keyed at, delivery_handler handler, consumer_options options, milliseconds grace);
    ~consumer_state();

    void begin();
    /// With a limit, handlers are asked to end at once. False: some had not ended within it.
    static task<bool> stop(std::shared_ptr<consumer_state> self, std::optional<milliseconds> limit);
    /// Waits for the handlers to end, where this is none of their threads. After `stop` or `abandon`.
    void join() noexcept;
    /// Does not wait for them.
    void let_go() noexcept;
    /// Ends without waiting: what has not begun is given back, if the server can still be told.
    void abandon() noexcept;
    /// What runs is given back, too, while it runs on.
    void return_running() noexcept;
    consumer_statistics statistics() const;

    keyed const& at() const noexcept { return at_; }
    consumer_options const& options() const noexcept { return options_; }

private:
    enum class place { line, running, again, renewing, settling };
    struct held {
        delivery what;
        entry_number id;
        clock::time_point renewed;
        place where = place::line;
        clock::time_point begun{};
        bool is_counted = true;  // this delivery, by the server
        bool failed_here = false;
        bool is_returned = false;  // given back while its handler runs on
        std::int64_t busy = 0;  // so often in turn somebody else was doing it: no delivery counts
    };
    struct burial {
        held* which;
        std::string reason;
    };
    /// Of an entry that is given back.
    struct hand_back {
        entry_number entry;
        std::string id;
        std::int64_t deliveries;  // as many count
        milliseconds delay;
        bool is_held = true;  // until the server knows; not while its handler runs on
    };
    /// What the flusher has in hand.
    struct settlement {
        std::vector<held*> done{};
        std::vector<burial> dead{};
        std::vector<hand_back> returned{};
        std::size_t size() const noexcept { return done.size() + dead.size() + returned.size(); }
        void append(settlement&& more);
    };
    struct found {
        std::string id;
        std::int64_t deliveries;
        bool is_counted = true;  // by the server: else it is when it begins
        stream_fields fields;
        std::int64_t too_large = 0;  // bytes, of an entry that can't be sent
    };
    enum class origin { read, recovered, returned };
    /// `fields`: those, or the size of an entry that can't be sent.
    static found read_found(reply_view id, std::int64_t deliveries, bool is_counted, reply_view fields);

    // consumer_work.cpp; any thread
    void accept(std::vector<found> entries, origin from);
    void let_work() noexcept;
    void work_as_thread();
    held* next_in_line();  // with the lock; it runs now
    void make_room() noexcept;  // with the lock; the line is shorter
    static task<bool> count_delivery(std::shared_ptr<consumer_state> self, held& what);
    static task<void> run_counted(std::shared_ptr<consumer_state> self, held& what);
    void pump() noexcept;
    void pump_at_home() noexcept;
    void finish(held& what, std::exception_ptr problem) noexcept;
    void try_here_again(held& entry, milliseconds delay);  // with the lock
    void log_failure(held const& entry, std::string const& reason);
    milliseconds pause_after(std::int64_t deliveries) const;
    std::size_t wanted() const;  // with the lock
    std::size_t free_places() const;  // with the lock: how many more may be here
    std::size_t readable() const;  // with the lock: how many the reader may ask for; the circuit is closed
    bool is_known(std::string_view id) const;
    void drop(entry_number id);  // with the lock
    void wake_flusher(std::unique_lock<std::mutex> guard) noexcept;
    void flush_if_any() noexcept;
    bool is_drained() const;  // with the lock
    void count_acknowledged(std::size_t number);
    void count(std::uint64_t consumer_statistics::*which, std::uint64_t more = 1);  // with the lock

    // consumer_returning.cpp
    void give_back(held& entry, std::int64_t deliveries, milliseconds delay);  // with the lock; the flusher is to be woken
    void give_back_uncounted(held& entry, milliseconds delay = {});  // with the lock; as if it had not been delivered
    void give_back_waiting();  // with the lock: what does not run
    void give_back_again();  // with the lock: what waits for another try
    static task<void> settle_returned(std::shared_ptr<consumer_state> self, settlement& work);
    void look_within(milliseconds delay);  // with the lock
    void hear_of_returned(milliseconds delay) noexcept;
    void listen();  // in a turn
    void message(std::string_view channel, std::string_view payload) noexcept override;
    void subscribed() noexcept override;
    void interrupted() noexcept override {}
    void refused(errc, std::string_view) noexcept override {}  // then they are found when this looks by itself

    // consumer_reading.cpp
    static task<void> read(std::shared_ptr<consumer_state> self);
    static task<void> read_on_one_connection(std::shared_ptr<consumer_state> self);
    static task<void> ensure_group(std::shared_ptr<consumer_state> self);
    static task<void> look_for_gap(std::shared_ptr<consumer_state> self);
    void note_gap(std::uint64_t missed);
    void tell_gap() noexcept;
    static task<void> take_unheard(std::shared_ptr<consumer_state> self);
    static task<void> take_known(std::shared_ptr<consumer_state> self, std::vector<std::string> entries);
    static task<void> unblock(std::shared_ptr<consumer_state> self);

    // consumer_keeping.cpp
    static task<void> flush(std::shared_ptr<consumer_state> self);
    static task<void> settle(std::shared_ptr<consumer_state> self, settlement& work);
    static task<void> keep(std::shared_ptr<consumer_state> self);
    static task<void> keep_once(std::shared_ptr<consumer_state> self);
    static task<void> renew(std::shared_ptr<consumer_state> self, std::vector<std::string> ids);
    static task<void> try_again(std::shared_ptr<consumer_state> self, std::vector<held*> which);
    static task<std::vector<entry_number>> ask_renewal(std::shared_ptr<consumer_state> self, std::vector<std::string> words);
    clock::time_point next_look() const;  // with the lock
    std::size_t takeable();  // with the lock: how many may be taken over now; while the circuit is open that is a probe
    static task<void> recover(std::shared_ptr<consumer_state> self);
    static task<void> sweep(std::shared_ptr<consumer_state> self);
    void note_dropped(std::int64_t dropped);
    static task<void> leave(std::shared_ptr<consumer_state> self);

    /// Once for each trouble, until `works_again`.
    void complain(std::string_view what, std::string_view problem);
    void works_again();

    keyed const at_;
    delivery_handler const handler_;
    consumer_options const options_;
    milliseconds const grace_;
    std::string const dead_key_;
    std::string const taken_key_;  // of what was taken over and has not begun
    std::string const returned_key_;  // of what was given back; also the channel on which consumers are told of it
    std::stop_source stop_handlers_;

    doorbell room_;     // the reader waits for room
    doorbell chores_;   // the keeper waits for what is due
    doorbell retreat_;  // the reader waits before it tries again
    doorbell patience_;  // so does the flusher
    doorbell drained_;  // whoever stops it waits for the end

    mutable std::mutex mutex_;
    std::condition_variable work_;
    std::condition_variable rested_;  // no handler runs
    std::unordered_map<entry_number, std::unique_ptr<held>, entry_number::hash> held_;
    std::deque<held*> line_;
    settlement settled_;  // to be acknowledged or buried
    std::multimap<clock::time_point, held*> again_;
    std::size_t running_ = 0;
    std::size_t settling_ = 0;  // the flusher has so many in hand
    std::size_t returning_ = 0;  // here, until the server knows that they are given back
    double average_us_ = 0;     // of a handler; 0: not known yet
    std::size_t entry_bytes_ = 0;  // of large entries, as seen of late; 0: not known yet
    bool stopping_ = false;
    bool hurried_ = false;  // nothing begins any more
    bool ended_ = false;  // workers go
    bool left_ = false;   // the group
    bool abandoned_ = false;  // nobody waits for the server any more
    bool reading_ = false;
    bool flushing_ = false;
    bool pumping_ = false;
    bool reader_waits_ = false;
    failure_circuit circuit_;
    repeated_log failures_logged_{std::chrono::seconds{20}};
    repeated_log openings_logged_{std::chrono::minutes{1}};
    repeated_log drops_logged_{std::chrono::minutes{1}};
    repeated_log gaps_logged_{std::chrono::minutes{1}};
    bool gap_untold_ = false;  // `on_gap` has not run yet
    std::string complaint_;
    consumer_statistics counters_;
    std::shared_ptr<message_counts> const all_counts_;  // of the client's consumers together
    static constexpr std::size_t seconds_kept = 8;
    std::array<std::uint64_t, seconds_kept> per_second_{};
    std::int64_t last_second_ = 0;
    clock::time_point const since_ = clock::now();

    // Of the reader and the keeper, in turns.
    base::backoff retreat_time_{milliseconds{20}, milliseconds{2'000}};
    bool group_was_there_ = false;
    int gap_checks_ = 0;  // before the next reads
    clock::time_point next_gap_check_{};
    bool looks_for_unheard_;
    std::size_t suspects_ = options_.concurrency;  // how many of those that are pending at first may have killed an earlier process of this name
    std::int64_t connection_id_ = 0;  // of the reader's connection while it reads; 0: it does not
    std::string cursor_ = "0-0";
    clock::time_point next_look_;  // with the lock
    clock::time_point earliest_look_{};  // with the lock: some time after the last one, however often it is told
    bool is_told_ = false;  // with the lock: `next_look_` is about something that was given back since the last look was sent
    int looks_ = 0;
    bool listening_ = false;

    std::mutex joining_;
    std::vector<std::thread> threads_;
};

/// Checks the options and begins. Throws `invalid_argument_error`.
std::shared_ptr<consumer_state> begin_consumer(keyed at, delivery_handler handler, consumer_options options,
                                               std::chrono::milliseconds grace = std::chrono::milliseconds{1'000});

}  // namespace lockstep::detail
