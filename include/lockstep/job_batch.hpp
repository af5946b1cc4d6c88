#pragma once

/// `job_batch`: waits until all jobs of a batch have ended; made by `job_client::batch`.
///
///     auto batch = jobs.batch("import-7", 1000);
///     jobs.schedule_many<std::string>("import", files, {.batch = "import-7"});      // before or after, here or elsewhere
///     if (auto end = batch.wait(10min)) std::cout << end->completed << " of " << end->total << '\n';
///
/// A job counts when it has ended: it completed, failed for good, or was cancelled. One that is requeued is awaited again, unless the batch has ended.
/// Nobody polls. A batch that has ended is forgotten after `batch_options::keep`; one of which no job is left, too.
///
/// Failure: nothing comes back when the time is over; everything else is thrown, as in `job_client`.
/// Threads: everything may be called from any thread; the object may be destroyed while its tasks go on.

#include <lockstep/detail/raw_jobs.hpp>
#include <lockstep/detail/time_after.hpp>

#include <chrono>
#include <optional>
#include <stop_token>
#include <string>
#include <utility>

namespace lockstep {

class job_batch {
public:
    std::string const& id() const noexcept { return id_; }

    /// How it ended, as soon as it has. Nothing: not in this time.
    std::optional<batch_info> wait(std::chrono::milliseconds time, std::stop_token token = {}) {
        raw_.require_blocking();
        return sync_wait(async_wait(time), std::move(token));
    }
    task<std::optional<batch_info>> async_wait(std::chrono::milliseconds time) { return raw_.async_wait_batch(id_, detail::time_after(time)); }

    /// How far it is.
    batch_info info(std::stop_token token = {}) {
        raw_.require_blocking();
        return sync_wait(async_info(), std::move(token));
    }
    task<batch_info> async_info() { return raw_.async_find_batch(id_); }

    job_batch(detail::raw_jobs raw, std::string id) : raw_(std::move(raw)), id_(std::move(id)) {}

private:
    detail::raw_jobs raw_;
    std::string id_;
};

}  // namespace lockstep
