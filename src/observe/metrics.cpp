// A library of its own, lockstep::metrics: who does not use it does not need prometheus-cpp.
#include <lockstep/metrics.hpp>

#include "base/utf8.hpp"
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

struct queue_counter {
    char const* name;
    detail::queue_tally::number detail::queue_tally::*which;
    char const* help;
};

constexpr queue_counter queue_counters[] = {
    {"lockstep_queue_enqueued_total", &detail::queue_tally::enqueued, "Items that were enqueued."},
    {"lockstep_queue_taken_total", &detail::queue_tally::taken, "Items that were taken."},
    {"lockstep_queue_acknowledged_total", &detail::queue_tally::acknowledged, "Items that were acknowledged."},
    {"lockstep_queue_returned_total", &detail::queue_tally::returned,
     "Items that were given back: by nack, by a handler that threw, or dropped."},
    {"lockstep_queue_lost_total", &detail::queue_tally::lost, "Items whose lease was lost before they were done."},
    {"lockstep_queue_handled_total", &detail::queue_tally::handled, "Times that a handler of consume returned."},
    {"lockstep_queue_failed_total", &detail::queue_tally::failed, "Times that a handler of consume threw."},
    {"lockstep_queue_dropped_total", &detail::queue_tally::dropped, "Dead letters that this client's calls dropped: too old, or too many."},
};

struct job_counter {
    char const* name;
    detail::job_tally::number detail::job_tally::*which;
    char const* help;
};

constexpr job_counter job_counters[] = {
    {"lockstep_jobs_scheduled_total", &detail::job_tally::scheduled, "Jobs that were scheduled."},
    {"lockstep_jobs_begun_total", &detail::job_tally::begun, "Times that a job's handler was called."},
    {"lockstep_jobs_completed_total", &detail::job_tally::completed, "Jobs that were completed."},
    {"lockstep_jobs_retried_total", &detail::job_tally::retried, "Tries that failed, of jobs that are tried again."},
    {"lockstep_jobs_failed_total", &detail::job_tally::failed, "Jobs that failed for good."},
    {"lockstep_jobs_lost_total", &detail::job_tally::lost, "Tries that ended when their lease had been lost."},
    {"lockstep_jobs_dropped_total", &detail::job_tally::dropped,
     "Jobs that had ended and were forgotten before their retention was over, because there were too many, by calls of this process."},
    {"lockstep_jobs_postponed_total", &detail::job_tally::postponed,
     "Times that a job was given back without a failure: postponed by its handler, busy, or its worker ended."},
    {"lockstep_jobs_stuck_total", &detail::job_tally::stuck, "Handlers that ran on after their job's time was over."},
};

struct consumer_counter {
    char const* name;
    std::uint64_t consumer_statistics::*which;
    char const* help;
};

constexpr consumer_counter consumer_counters[] = {
    {"lockstep_consumer_received_total", &consumer_statistics::received,
     "Entries of streams that consumers got, those taken over included."},
    {"lockstep_consumer_acknowledged_total", &consumer_statistics::acknowledged,
     "Entries that were handled and acknowledged."},
    {"lockstep_consumer_failed_total", &consumer_statistics::failed, "Times that a consumer's handler threw."},
    {"lockstep_consumer_retried_total", &consumer_statistics::retried, "Entries that were tried again."},
    {"lockstep_consumer_returned_total", &consumer_statistics::returned, "Entries that were given back to their group."},
    {"lockstep_consumer_postponed_total", &consumer_statistics::postponed, "Times that a consumer's handler postponed its entry."},
    {"lockstep_consumer_dead_total", &consumer_statistics::dead, "Entries that were moved to the dead letters."},
    {"lockstep_consumer_dead_dropped_total", &consumer_statistics::dead_dropped, "Dead letters of streams that were dropped, by age or number."},
    {"lockstep_consumer_missed_total", &consumer_statistics::missed, "Entries that were trimmed away before they were delivered to the group."},
    {"lockstep_consumer_recovered_total", &consumer_statistics::recovered,
     "Entries that were taken over from other consumers, or found again."},
    {"lockstep_consumer_interruptions_total", &consumer_statistics::interruptions,
     "Times that a consumer's connection or group had to be made anew."},
};

void add_messages(families& to, detail::message_counts const& counts) {
    for (auto const& one : queue_counters) {
        auto& made = family(to, one.name, MetricType::Counter, one.help);
        value(made, static_cast<double>(counts.queues.*one.which), "queue");
        value(made, static_cast<double>(counts.lanes.*one.which), "lanes");
    }
    for (auto const& one : job_counters) value(family(to, one.name, MetricType::Counter, one.help), static_cast<double>(counts.jobs.*one.which));
    auto const consumers = counts.consumers();
    for (auto const& one : consumer_counters)
        value(family(to, one.name, MetricType::Counter, one.help), static_cast<double>(consumers.*one.which));
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

using labels = std::vector<ClientMetric::Label>;

/// Sums by label, in the order of their labels. A name that is no UTF-8 would make the whole page unreadable.
class sums {
public:
    explicit sums(bool names) noexcept : names_(names) {}

    void add(labels of, std::string const& name, std::string const& group, std::int64_t number) {
        if (names_) of.push_back({"name", base::as_utf8(name)});
        if (names_ && !group.empty()) of.push_back({"group", base::as_utf8(group)});
        all_[std::move(of)] += number;
    }
    void give(families& to, char const* name, char const* help) const {
        auto& made = family(to, name, MetricType::Gauge, help);
        for (auto const& [of, number] : all_) {
            auto& one = made.metric.emplace_back();
            one.label = of;
            one.gauge.value = static_cast<double>(number);
        }
    }

private:
    bool names_;
    std::map<labels, std::int64_t> all_;
};

void add_backlogs(families& to, snapshot const& now, bool names) {
    sums items{names};
    sums entries{names};
    sums lag{names};
    sums pending{names};
    sums dead{names};
    if (!names) {  // none is a sum too
        for (auto const* const kind : {"queue", "lanes"})
            for (auto const* const state : {"ready", "delayed", "held", "dead"}) items.add({{"kind", kind}, {"state", state}}, {}, {}, 0);
        for (auto* const one : {&entries, &lag, &pending, &dead}) one->add({}, {}, {}, 0);
    }
    for (auto const& one : now.objects) {
        if (one.kind == "queue" || one.kind == "lanes") {
            auto const add = [&](char const* state, std::int64_t number) { items.add({{"kind", one.kind}, {"state", state}}, one.name, {}, number); };
            add("ready", one.count - one.delayed);
            add("delayed", one.delayed);
            add("held", one.taken);
            add("dead", one.dead);
        }
        if (one.kind != "stream") continue;
        entries.add({}, one.name, {}, one.count);
        dead.add({}, one.name, {}, one.dead);
        for (auto const& group : one.groups) {
            pending.add({}, one.name, group.name, group.pending);
            if (group.lag) lag.add({}, one.name, group.name, *group.lag);
        }
    }
    // Without a label: whoever may write could make as many series as they like.
    value(family(to, "lockstep_fleet_unreadable_keys", MetricType::Gauge, "Keys that could not be read: somebody else wrote them, or they are too large."),
          static_cast<double>(now.notes.size()));
    items.give(to, "lockstep_fleet_queue_items", "Items of queues, by state: ready, delayed, held, dead.");
    entries.give(to, "lockstep_fleet_stream_entries", "Entries of streams.");
    dead.give(to, "lockstep_fleet_stream_dead", "Dead letters of streams.");
    lag.give(to, "lockstep_fleet_stream_lag", "Entries that were not delivered to a group yet, where the server knows.");
    pending.give(to, "lockstep_fleet_stream_pending", "Entries that were delivered to a group and not acknowledged.");
}

}  // namespace

families metrics::Collect() const {
    families made;
    made.reserve(64);  // references into it are held while it grows
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
        if (auto const messages = observe::own_messages(*client_)) add_messages(made, *messages);
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
    if (all) {
        add_fleet(made, *all);
        add_backlogs(made, *all, options_.names);
    }
    return made;
}

}  // namespace lockstep
