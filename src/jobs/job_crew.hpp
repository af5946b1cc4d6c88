#pragma once

// Handlers at work: for each type loops that take a job, run it, and take the next. What became of a job leaves together with the wish for the next.
//
// Loops of one type are as many as may run at once of it. Where the types together could run more than the worker may, a loop that has a job
// waits for its turn, and while all turns are taken nobody asks for more.

#include "jobs/cron_scheduler.hpp"
#include "jobs/job_office.hpp"
#include "jobs/job_text.hpp"
#include "messaging/doorbell.hpp"
#include "messaging/raw_queue_parts.hpp"

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
    std::optional<circuit_permit> permit;  ///< of its type's breaker
    decltype(handle_options::backoff) backoff = nullptr;
};

class job_crew : public std::enable_shared_from_this<job_crew> {
public:
    job_crew(client& by, std::string_view name, job_worker_options const& how);

    void add(std::string_view type, handle_options const& how, raw_job_worker::on_thread on_thread, raw_job_worker::as_task as_task);
    void start_all();

    // From any thread:
    void request_stop() noexcept;
    static task<void> stop(std::shared_ptr<job_crew> self);
    /// When this is the last that is asked of it.
    void finish() noexcept;
    std::uint64_t completed() const noexcept { return completed_; }
    std::uint64_t failed() const noexcept { return failed_; }
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
        std::atomic<std::chrono::steady_clock::duration> typical{std::chrono::milliseconds{10}};  // how long its handler takes
        void learn(std::chrono::steady_clock::duration took) noexcept;
        std::mutex mutex;
        std::map<std::string, running, std::less<>> at_work;  // by the id in the queue
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
    /// Waits until it may be begun by its type's limit and breaker; it is leased meanwhile.
    static task<void> admit(std::shared_ptr<job_crew> self, branch& of, running one);
    static task<void> listen(std::shared_ptr<job_crew> self, branch& of);
    static task<void> watch_time(std::shared_ptr<job_crew> self, running one);
    running begin(branch& of, std::shared_ptr<held_item> item);
    void forget(branch& of, running_job& one) noexcept;
    void end(branch& of, running_job& one) noexcept;
    void returned(running_job& one, std::string result) noexcept;
    void threw(running_job& one, std::exception_ptr why) noexcept;
    bool missed(running_job& one, std::string reason, bool is_final) noexcept;
    void enter_turn() noexcept;
    void leave_turn() noexcept;
    void one_less() noexcept;
    void report(std::exception_ptr why) const noexcept;

    std::shared_ptr<job_office> office_;
    job_worker_options how_;
    std::string words_;
    std::shared_ptr<cron_scheduler> crons_;  // null: others do that
    std::vector<std::unique_ptr<branch>> branches_;
    bool started_ = false;
    bool is_shared_ = false;  // the types together could run more than may
    std::atomic<bool> stopping_{false};
    std::atomic<bool> pausing_{false};  // or all turns are taken
    std::atomic<std::size_t> turns_{0};
    std::stop_source halt_;  // nobody waits for a limit any more
    doorbell free_;
    doorbell done_;
    std::atomic<std::size_t> loops_{0};
    std::atomic<std::uint64_t> completed_{0};
    std::atomic<std::uint64_t> failed_{0};
    std::mutex mutex_;
    std::vector<std::jthread> threads_;
};

}  // namespace lockstep::detail
