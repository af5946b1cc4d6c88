#pragma once

// What one client did with queues, jobs and streams since it was made: for metrics. Nothing depends on it.

#include <lockstep/consumer.hpp>

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>

namespace lockstep::detail {

class core;

/// Of all queues, or of all work-stealing queues.
struct queue_tally {
    using number = std::atomic<std::uint64_t>;
    number enqueued{0};
    number taken{0};
    number acknowledged{0};
    number returned{0};
    number lost{0};
    number handled{0};
    number failed{0};
    number dropped{0};

    static void count(number& which, std::uint64_t more = 1) noexcept { which.fetch_add(more, std::memory_order_relaxed); }
};

/// Of all jobs.
struct job_tally {
    using number = queue_tally::number;
    number scheduled{0};
    number begun{0};
    number completed{0};
    number retried{0};
    number failed{0};
    number lost{0};
    number dropped{0};
    number postponed{0};
    number stuck{0};
};

class message_counts {
public:
    /// This client's, from any thread. Of a closed one, on which nothing is done any more: one that nobody reads.
    static std::shared_ptr<message_counts> of(core& owner);

    queue_tally queues;
    queue_tally lanes;
    job_tally jobs;

    void count(std::uint64_t consumer_statistics::*which, std::uint64_t more) {
        std::lock_guard const guard{mutex_};
        consumers_.*which += more;
    }
    /// Of all consumers, also of those that are gone; what they do now is not in it.
    consumer_statistics consumers() const {
        std::lock_guard const guard{mutex_};
        return consumers_;
    }

private:
    mutable std::mutex mutex_;
    consumer_statistics consumers_;
};

}  // namespace lockstep::detail
