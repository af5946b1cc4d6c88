// What the dashboard knows of jobs: which there are, how many are in which state, how fast they are done; and what it does to them.
//
// Counts of all queues are read at most once a second, however many pages ask: who asks meanwhile gets the same answer, or the same failure. A job, or
// a list of jobs, is read when it is asked for. No lock is held while Redis is asked, so that who needs nothing from it does not wait for that.
// Calls that ask it may block, and may throw. From any thread.
#pragma once

#include "dashboard/job_names.hpp"

#include <lockstep/job_client.hpp>

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <exception>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace lockstep::dashboard {

// The jobs of one name and type.
struct job_queue {
    std::string name, type;
    job_counts counts{};
    std::optional<double> completed_per_s{}, failed_per_s{};  // nothing: it was not seen before
};

struct job_overview {
    std::vector<job_queue> queues;  // by name and type
    std::size_t left_out = 0;       // names or types beyond what is shown, or that can't be read
};

// How it stood at a time.
struct job_sample {
    std::int64_t at_ms = 0;
    std::int64_t waiting = 0, running = 0;
    std::optional<double> completed_per_s{}, failed_per_s{};
};

struct named_job {
    std::string name;
    job_info is;
};
struct job_page {
    std::vector<named_job> jobs;
    std::int64_t total = 0;  // in that state, in all
};

struct named_cron {
    std::string name;
    cron_info is;
};
struct cron_page {
    std::vector<named_cron> crons;  // those that are due next first
    std::size_t left_out = 0;       // names beyond what is shown, or whose schedules can't be read
};

// Of which jobs something is asked; empty: of all.
struct queue_filter {
    std::string name{}, type{};
};

enum class job_deed : std::uint8_t { retry, cancel };
// What is done to all jobs of a queue.
enum class queue_deed : std::uint8_t { pause, resume, retry, cancel };

class job_desk {
public:
    explicit job_desk(client& by);

    std::shared_ptr<job_overview const> look();
    // Some minutes, as far as somebody looked.
    std::vector<job_sample> samples(queue_filter const& which);
    // One queue after the other.
    job_page list(queue_filter const& which, job_state state, std::size_t from, std::size_t most);
    std::optional<job_info> find(std::string const& name, std::string_view id);
    flow_info flow_of(std::string const& name, std::string_view id, std::size_t most);
    cron_page crons(std::string const& name);
    // Written to the audit first. False: it was not in a state for that any more.
    bool act(job_deed deed, std::string const& name, job_info const& which, std::string const& by, std::string const& reason);
    // The same for a queue, whose name and type are given. How many jobs were changed; of `pause` and `resume` 0 if that was so already. `state`: of `retry` and
    // `cancel` only jobs in this one.
    std::int64_t act(queue_deed deed, queue_filter const& which, job_state state, std::string const& by, std::string const& reason);

private:
    using clock = std::chrono::steady_clock;
    using queue_key = std::pair<std::string, std::string>;

    // What ended, ever or in a time.
    struct ended {
        std::int64_t completed = 0, failed = 0;
    };

    // Of a queue, or of all.
    struct track {
        clock::time_point at{};
        std::optional<double> completed_per_s{}, failed_per_s{};
        std::deque<job_sample> samples{};
        std::map<queue_key, ended> before{};  // by queue
    };

    // Of reading the counts.
    struct attempt {
        bool is_over = false;
        clock::time_point over_at{};
        std::shared_ptr<job_overview const> seen{};
        std::exception_ptr failure{};
    };

    std::shared_ptr<job_overview> count();
    void follow(job_overview& all);
    static void follow(track& of, std::vector<job_queue const*> const& queues, clock::time_point at);

    client& client_;
    job_names names_;
    std::mutex mutex_;  // of what follows; never held while Redis is asked
    std::condition_variable is_over_;
    std::shared_ptr<attempt> last_;
    std::map<queue_key, track> tracks_;
    track all_;
};

// How many of these are in a state, as `job_desk::list` tells them.
std::int64_t count_in(job_counts const& counts, job_state state);

}  // namespace lockstep::dashboard
