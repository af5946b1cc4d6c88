#pragma once

/// Metrics for Prometheus (prometheus-cpp). Link `lockstep::metrics` in CMake.
///
///     auto metrics = std::make_shared<lockstep::metrics>(client);
///     exposer.RegisterCollectable(metrics);
///
/// What this client did: acquisitions, waits, time-outs, losses, hold and wait times as histograms, for each kind (not for each name: names
/// may be many), its connections and requests. With `fleet` also what a monitor sees of all: holds, waiters, stale holds and clients for
/// each kind, read from the server at each scrape.
///
/// Threads: any. The client must outlive it.

#include <lockstep/client.hpp>

#include <prometheus/collectable.h>
#include <prometheus/metric_family.h>

#include <vector>

namespace lockstep {

struct metrics_options {
    bool fleet = false;
};

class metrics final : public prometheus::Collectable {
public:
    explicit metrics(client& of, metrics_options options = {}) noexcept : client_(&of), options_(options) {}
    std::vector<prometheus::MetricFamily> Collect() const override;

private:
    client* client_;
    metrics_options options_;
};

}  // namespace lockstep
