// A library of its own, lockstep::metrics: who does not use it does not need prometheus-cpp.
#include <lockstep/metrics.hpp>

#include "observe/own_counts.hpp"

#include <lockstep/error.hpp>
#include <lockstep/monitor.hpp>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <utility>

namespace lockstep {
namespace {

using prometheus::ClientMetric;
using prometheus::MetricFamily;
using prometheus::MetricType;
using families = std::vector<MetricFamily>;

MetricFamily& family(families& to, char const* name, MetricType type, char const* help) {
    auto& made = to.emplace_back();
    made.name = name;
    made.help = help;
    made.type = type;
    return made;
}

ClientMetric& add(MetricFamily& to, std::string const& kind) {
    auto& made = to.metric.emplace_back();
    if (!kind.empty()) made.label.push_back({"kind", kind});
    return made;
}

void value(MetricFamily& to, double number, std::string const& kind = {}) {
    auto& made = add(to, kind);
    (to.type == MetricType::Counter ? made.counter.value : made.gauge.value) = number;
}

/// Each bound is four times the one before and one of our buckets' own, so that nothing has to be guessed: 64 µs to an hour.
void times(MetricFamily& to, base::histogram const& from, std::string const& kind) {
    auto& made = add(to, kind).histogram;
    made.sample_count = from.count;
    made.sample_sum = static_cast<double>(from.sum_us) / 1e6;
    auto next = from.buckets.begin();
    std::uint64_t below = 0;
    for (unsigned power = 6; power <= 32; power += 2) {
        auto const bound = std::uint64_t{1} << power;
        for (; next != from.buckets.end() && base::histogram::least_of(next->index) < bound; ++next)
            below += next->count;
        made.bucket.push_back({below, static_cast<double>(bound) / 1e6});
    }
    made.bucket.push_back({from.count, std::numeric_limits<double>::infinity()});
}

struct connection_counter {
    char const* name;
    std::uint64_t statistics::*which;
    char const* help;
};

constexpr connection_counter connection_counters[] = {
    {"lockstep_requests_total", &statistics::requests, "Requests sent to the server, repeats included."},
    {"lockstep_replies_total", &statistics::replies, "Replies received."},
    {"lockstep_writes_total", &statistics::batches,
     "Writes to a connection; requests for each write show how well they are pipelined."},
    {"lockstep_sent_bytes_total", &statistics::bytes_sent, "Bytes sent to the server."},
    {"lockstep_received_bytes_total", &statistics::bytes_received, "Bytes received from the server."},
    {"lockstep_pushes_total", &statistics::pushes, "Messages that the server sent on its own, wake-ups among them."},
    {"lockstep_connects_total", &statistics::connects, "Successful log-ins."},
    {"lockstep_connections_lost_total", &statistics::reconnects, "Connections that were lost after they had worked."},
};

void add_kinds(families& to, std::vector<observe::kind_counts> const& all) {
    auto const counter = [&](char const* name, std::uint64_t observe::kind_counts::*which, char const* help) {
        auto& made = family(to, name, MetricType::Counter, help);
        for (auto const& one : all) value(made, static_cast<double>(one.*which), one.kind);
    };
    counter("lockstep_acquisitions_total", &observe::kind_counts::acquisitions, "What was acquired.");
    counter("lockstep_waits_total", &observe::kind_counts::waits, "Acquisitions that were queued first.");
    counter("lockstep_timeouts_total", &observe::kind_counts::timeouts,
            "Attempts that were given up when their time was over.");
    counter("lockstep_losses_total", &observe::kind_counts::losses, "Leases that were lost before they were released.");
    auto& held = family(to, "lockstep_hold_seconds", MetricType::Histogram, "How long leases were held.");
    for (auto const& one : all) times(held, one.held, one.kind);
    auto& waited =
        family(to, "lockstep_wait_seconds", MetricType::Histogram, "How long it took to acquire, waiting included.");
    for (auto const& one : all) times(waited, one.waited, one.kind);
}

struct of_a_kind {
    std::size_t objects = 0, holds = 0, stale = 0, waiters = 0;
};

void add_fleet(families& to, snapshot const& now) {
    std::map<std::string, of_a_kind> kinds;
    for (auto const* const kind :
         {"lock", "recursive", "shared", "semaphore", "event", "election", "broadcast", "latch", "barrier"})
        kinds[kind];
    for (auto const& one : now.objects) {
        auto& sum = kinds[one.kind];
        ++sum.objects;
        sum.waiters += one.queue;
    }
    for (auto const& one : now.holds) {
        auto& sum = kinds[one.kind];
        sum.holds += one.offered ? 0 : 1;
        sum.stale += one.stale ? 1 : 0;
    }
    auto const gauge = [&](char const* name, std::size_t of_a_kind::*which, char const* help) {
        auto& made = family(to, name, MetricType::Gauge, help);
        for (auto const& [kind, sum] : kinds) value(made, static_cast<double>(sum.*which), kind);
    };
    gauge("lockstep_fleet_objects", &of_a_kind::objects, "Names that the server knows.");
    gauge("lockstep_fleet_holds", &of_a_kind::holds, "Holds of all clients.");
    gauge("lockstep_fleet_stale_holds", &of_a_kind::stale, "Holds whose client is gone and whose time is not over.");
    gauge("lockstep_fleet_waiters", &of_a_kind::waiters,
          "Places in the queues of all names, and clients that wait where there is no queue.");
    auto& clients = family(to, "lockstep_fleet_clients", MetricType::Gauge, "Clients that said who they are.");
    value(clients, static_cast<double>(now.clients.size()));
}

}  // namespace

families metrics::Collect() const {
    families made;
    made.reserve(32);  // references into it are held while it grows
    lockstep::statistics now;
    try {
        now = client_->statistics();
        std::lock_guard const guard{mutex_};
        for (auto const& one : connection_counters)
            most_.*one.which = now.*one.which = std::max(most_.*one.which, now.*one.which);
    } catch (error const&) {
        return made;  // in a child of fork()
    }
    for (auto const& one : connection_counters)
        value(family(made, one.name, MetricType::Counter, one.help), static_cast<double>(now.*one.which));
    value(family(made, "lockstep_pending_requests", MetricType::Gauge, "Requests that wait or are under way."),
          static_cast<double>(now.pending));
    value(family(made, "lockstep_connections", MetricType::Gauge, "Open connections."),
          static_cast<double>(now.connections));
    try {
        if (auto const counts = observe::own_counts(*client_); !counts.empty()) add_kinds(made, counts);
    } catch (error const&) {
        // closed meanwhile
    }
    if (!options_.fleet) return made;
    std::optional<snapshot> all;
    auto const begin = std::chrono::steady_clock::now();
    try {
        all = sync_wait(observe::look_at_all(*client_, options_.within));
    } catch (error const&) {
        // No server: that is what lockstep_fleet_up says.
    }
    std::chrono::duration<double> const took = std::chrono::steady_clock::now() - begin;
    value(family(made, "lockstep_fleet_up", MetricType::Gauge, "1: the server could be asked what all clients hold."),
          all ? 1 : 0);
    value(family(made, "lockstep_fleet_scrape_seconds", MetricType::Gauge, "How long asking the server took."),
          took.count());
    if (all) add_fleet(made, *all);
    return made;
}

}  // namespace lockstep
