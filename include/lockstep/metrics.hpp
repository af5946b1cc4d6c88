#pragma once

/// Metrics for Prometheus (prometheus-cpp). Link `lockstep::metrics` in CMake.
///
///     auto metrics = std::make_shared<lockstep::metrics>(client);
///     exposer.RegisterCollectable(metrics);
///
/// What this client did: acquisitions, waits, time-outs, losses, hold and wait times as histograms, for each kind (not for each name: names
/// may be many), what it did with queues and streams, its connections and requests. With `fleet` also what a monitor sees of all: objects, holds,
/// stale holds and waiters for each kind, clients, items of queues, entries of streams and how far their groups are behind, read from the
/// server at each scrape. docs/metrics.md has the table of them.
///
/// Failure: a scrape does not throw. A server that does not answer in time is `lockstep_fleet_up 0`, and what this client counted is
/// there all the same. With `client_options::monitoring` off nothing is counted for the kinds.
/// Threads: any but an I/O thread of Lockstep's. The client must outlive it.

#include <lockstep/client.hpp>
#include <lockstep/statistics.hpp>

#include <prometheus/collectable.h>
#include <prometheus/metric_family.h>

#include <chrono>
#include <mutex>
#include <vector>

namespace lockstep {

struct metrics_options {
    bool fleet = false;
    bool names = false;  ///< of the fleet, each queue, stream and group for itself: for people who have not too many of them
    std::chrono::milliseconds within{3'000};  ///< for what is read from the server
};

class metrics final : public prometheus::Collectable {
public:
    explicit metrics(client& of, metrics_options options = {}) noexcept : client_(&of), options_(options) {}
    std::vector<prometheus::MetricFamily> Collect() const override;

private:
    client* client_;
    metrics_options options_;
    mutable std::mutex mutex_;
    mutable lockstep::statistics most_{};  // a connection that is gone takes its counts along, but a counter must not fall
};

}  // namespace lockstep
