#pragma once

// What the facts mean: each rule looks at one thing and says in plain words what was seen and what to change. Without sockets, so every
// rule is tested with texts that no test server could be brought to say.
//
// To add one: a function in state_rules.cpp (what decides whether locks work now; it needs INFO only) or config_rules.cpp (what somebody
// should change before it goes wrong; it needs CONFIG GET), its call in the list at the end of that file, a row in docs/health.md.

#include "observe/facts.hpp"

#include <lockstep/health.hpp>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace lockstep::observe {

using findings = std::vector<finding>;

inline finding well(std::string_view check, std::string found) {
    return {.check = std::string{check}, .state = health_state::healthy, .found = std::move(found), .advice = {}};
}
inline finding degraded(std::string_view check, std::string found, std::string advice) {
    return {.check = std::string{check},
            .state = health_state::degraded,
            .found = std::move(found),
            .advice = std::move(advice)};
}
inline finding unhealthy(std::string_view check, std::string found, std::string advice) {
    return {.check = std::string{check},
            .state = health_state::unhealthy,
            .found = std::move(found),
            .advice = std::move(advice)};
}

/// Version, loading, eviction, memory, persistence, replicas.
void judge_state(node_facts const& of, client_facts const& by, findings& to);
/// Durability, min_replicas, output_buffers, clients, idle_timeout, tcp_keepalive, exposure, script_time, slow_log, latency, clock,
/// database, replica_writes, cluster_coverage, failover_time.
void judge_config(node_facts const& of, client_facts const& by, findings& to);

/// CLUSTER INFO and CLUSTER NODES, of one node.
finding judge_cluster(fields const& info, std::vector<cluster_member> const& members);

/// What one Sentinel said; `problem`: why it said nothing.
struct sentinel_view {
    std::string address;
    std::string problem;
    std::string quorum_problem;  ///< what CKQUORUM complains of
    fields master;               ///< SENTINEL MASTER
    std::vector<fields> replicas;
};
/// Is a lease long enough to outlive a failover? `setting`: what says how soon a lost master is noticed.
finding judge_failover_time(std::chrono::milliseconds noticed_after, std::chrono::milliseconds ttl,
                            std::string_view setting);
void judge_sentinels(std::vector<sentinel_view> const& views, client_facts const& by, bool thorough, findings& to);

/// What to do when the server can't be used at all, as far as the words tell.
std::string advice_for(errc reason, std::string_view problem);
/// The finding that a refused log-in stands for besides `connect`: eviction, version or rights; empty: none.
std::string_view check_behind(errc reason, std::string_view problem) noexcept;

/// "redis 7.0.15"; empty: not known.
std::string server_text(fields const& info, reply_view hello);

}  // namespace lockstep::observe
