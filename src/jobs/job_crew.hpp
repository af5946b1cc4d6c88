#pragma once

// Handlers at work: for each type loops that take a job, run it, and take the next. What became of a job leaves together with the wish for the next.
//
// Loops of one type are as many as may run at once of it. Where the types together could run more than the worker may, a loop that has a job
// waits for its turn, and while all turns are taken nobody asks for more.

#include "jobs/cron_scheduler.hpp"
#include "jobs/job_office.hpp"
#include "jobs/job_text.hpp"
#include "messaging/doorbell.hpp"
#include "messaging/failure_throttle.hpp"
#include "messaging/raw_queue_parts.hpp"
#include "messaging/repeated_log.hpp"

#include <lockstep/circuit_breaker.hpp>
#include <lockstep/detail/raw_jobs.hpp>
#include <lockstep/rate_limiter.hpp>

#include <atomic>
#include <condition_variable>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

namespace lockstep::detail {

/// A job that this process runs.
struct running_job : std::enable_shared_from_this<running_job> {
    std::string name;  ///< '<type>/<id>'
    std::shared_ptr<job_office> office;
    std::shared_ptr<held_item> item;
    job_delivery what;
    std::stop_source stop;       ///< for its handler
    std::stop_source over;       ///< it has ended: nobody has to watch it
    std::atomic<bool> cancelled{false};
    std::atomic<bool> timed_out{false};
    std::atomic<bool> is_stuck{false};    ///< its time has been over for a while, and its handler runs on
    std::atomic<bool> given_back{false};  ///< while its handler runs, since the worker was told not to wait for it
    std::optional<circuit_permit> permit;  ///< of its type's breaker
    decltype(handle_options::backoff) backoff = nullptr;
    std::mutex mutex;
    std::string refused;  ///< why it must fail whatever its handler does; under the mutex
};

class job_crew : public std::enable_shared_from_this<job_crew> {
public:
    job_crew(client& by, std::string_view name, job_worker_options const& how);

    void add(std::string_view type, handle_options const& how, raw_job_worker::on_thread on_thread, raw_job_worker::as_task as_task);
    void start_all();

    // From any thread:
    void request_stop() noexcept;
    static task<void> stop(std::shared_ptr<job_crew> self);
    /// False: some handlers ran for longer than that, and their jobs were given back.
    static task<bool> stop_within(std::shared_ptr<job_crew> self, std::chrono::milliseconds limit);
    /// As `stop`, but what runs after `stop_limit` is told to stop, and its job given back.
    static task<void> stop_at_limit(std::shared_ptr<job_crew> self);
    /// When this is the last that is asked of it.
    void finish() noexcept;
    std::uint64_t completed() const noexcept { return completed_; }
    std::uint64_t failed() const noexcept { return failed_; }
    std::size_t stuck() const noexcept { return stuck_; }
    keyed const& what() const noexcept { return office_->all(); }

private:
    using running = std::shared_ptr<running_job>;
    struct branch {
        std::string type;
        std::size_t concurrency = 0;
        raw_job_worker::on_thread on_thread;
        raw_job_worker::as_task as_task;
        rate_limiter* limit = nullptr;
        circuit_breaker* breaker = nullptr;
        decltype(handle_options::backoff) backoff = nullptr;
        std::shared_ptr<depot> queue;
        subscription control;
        std::uint64_t dropped_completed = 0;  // not logged yet; in turns
        std::uint64_t dropped_failed = 0;
        std::optional<depot::clock::time_point> drops_reported;
        std::atomic<std::chrono::steady_clock::duration> typical{std::chrono::milliseconds{10}};  // how long its handler takes
        void learn(std::chrono::steady_clock::duration took) noexcept;
        std::mutex mutex;
        std::map<std::string, running, std::less<>> at_work;  // by the id in the queue
        std::map<std::string, int, std::less<>> busy;  // how often in a row it was being done already, by the id in the queue

        failure_throttle throttle;
        std::atomic<int> doubts{0};  // 0: it knows of no failure, and need not be asked
        bool is_slow() const noexcept;
        bool may_have_to_wait() const noexcept;
        void note_success() noexcept;
        void note_failure() noexcept;
        repeated_log failures{std::chrono::seconds{20}};
        repeated_log take_failures{std::chrono::seconds{20}};
        // In turns:
        std::size_t active = 0;   // loops that take a job or have one
        bool is_limited = false;  // the limiter refused the last one that asked without waiting
        bool is_asking = false;   // a loop waits for the limiter
        std::chrono::steady_clock::time_point rests_until{};  // its circuit is open, or it lets other workers go first
        doorbell changed;         // one of these, or the throttle
    };

    /// What a loop has taken and not begun. In turns.
    struct hand {
        std::deque<running> jobs;
        depot::clock::time_point since{};
        bool is_watched = false;
    };

    std::size_t at_once(branch const& of) const noexcept;
    void give_back(branch& of, hand& what) noexcept;
    static task<void> watch(std::shared_ptr<job_crew> self, branch& of, std::shared_ptr<hand> what);
    static task<void> work(std::shared_ptr<job_crew> self, branch& of);
    static void work_on_thread(std::shared_ptr<job_crew> self, branch& of);
    /// The next one of a type, when it may be run; nothing: none, ask again.
    static task<running> next(std::shared_ptr<job_crew> self, branch& of, std::shared_ptr<hand> mine);
    /// Asks its type's limit, unless that was done, and circuit. False: not now.
    static task<bool> admit(std::shared_ptr<job_crew> self, branch& of, running one, bool has_leave);
    static task<void> come_home(std::shared_ptr<job_crew> self);
    /// `is_once`: only what is there now.
    static task<void> take(std::shared_ptr<job_crew> self, branch& of, std::shared_ptr<hand> mine, bool is_once);
    bool is_plain(branch const& of) const noexcept;
    /// False: it was given back.
    bool begin_turn(branch& of, running const& one);
    void do_without(branch& of, running const& one) noexcept;
    static task<running> choose(std::shared_ptr<job_crew> self, branch& of, std::shared_ptr<hand> mine, bool has_leave);
    static task<void> listen(std::shared_ptr<job_crew> self, branch& of);
    static task<void> watch_time(std::shared_ptr<job_crew> self, branch& of, running one);
    void note_stuck(running_job& one) noexcept;
    /// Waits until a job may be taken: while most handlers fail, and for the type's circuit and limiter. True: the limiter was asked, and allows one.
    static task<bool> wait_for_leave(std::shared_ptr<job_crew> self, branch& of);
    static task<bool> wait_for_limit(std::shared_ptr<job_crew> self, branch& of);
    static task<bool> is_empty(branch& of);
    /// Null: it is being run here already, and was postponed.
    running begin(branch& of, std::shared_ptr<held_item> item);
    void forget(branch& of, running_job& one) noexcept;
    void end(branch& of, running_job& one) noexcept;
    void returned(branch& of, running_job& one, std::string result) noexcept;
    void threw(branch& of, running_job& one, std::exception_ptr why) noexcept;
    std::chrono::milliseconds busy_delay(branch& of, std::string_view id);
    bool missed(branch& of, running_job& one, std::string reason, bool is_final) noexcept;
    void complete_again(std::shared_ptr<held_item> const& item, std::string result, std::exception_ptr why) noexcept;
    void postpone(running_job& one, std::chrono::milliseconds delay) noexcept;
    void note_failure(branch& of, running_job const& one, std::string_view reason) noexcept;
    void enter_turn() noexcept;
    void leave_turn() noexcept;
    void one_less() noexcept;
    std::vector<running> jobs_at_work();
    void tell_handlers_to_stop();
    /// How many handlers run on.
    std::size_t give_back_running();
    static task<bool> wait_for_loops(std::shared_ptr<job_crew> self, depot::clock::time_point until);
    static task<void> flush(std::shared_ptr<job_crew> self, depot::clock::time_point until);
    void report(std::exception_ptr why) const noexcept;
    /// None could be taken, or its limiter or circuit could not be asked: all loops see the same.
    void report_take_failure(branch& of, std::exception_ptr why) const noexcept;
    void report_dropped(branch& of, std::uint64_t completed, std::uint64_t failed) const noexcept;

    std::shared_ptr<job_office> office_;
    job_worker_options how_;
    std::string words_;
    std::shared_ptr<cron_scheduler> crons_;  // null: others do that
    std::vector<std::unique_ptr<branch>> branches_;
    bool started_ = false;
    bool is_shared_ = false;  // the types together could run more than may
    std::atomic<bool> stopping_{false};
    std::atomic<bool> hurrying_{false};  // handlers are told to stop
    std::atomic<bool> pausing_{false};  // or all turns are taken
    std::atomic<std::size_t> turns_{0};
    std::stop_source halt_;  // nobody waits for a limit any more
    doorbell free_;
    doorbell done_;
    std::atomic<std::size_t> loops_{0};
    std::atomic<std::uint64_t> completed_{0};
    std::atomic<std::uint64_t> failed_{0};
    std::atomic<std::size_t> stuck_{0};
    std::mutex mutex_;
    std::condition_variable stopped_;  // with `stopping_`: ends the pause of a thread that could take nothing
    std::vector<std::jthread> threads_;
};

}  // namespace lockstep::detail
