// What the dashboard knows of jobs: which there are, how many are in which state, how fast they are done; and what it does to them.
//
// Names are found by SCAN in small steps, never for a request: at most every other second, and a twentieth of the time. Counts are read at most
// once a second, however many pages ask. Every call may block and may throw. From any thread.
#pragma once

#include <lockstep/job_client.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
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

// Of which jobs something is asked; empty: of all.
struct job_filter {
    std::string name{}, type{};
};

enum class job_deed : std::uint8_t { retry, cancel };

class job_desk {
public:
    explicit job_desk(client& by) : client_(by) {}

    std::shared_ptr<job_overview const> look();
    // Some minutes, as far as somebody looked.
    std::vector<job_sample> samples(job_filter const& which);
    // One queue after the other.
    job_page list(job_filter const& which, job_state state, std::size_t from, std::size_t most);
    std::optional<job_info> find(std::string const& name, std::string_view id);
    flow_info flow_of(std::string const& name, std::string_view id, std::size_t most);
    // Those that are due next first.
    std::vector<named_cron> crons(std::string const& name);
    // Written to the audit first. False: it was not in a state for that any more.
    bool act(job_deed deed, std::string const& name, job_info const& which, std::string const& by, std::string const& reason);

private:
    using clock = std::chrono::steady_clock;
    using queue_key = std::pair<std::string, std::string>;

    // Of a queue, or of all.
    struct track {
        job_counts last{};
        clock::time_point at{};
        std::optional<double> completed_per_s{}, failed_per_s{};
        std::deque<job_sample> samples{};
    };

    void find_names();
    void count();
    void follow(track& of, job_counts const& now, clock::time_point at);

    client& client_;
    std::mutex mutex_;  // who looks has it, so that the others wait for what that one sees
    std::vector<std::string> names_;
    std::size_t too_many_ = 0;
    clock::time_point names_at_{};
    clock::duration names_took_{};
    std::map<std::string, job_client> clients_;
    std::shared_ptr<job_overview const> seen_;
    clock::time_point seen_at_{};
    std::map<queue_key, track> tracks_;
    track all_;
};

// How many of these are in a state, as `job_desk::list` tells them.
std::int64_t count_in(job_counts const& counts, job_state state);

}  // namespace lockstep::dashboard
