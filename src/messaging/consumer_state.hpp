#pragma once

// Behind a `consumer`. The entries that it has, and who does what with them:
//
//   reader   (coroutine)  XREADGROUP on a connection of its own; after a broken one first what was given to this consumer unheard
//   workers  (threads, or up to `concurrency` coroutines)  run the handler
//   flusher  (coroutine, while there is something)  acknowledges in batches: one request under way, the next takes what came meanwhile;
//            moves to the dead letters
//   keeper   (coroutine)  renews what is here, lets failed ones be tried again, takes over from others
//
// An entry is here from when it came until the server has confirmed its acknowledgement; one that comes again meanwhile is not taken twice.

#include "base/backoff.hpp"
#include "core/keyed.hpp"
#include "messaging/doorbell.hpp"
#include "messaging/message_counts.hpp"

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

class consumer_state : public std::enable_shared_from_this<consumer_state> {
public:
    using clock = std::chrono::steady_clock;
    using milliseconds = std::chrono::milliseconds;

    consumer_state(keyed at, delivery_handler handler, consumer_options options);
    ~consumer_state() { let_go(); }

    void begin();
    static task<void> stop(std::shared_ptr<consumer_state> self);
    /// Waits for the handlers to end, where this is none of their threads. After `stop` or `abandon`.
    void join() noexcept;
    /// Does not wait for them.
    void let_go() noexcept;
    /// Ends without waiting: what has not begun stays pending.
    void abandon() noexcept;
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
        std::int64_t busy = 0;  // so often in turn somebody else was doing it: no delivery counts
    };
    struct burial {
        held* which;
        std::string reason;
    };
    /// What the flusher has in hand.
    struct settlement {
        std::vector<held*> done{};
        std::vector<burial> dead{};
        std::size_t size() const noexcept { return done.size() + dead.size(); }
    };
    struct found {
        std::string id;
        std::int64_t deliveries;
        bool is_counted = true;  // by the server: else it is when it begins
        stream_fields fields;
    };

    // consumer_work.cpp; any thread
    void accept(std::vector<found> entries, bool recovered);
    void let_work() noexcept;
    void work_as_thread();
    held* next_in_line();  // with the lock; it runs now
    void make_room() noexcept;  // with the lock; the line is shorter
    static task<bool> count_delivery(std::shared_ptr<consumer_state> self, held& what);
    static task<void> run_counted(std::shared_ptr<consumer_state> self, held& what);
    void pump() noexcept;
    void pump_at_home() noexcept;
    void finish(held& what, std::exception_ptr problem) noexcept;
    milliseconds pause_after(std::int64_t deliveries) const;
    std::size_t wanted() const;  // with the lock
    bool is_known(std::string_view id) const;
    void drop(entry_number id);  // with the lock
    void wake_flusher(std::unique_lock<std::mutex> guard) noexcept;
    bool is_drained() const;  // with the lock
    void count_acknowledged(std::size_t number);
    void count(std::uint64_t consumer_statistics::*which, std::uint64_t more = 1);  // with the lock

    // consumer_reading.cpp
    static task<void> read(std::shared_ptr<consumer_state> self);
    static task<void> read_on_one_connection(std::shared_ptr<consumer_state> self);
    static task<void> ensure_group(std::shared_ptr<consumer_state> self);
    static task<void> take_unheard(std::shared_ptr<consumer_state> self);
    static task<void> unblock(std::shared_ptr<consumer_state> self);

    // consumer_keeping.cpp
    static task<void> flush(std::shared_ptr<consumer_state> self);
    static task<void> settle(std::shared_ptr<consumer_state> self, settlement& work);
    static task<void> keep(std::shared_ptr<consumer_state> self);
    static task<void> keep_once(std::shared_ptr<consumer_state> self);
    static task<void> renew(std::shared_ptr<consumer_state> self, std::vector<std::string> ids);
    static task<void> try_again(std::shared_ptr<consumer_state> self, std::vector<held*> which);
    static task<std::vector<entry_number>> ask_renewal(std::shared_ptr<consumer_state> self, std::vector<std::string> words);
    static task<void> recover(std::shared_ptr<consumer_state> self);
    static task<void> sweep(std::shared_ptr<consumer_state> self);
    static task<void> leave(std::shared_ptr<consumer_state> self);

    /// Once for each trouble, until `works_again`.
    void complain(std::string_view what, std::string_view problem);
    void works_again();

    keyed const at_;
    delivery_handler const handler_;
    consumer_options const options_;
    std::string const dead_key_;
    std::string const taken_key_;  // of what was taken over and has not begun
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
    double average_us_ = 0;     // of a handler; 0: not known yet
    bool stopping_ = false;
    bool ended_ = false;  // workers go
    bool left_ = false;   // the group
    bool abandoned_ = false;  // nobody waits for the server any more
    bool reading_ = false;
    bool flushing_ = false;
    bool pumping_ = false;
    bool reader_waits_ = false;
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
    bool looks_for_unheard_;
    std::size_t suspects_ = options_.concurrency;  // how many of those that are pending at first may have killed an earlier process of this name
    std::int64_t connection_id_ = 0;  // of the reader's connection while it reads; 0: it does not
    std::string cursor_ = "0-0";
    clock::time_point next_look_;
    int looks_ = 0;

    std::mutex joining_;
    std::vector<std::thread> threads_;
};

/// Checks the options and begins. Throws `invalid_argument_error`.
std::shared_ptr<consumer_state> begin_consumer(keyed at, delivery_handler handler, consumer_options options);

}  // namespace lockstep::detail
