#pragma once

/// Is it well? `check_health` tries what locks need and says what does not work; `diagnose` looks at the deployment as a whole and
/// says what to change.
///
///     auto report = lockstep::check_health(client);
///     if (report.state != lockstep::health_state::healthy) alert(report.text());
///
/// Neither throws because the server is down: that is a result. Both are bounded by `within`.

#include <lockstep/client.hpp>
#include <lockstep/task.hpp>

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep {

enum class health_state : std::uint8_t { healthy, degraded, unhealthy };
std::string_view to_string(health_state state) noexcept;

/// One thing that was looked at.
struct finding {
    std::string check;          ///< short and stable, for machines: connect, probe_lock, push, replicas, eviction ...
    health_state state{};
    std::string found;          ///< what was seen
    std::string advice;         ///< what to change; empty when it is well
    std::chrono::microseconds took{0};
};

struct health_report {
    health_state state{};       ///< the worst of the findings
    std::vector<finding> findings;
    std::string server;         ///< "redis 7.0.15", as far as it is known
    std::string text() const;   ///< for people, a line each
};

struct health_options {
    std::chrono::milliseconds within{5'000};
    std::chrono::milliseconds slow{100};  ///< a probe that takes longer is degraded
    bool probe_lock = true;               ///< false: nothing is written, so locks are not tried
};

/// Takes and gives back a probe lock, sends itself a push, and looks at what decides whether that goes on working: replicas, rights,
/// eviction, memory, persistence errors. Some milliseconds; for a probe every few seconds.
health_report check_health(client& by, health_options options = {});
task<health_report> async_check_health(client& by, health_options options = {});

/// All of that, and the configuration: persistence, replication and min-replicas, output buffer limits, versions, ACL rights of this user,
/// clock against this machine's, slow log, latency, Cluster slots. For people who set it up.
health_report diagnose(client& by, health_options options = {});
task<health_report> async_diagnose(client& by, health_options options = {});

}  // namespace lockstep
