#include "observe/rules.hpp"

#include "scripts/all.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string>

namespace lockstep::observe {
namespace {

using std::chrono::milliseconds;

constexpr std::string_view keep_it = "; CONFIG REWRITE keeps it over a restart";

void judge_durability(node_facts const& of, findings& to) {
    bool const logs = of.config.text("appendonly") == "yes";
    auto const sync = of.config.text("appendfsync");
    auto const snapshots = of.config.text("save");
    auto const advice = fmt::format(
        "CONFIG SET appendonly yes{}. With appendfsync everysec a crash loses up to two seconds, with always nothing",
        keep_it);
    if (logs && sync == "no") {
        to.push_back(degraded("durability",
                              "the append-only file is written when the kernel likes (appendfsync no): a crash of the "
                              "machine loses up to half a minute of locks",
                              fmt::format("CONFIG SET appendfsync everysec{}", keep_it)));
    } else if (logs) {
        to.push_back(well(
            "durability",
            sync == "always"
                ? "every lock is on disk before it is granted (appendonly, appendfsync always)"
                : "locks are on disk within a second or two (appendonly, appendfsync everysec); `always` loses none"));
    } else if (snapshots.empty()) {
        to.push_back(degraded("durability",
                              "nothing is written to disk: when the server restarts all locks are free at once, while "
                              "those who held them go on until "
                              "their next renewal, a third of the ttl later",
                              advice));
    } else {
        to.push_back(degraded(
            "durability",
            fmt::format(
                "only snapshots are written (save {}): a restart after a crash brings back the locks of the last one",
                snapshots),
            advice));
    }
}

void judge_min_replicas(node_facts const& of, findings& to) {
    auto const replicas = of.info.number_or("connected_slaves", 0);
    auto const wanted = of.config.number_or("min-replicas-to-write", 0);
    auto const lag = of.config.number_or("min-replicas-max-lag", 10);
    if (wanted > 0 && lag > 0) {
        to.push_back(
            well("min_replicas",
                 fmt::format("a master without {} replica(s) heard of in the last {} s refuses writes", wanted, lag)));
    } else if (replicas > 0) {
        to.push_back(degraded("min_replicas",
                              "a master that is cut off or paused while a replica takes over goes on granting locks "
                              "that the other one does not know of",
                              fmt::format("CONFIG SET min-replicas-to-write 1 and CONFIG SET min-replicas-max-lag 10, "
                                          "on the replicas too{}. Then a master "
                                          "without any replica refuses writes, so have two",
                                          keep_it)));
    }
}

void judge_buffers(node_facts const& of, findings& to) {
    // "normal 0 0 0 slave 268435456 67108864 60 pubsub 33554432 8388608 60"
    constexpr std::int64_t enough = 8 * 1024 * 1024;
    auto const words = words_of(of.config.text("client-output-buffer-limit"));
    std::string small;
    std::string advice;
    for (std::size_t i = 0; i + 3 < words.size(); i += 4) {
        fields limit;
        limit.set("hard", words[i + 1]);
        auto const hard = limit.number_or("hard", 0);
        if ((words[i] != "normal" && words[i] != "pubsub") || hard == 0 || hard >= enough) continue;
        small += fmt::format("{}{} at {}", small.empty() ? "" : ", ", words[i], bytes_text(hard));
        advice += fmt::format("{}CONFIG SET client-output-buffer-limit \"{}\"", advice.empty() ? "" : " and ",
                              words[i] == "normal" ? "normal 0 0 0" : "pubsub 33554432 8388608 60");
    }
    if (words.empty()) return;
    if (small.empty()) {
        to.push_back(
            well("output_buffers", "large enough for a client with many waiters (client-output-buffer-limit)"));
    } else {
        to.push_back(degraded("output_buffers",
                              fmt::format("the server cuts connections with much to read: {}. Wake-ups and replies "
                                          "share one, so that would interrupt all locks of a client",
                                          small),
                              advice + std::string{keep_it}));
    }
}

void judge_clients(node_facts const& of, findings& to) {
    auto const now = of.info.number("connected_clients");
    auto const most = of.config.number("maxclients").value_or(of.info.number_or("maxclients", 0));
    if (!now || most == 0) return;
    auto const rejected = of.info.number_or("rejected_connections", 0);
    auto found = fmt::format("{} of {} connections (maxclients) in use, {} refused so far", *now, most, rejected);
    if (*now * 10 >= most * 8) {
        to.push_back(
            degraded("clients", std::move(found),
                     fmt::format("CONFIG SET maxclients {}{}; CLIENT LIST says who they are", most * 2, keep_it)));
    } else {
        to.push_back(well("clients", std::move(found)));
    }
}

void judge_timeouts(node_facts const& of, client_facts const& by, findings& to) {
    if (auto const seconds = of.config.number("timeout")) {
        auto const idle = std::chrono::duration_cast<milliseconds>(std::chrono::seconds{*seconds});
        if (*seconds == 0 || (by.keepalive_interval.count() > 0 && idle > 2 * by.keepalive_interval)) {
            to.push_back(well(
                "idle_timeout",
                *seconds == 0
                    ? "the server does not cut idle connections (timeout 0)"
                    : fmt::format(
                          "the server cuts connections that are idle for {} s; the client's keep-alive comes first",
                          *seconds)));
        } else {
            to.push_back(
                degraded("idle_timeout",
                         fmt::format("the server cuts connections that are idle for {} s, before the client's "
                                     "keep-alive (every {} ms) can prevent it",
                                     *seconds, by.keepalive_interval.count()),
                         fmt::format("CONFIG SET timeout 0{}; or a shorter keepalive_interval in the client's options",
                                     keep_it)));
        }
    }
    if (auto const seconds = of.config.number("tcp-keepalive")) {
        if (*seconds > 0 && *seconds <= 600) {
            to.push_back(
                well("tcp_keepalive",
                     fmt::format("connections of machines that vanished are noticed (tcp-keepalive {})", *seconds)));
        } else {
            to.push_back(degraded("tcp_keepalive",
                                  fmt::format("the server keeps connections of machines that vanished (tcp-keepalive "
                                              "{}), and counts them as if somebody listened",
                                              *seconds),
                                  fmt::format("CONFIG SET tcp-keepalive 300{}", keep_it)));
        }
    }
}

bool is_loopback(std::string_view address) {
    if (address.starts_with('-')) address.remove_prefix(1);  // optional: it need not exist
    return address.starts_with("127.") || address == "::1" || address == "localhost";
}

void judge_exposure(node_facts const& of, findings& to) {
    if (!of.config.has("bind") || !of.config.has("port")) return;
    auto const addresses = words_of(of.config.text("bind"));
    auto const plain_port = of.config.number_or("port", 0);
    bool const beyond = addresses.empty() || !std::all_of(addresses.begin(), addresses.end(),
                                                          [](auto const& one) { return is_loopback(one); });
    auto const flags = words_of(of.default_user.text("flags"));
    auto const has = [&flags](std::string_view flag) {
        return std::find(flags.begin(), flags.end(), flag) != flags.end();
    };
    bool const anybody = has("on") && has("nopass");
    bool const guarded = of.config.text("protected-mode") == "yes";
    if (plain_port == 0) {
        to.push_back(well("exposure", of.config.number_or("tls-port", 0) != 0 ? "reached by TLS only"
                                                                              : "reached by unix socket only"));
    } else if (!beyond) {
        to.push_back(well("exposure", "listens on this machine only (bind)"));
    } else if (anybody && !guarded) {
        to.push_back(unhealthy(
            "exposure",
            fmt::format("anybody who reaches port {} may do anything: no password, protected-mode no, bind \"{}\"",
                        plain_port, of.config.text("bind")),
            "set a password (ACL SETUSER default on >... , or requirepass in redis.conf), or bind to 127.0.0.1; "
            "`lockstep acl` prints the rules of a user "
            "for Lockstep only"));
    } else if (anybody) {
        to.push_back(well("exposure", "without a password, but protected-mode refuses all who come from elsewhere"));
    } else {
        to.push_back(degraded("exposure",
                              fmt::format("port {} is reached from other machines without TLS (bind \"{}\"): passwords "
                                          "and commands can be read on the way",
                                          plain_port, of.config.text("bind")),
                              "set up tls-port with certificates, port 0, and use rediss:// in the URL; or bind to "
                              "addresses of a network that you trust"));
    }
}

void judge_script_time(node_facts const& of, findings& to) {
    auto const limit = of.config.number("busy-reply-threshold").value_or(of.config.number_or("lua-time-limit", -1));
    if (limit < 0) return;
    if (limit == 0) {
        to.push_back(degraded(
            "script_time",
            "a script that runs on and on can't be ended: the server never answers BUSY (busy-reply-threshold 0)",
            fmt::format("CONFIG SET busy-reply-threshold 5000{}", keep_it)));
    } else if (limit < 500) {
        to.push_back(degraded(
            "script_time",
            fmt::format("after {} ms in a script the server refuses everybody else (busy-reply-threshold)", limit),
            fmt::format("CONFIG SET busy-reply-threshold 5000{}: until then others just wait", keep_it)));
    } else {
        to.push_back(well(
            "script_time",
            fmt::format(
                "a script that runs for {} ms makes the server answer BUSY, and can be ended (busy-reply-threshold)",
                limit)));
    }
}

void judge_slow_log(node_facts const& of, client_facts const& by, findings& to) {
    if (!of.slow_log.is_aggregate()) return;
    std::size_t count = 0;
    std::int64_t slowest = 0;
    std::string_view which;
    for (auto const entry : of.slow_log) {
        // id, time, µs, arguments ...
        if (entry.size() < 4 || entry[3].size() < 2 || !entry[3][1].is_text()) continue;
        for (auto const* const script : scripts::all()) {
            if (entry[3][1].text() != script->sha1) continue;
            ++count;
            if (entry[2].integer() > slowest) slowest = entry[2].integer(), which = script->name;
        }
    }
    if (count == 0) {
        to.push_back(well("slow_log", "no script of Lockstep is in the slow log"));
        return;
    }
    auto found = fmt::format("{} scripts of Lockstep are in the slow log, the slowest {} with {:.1f} ms", count, which,
                             static_cast<double>(slowest) / 1000);
    if (slowest < std::chrono::microseconds{by.slow}.count()) {
        to.push_back(well("slow_log", std::move(found)));
    } else {
        to.push_back(degraded("slow_log", std::move(found),
                              "they take microseconds: the machine was overloaded, swapped or stopped. LATENCY DOCTOR "
                              "may say more; SLOWLOG RESET begins anew"));
    }
}

void judge_latency(node_facts const& of, client_facts const& by, findings& to) {
    if (of.round_trips.empty()) return;
    auto sorted = of.round_trips;
    std::sort(sorted.begin(), sorted.end());
    auto const in_ms = [](std::chrono::microseconds time) { return static_cast<double>(time.count()) / 1000; };
    auto found = fmt::format("{} round trips: median {:.2f} ms, longest {:.2f} ms", sorted.size(),
                             in_ms(sorted[sorted.size() / 2]), in_ms(sorted.back()));
    if (sorted[sorted.size() / 2] < by.slow) {
        to.push_back(well("latency", std::move(found)));
    } else {
        to.push_back(degraded("latency", std::move(found),
                              "every acquisition takes at least one of these: move the server nearer, or see what "
                              "keeps it busy (LATENCY DOCTOR, SLOWLOG GET)"));
    }
}

void judge_clock(node_facts const& of, findings& to) {
    if (!of.clock_ahead) return;
    auto const ahead = of.clock_ahead->count();
    auto const uncertain = of.clock_error.count();
    if (std::abs(ahead) <= 1'000 + uncertain) {
        to.push_back(well("clock", fmt::format("the server's clock and this machine's agree to within {} ms",
                                               std::max<std::int64_t>(std::abs(ahead), uncertain + 1))));
    } else {
        to.push_back(degraded("clock",
                              fmt::format("the server's clock is {} ms {} this machine's. Leases do not depend on it, "
                                          "but times in histories and logs do; and a replica with a "
                                          "clock behind its master's gives smaller fences after a failover",
                                          std::abs(ahead), ahead > 0 ? "ahead of" : "behind"),
                              "let NTP (chrony, systemd-timesyncd) set the clocks of all machines"));
    }
}

void judge_rest(node_facts const& of, client_facts const& by, findings& to) {
    if (by.database != 0) {
        to.push_back(
            well("database", fmt::format("database {}: its keys are apart from the others', but memory, eviction and "
                                         "channels are shared with them, and a Cluster has only 0",
                                         by.database)));
    }
    if (auto const events = of.config.text("notify-keyspace-events"); !events.empty()) {
        to.push_back(well(
            "keyspace_events",
            fmt::format("notify-keyspace-events is \"{}\": Lockstep does not need them, and each costs time", events)));
    }
    if (of.config.text("replica-read-only") == "no") {
        to.push_back(degraded("replica_writes",
                              "replicas accept writes (replica-read-only no): a client that is led to one by mistake "
                              "gets locks that nobody else sees",
                              fmt::format("CONFIG SET replica-read-only yes{}", keep_it)));
    }
    if (!by.cluster) return;
    if (of.config.text("cluster-require-full-coverage") == "yes") {
        to.push_back(degraded(
            "cluster_coverage",
            "when one shard is down, all others refuse requests too (cluster-require-full-coverage yes)",
            fmt::format(
                "CONFIG SET cluster-require-full-coverage no, on all nodes{}: then only the names of that shard wait",
                keep_it)));
    } else if (of.config.has("cluster-require-full-coverage")) {
        to.push_back(well("cluster_coverage", "when one shard is down, the others go on"));
    }
}

}  // namespace

finding judge_failover_time(milliseconds noticed_after, milliseconds ttl, std::string_view setting) {
    // The last renewal is up to a third of the ttl ago, and the lease ends here at nine tenths of it.
    auto const left = ttl * 9 / 10 - ttl / 3;
    auto const takes = noticed_after + milliseconds{2'000};
    auto found = fmt::format(
        "a failover takes about {:.1f} s ({} {} ms); a lease of {:.1f} s survives {:.1f} s without the server",
        static_cast<double>(takes.count()) / 1000, setting, noticed_after.count(),
        static_cast<double>(ttl.count()) / 1000, static_cast<double>(left.count()) / 1000);
    if (takes <= left) return well("failover_time", std::move(found));
    return degraded("failover_time", std::move(found) + ": what is held is lost in a failover",
                    fmt::format("a ttl of at least {} s (client_options::defaults), or a shorter {}",
                                (takes.count() * 30 / 17 + 999) / 1000, setting));
}

void judge_config(node_facts const& of, client_facts const& by, findings& to) {
    if (!of.config.empty()) {
        judge_durability(of, to);
        judge_min_replicas(of, to);
        judge_buffers(of, to);
        judge_timeouts(of, by, to);
        judge_exposure(of, to);
        judge_script_time(of, to);
    }
    judge_clients(of, to);
    judge_slow_log(of, by, to);
    judge_latency(of, by, to);
    judge_clock(of, to);
    judge_rest(of, by, to);
    if (by.cluster) {
        if (auto const time = of.config.number("cluster-node-timeout"))
            to.push_back(judge_failover_time(milliseconds{*time}, by.ttl, "cluster-node-timeout"));
    }
}

void judge_sentinels(std::vector<sentinel_view> const& views, client_facts const& by, bool thorough, findings& to) {
    std::string silent;
    std::string complaint;
    sentinel_view const* knows = nullptr;
    for (auto const& one : views) {
        if (!one.problem.empty()) {
            silent += fmt::format("{}{} ({})", silent.empty() ? "" : ", ", one.address, one.problem);
            continue;
        }
        if (!one.quorum_problem.empty()) complaint = one.quorum_problem;
        if (knows == nullptr) knows = &one;
    }
    if (knows == nullptr) {
        to.push_back(unhealthy("sentinel", "no Sentinel answers: " + silent,
                               "start the Sentinels, or correct their addresses in the URL; without them nobody takes "
                               "over from a master that fails"));
        return;
    }
    std::string lost;
    for (auto const& one : knows->replicas) {
        auto const flags = one.text("flags");
        if (flags.find("down") == std::string::npos && flags.find("disconnected") == std::string::npos) continue;
        lost += fmt::format("{}{}:{} ({})", lost.empty() ? "" : ", ", one.text("ip"), one.text("port"), flags);
    }
    if (!complaint.empty()) {
        to.push_back(degraded("sentinel", "no failover is possible: " + complaint,
                              "start the missing Sentinels; SENTINEL CKQUORUM must say OK"));
    } else if (!silent.empty()) {
        to.push_back(degraded("sentinel",
                              fmt::format("{} of {} Sentinels answer; not: {}",
                                          views.size() - static_cast<std::size_t>(std::count_if(
                                                             views.begin(), views.end(),
                                                             [](auto const& one) { return !one.problem.empty(); })),
                                          views.size(), silent),
                              "start them again: with fewer than a majority there is no failover"));
    } else if (knows->replicas.empty()) {
        to.push_back(degraded("sentinel", "the Sentinels know no replica of this master: there is nobody to take over",
                              "add a replica: REPLICAOF, on another server"));
    } else if (!lost.empty()) {
        to.push_back(degraded("sentinel", "these replicas are not there: " + lost,
                              "start them again, or SENTINEL RESET on each Sentinel if they are gone for good"));
    } else {
        to.push_back(well("sentinel", fmt::format("{} Sentinels answer and agree, {} replicas are there", views.size(),
                                                  knows->replicas.size())));
    }
    if (!thorough) return;
    if (auto const after = knows->master.number("down-after-milliseconds"))
        to.push_back(judge_failover_time(milliseconds{*after}, by.ttl, "down-after-milliseconds"));
}

}  // namespace lockstep::observe
