#pragma once

// What is under `job_client` and `job_worker`: the same for bytes, compiled once. Nothing here is for users.

#include <lockstep/subscription.hpp>
#include <lockstep/client.hpp>
#include <lockstep/job_options.hpp>
#include <lockstep/task.hpp>

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace lockstep {
class job_flow;
}

namespace lockstep::detail {

class job_office;
class job_crew;
struct running_job;

class raw_jobs {
public:
    raw_jobs(client& by, std::string_view name);

    task<std::vector<scheduled>> async_schedule(std::string_view type, std::vector<std::string> payloads, job_options const& how);
    task<std::map<std::string, std::string, std::less<>>> async_add_flow(job_flow const& flow);
    /// Without a type no job is added when it ends.
    task<void> async_batch(std::string_view id, std::int64_t total, batch_options const& how, std::string_view then_type, std::string then_payload,
                           job_options const& then_how);
    task<batch_info> async_find_batch(std::string_view id);
    task<std::optional<batch_info>> async_wait_batch(std::string_view id, std::chrono::steady_clock::time_point until);
    task<bool> async_change(std::string_view what, std::string_view id, std::chrono::milliseconds delay, std::int32_t priority);
    /// What `retry_all` and `cancel_all` do; how many were changed.
    task<std::int64_t> async_change_all(std::string_view what, job_filter const& which, std::chrono::milliseconds delay, std::int32_t priority);
    task<std::optional<job_info>> async_find(std::string_view id);
    task<std::vector<job_info>> async_list(std::string_view type, job_state state, std::size_t from, std::size_t most);
    task<std::vector<job_info>> async_delayed(std::string_view type, std::size_t from, std::size_t most);
    task<std::vector<job_info>> async_tagged(std::string_view type, std::string_view tag, std::size_t from, std::size_t most);
    task<flow_info> async_flow_of(std::string_view id, std::size_t most);
    task<std::vector<std::string>> async_types();
    task<job_counts> async_counts(std::string_view type);
    task<bool> async_pause(std::string_view type, bool pauses);
    /// Nothing: it has not ended by then.
    task<std::optional<job_outcome>> async_wait(std::string_view id, std::chrono::steady_clock::time_point until);
    task<subscription> async_observe(std::string_view type, std::function<void(job_event const&)> handler);

    void require_blocking() const;
    std::string const& name() const noexcept;

private:
    std::shared_ptr<job_office> office_;
};

/// A job at work, for its handler.
class raw_job {
public:
    explicit raw_job(std::shared_ptr<running_job> what) noexcept : what_(std::move(what)) {}

    std::string_view payload() const noexcept;
    std::string const& id() const noexcept;
    std::int32_t attempt() const noexcept;
    std::int32_t deliveries() const noexcept;
    std::chrono::system_clock::time_point due() const noexcept;
    bool is_valid() const noexcept;
    std::stop_token stop_token() const noexcept;
    std::vector<std::string> const& parents() const noexcept;
    /// Nothing: that parent did not complete, or is forgotten.
    task<std::optional<std::string>> async_parent_result(std::string_view id);
    void require_blocking() const;
    void progress(std::string text);
    task<void> async_progress(std::string text);

private:
    std::shared_ptr<running_job> what_;
};

class raw_job_worker {
public:
    using on_thread = std::function<std::string(raw_job&)>;
    using as_task = std::function<task<std::string>(raw_job&)>;

    raw_job_worker(client& by, std::string_view name, job_worker_options const& how);
    raw_job_worker(raw_job_worker&&) noexcept = default;
    raw_job_worker& operator=(raw_job_worker&& other) noexcept;
    ~raw_job_worker();

    void handle(std::string_view type, handle_options const& how, on_thread handler);
    void handle(std::string_view type, handle_options const& how, as_task handler);
    void start();
    void request_stop() noexcept;
    void stop(std::stop_token token);
    task<void> async_stop();
    bool stop_within(std::chrono::milliseconds limit, std::stop_token token);
    task<bool> async_stop_within(std::chrono::milliseconds limit);
    std::uint64_t completed() const noexcept;
    std::uint64_t failed() const noexcept;
    std::size_t stuck() const noexcept;

private:
    std::shared_ptr<job_crew> crew_;
};

}  // namespace lockstep::detail
