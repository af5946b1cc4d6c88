#include "observe/rules.hpp"

#include <lockstep/error.hpp>

#include <fmt/format.h>

#include <algorithm>

namespace lockstep::observe {
namespace {

constexpr std::int64_t megabyte = 1024 * 1024;

void judge_loading(node_facts const& of, findings& to) {
    if (of.info.number_or("loading", 0) == 0) return;
    to.push_back(unhealthy(
        "loading",
        fmt::format("the server reads its data from disk, {} % so far, and takes no requests",
                    of.info.text("loading_loaded_perc").empty() ? "?" : of.info.text("loading_loaded_perc")),
        fmt::format("wait: it expects to be ready in {} s. Waiters and requests with time left go on by themselves",
                    of.info.text("loading_eta_seconds"))));
}

void judge_eviction(node_facts const& of, client_facts const& by, findings& to) {
    auto const policy = of.info.text("maxmemory_policy");
    if (policy.empty()) return;
    if (policy == "noeviction") {
        to.push_back(well("eviction", "the server never evicts (maxmemory-policy noeviction)"));
        return;
    }
    auto const limit = of.info.number_or("maxmemory", 0);
    auto const evicted = of.info.number_or("evicted_keys", 0);
    auto const what =
        fmt::format("the server may evict keys (maxmemory-policy {}, {} evicted so far{}), and locks go first", policy,
                    evicted, limit == 0 ? ", no maxmemory yet" : "");
    std::string const advice =
        "CONFIG SET maxmemory-policy noeviction, and the same in redis.conf; or give the locks a server of their own, "
        "apart from the cache";
    if (by.allow_eviction) {
        to.push_back(degraded("eviction", what + "; this client goes on because of allow_eviction", advice));
    } else {
        to.push_back(unhealthy(
            "eviction", what + "; this client was connected before that was set, and will not log in again", advice));
    }
}

void judge_memory(node_facts const& of, findings& to) {
    auto const used = of.info.number("used_memory");
    if (!used) return;
    auto const limit = of.info.number_or("maxmemory", 0);
    auto const counted = std::max<std::int64_t>(0, *used - of.info.number_or("mem_not_counted_for_evict", 0));
    auto const machine = of.info.number_or("total_system_memory", 0);
    auto const resident = of.info.number_or("used_memory_rss", 0);
    auto const more = fmt::format("CONFIG SET maxmemory {}mb (and in redis.conf), or remove what is not needed",
                                  (std::max(counted, limit) * 2 + megabyte - 1) / megabyte);
    auto const of_limit = fmt::format("{} of {} (maxmemory) in use", bytes_text(counted), bytes_text(limit));
    if (of.refused("OOM") || (limit > 0 && counted >= limit)) {
        to.push_back(unhealthy(
            "memory", of_limit + ": nothing can be acquired any more; what is held can be renewed and released", more));
    } else if (limit > 0 && counted * 10 >= limit * 9) {
        to.push_back(degraded("memory", of_limit + ": when it is full, nothing can be acquired any more", more));
    } else if (limit > 0) {
        to.push_back(well("memory", of_limit));
    } else if (machine > 0 && resident * 10 >= machine * 9) {
        to.push_back(degraded("memory",
                              fmt::format("{} of the machine's {} in use, without a limit (maxmemory 0)",
                                          bytes_text(resident), bytes_text(machine)),
                              "the kernel ends the server when memory runs out: give the machine more, or set "
                              "maxmemory below what it has"));
    } else {
        to.push_back(well("memory", fmt::format("{} in use, without a limit (maxmemory 0)", bytes_text(*used))));
    }
}

void judge_persistence(node_facts const& of, findings& to) {
    bool const snapshot_failed = of.info.text("rdb_last_bgsave_status") == "err";
    bool const log_failed = of.info.number_or("aof_enabled", 0) != 0 && of.info.text("aof_last_write_status") == "err";
    bool const rewrite_failed =
        of.info.number_or("aof_enabled", 0) != 0 && of.info.text("aof_last_bgrewrite_status") == "err";
    bool const refused = of.refused("MISCONF");
    if (!snapshot_failed && !log_failed && !rewrite_failed && !refused) {
        if (!of.info.text("rdb_last_bgsave_status").empty())
            to.push_back(well("persistence", "no write to disk has failed"));
        return;
    }
    std::string found;
    auto const add = [&found](std::string_view text) { found += (found.empty() ? "" : "; ") + std::string{text}; };
    if (snapshot_failed) add("the last snapshot failed (rdb_last_bgsave_status err)");
    if (log_failed) add("the last write to the append-only file failed (aof_last_write_status err)");
    if (rewrite_failed) add("the append-only file could not be rewritten (aof_last_bgrewrite_status err)");
    if (found.empty()) add("the server can't write to disk");
    std::string advice = "look into the server's log: disk full, directory gone (CONFIG GET dir), rights?";
    if (snapshot_failed) advice += " When that is mended: BGSAVE.";
    if (refused && !log_failed) advice += " To go on meanwhile: CONFIG SET stop-writes-on-bgsave-error no";
    if (refused || log_failed) {
        to.push_back(unhealthy("persistence",
                               found + ", so it refuses writes (MISCONF): nothing can be acquired, renewed or released",
                               advice));
    } else {
        to.push_back(degraded("persistence", found + ": a restart would bring back old locks, or none", advice));
    }
}

struct replica {
    std::string address, state;
    std::int64_t lag = 0, behind = 0;
};

std::vector<replica> replicas_of(fields const& info) {
    std::vector<replica> all;
    auto const offset = info.number_or("master_repl_offset", 0);
    for (std::size_t i = 0;; ++i) {
        auto const name = fmt::format("slave{}", i);
        if (!info.has(name)) return all;
        auto const parts = of_commas(info.text(name));
        all.push_back({.address = fmt::format("{}:{}", parts.text("ip"), parts.text("port")),
                       .state = parts.text("state"),
                       .lag = parts.number_or("lag", 0),
                       .behind = std::max<std::int64_t>(0, offset - parts.number_or("offset", offset))});
    }
}

void judge_a_replica(node_facts const& of, findings& to) {
    auto const master = fmt::format("{}:{}", of.info.text("master_host"), of.info.text("master_port"));
    auto const link = of.info.text("master_link_status");
    to.push_back(unhealthy("replicas",
                           fmt::format("this server is a replica of {} (link {}): it refuses writes", master, link),
                           fmt::format("connect to the master, {}, or better let the client find it: a "
                                       "redis+sentinel:// or redis+cluster:// URL. If that "
                                       "master is gone for good: REPLICAOF NO ONE",
                                       master)));
}

void judge_replicas(node_facts const& of, findings& to) {
    if (of.info.empty()) return;
    if (of.info.text("role") == "slave") return judge_a_replica(of, to);
    auto const all = replicas_of(of.info);
    auto const wanted = of.config.number_or("min-replicas-to-write", 0);
    auto const good = of.info.number("min_slaves_good_slaves");
    if (of.refused("NOREPLICAS") || (good && wanted > 0 && *good < wanted)) {
        to.push_back(
            unhealthy("replicas",
                      fmt::format("{} of {} replicas are in step, fewer than min-replicas-to-write{} asks for: writes "
                                  "are refused (NOREPLICAS)",
                                  good.value_or(0), all.size(), wanted > 0 ? fmt::format(" ({})", wanted) : ""),
                      fmt::format("bring the replicas back; or, to go on without, CONFIG SET min-replicas-to-write {}",
                                  good.value_or(0))));
        return;
    }
    std::string trouble;
    for (auto const& one : all) {
        if (one.state == "online" && one.lag <= 10) continue;
        trouble += fmt::format("{}{} ({}, heard of {} s ago, {} behind)", trouble.empty() ? "" : ", ", one.address,
                               one.state, one.lag, bytes_text(one.behind));
    }
    if (!trouble.empty()) {
        to.push_back(degraded("replicas", fmt::format("of {} replicas these are not in step: {}", all.size(), trouble),
                              "look into the log of these replicas: network, or too small a repl-backlog-size. A "
                              "failover to one of them would lose locks"));
        return;
    }
    std::int64_t behind = 0;
    for (auto const& one : all) behind = std::max(behind, one.behind);
    to.push_back(well(
        "replicas", all.empty() ? "a master without replicas"
                                : fmt::format("a master with {} in step, at most {} behind",
                                              all.size() == 1 ? "one replica" : fmt::format("{} replicas", all.size()),
                                              bytes_text(behind))));
}

}  // namespace

void judge_state(node_facts const& of, client_facts const& by, findings& to) {
    judge_loading(of, to);
    judge_eviction(of, by, to);
    judge_memory(of, to);
    judge_persistence(of, to);
    judge_replicas(of, to);
}

std::string server_text(fields const& info, reply_view hello) {
    if (auto const valkey = info.text("valkey_version"); !valkey.empty()) return "valkey " + valkey;
    if (auto const redis = info.text("redis_version"); !redis.empty()) return "redis " + redis;
    auto const name = hello.find("server");
    auto const version = hello.find("version");
    if (!name.is_text() || !version.is_text()) return {};
    return fmt::format("{} {}", name.text(), version.text());
}

std::string_view check_behind(errc reason, std::string_view problem) noexcept {
    if (reason != errc::unsuitable_server) return {};
    return problem.find("maxmemory-policy") != std::string_view::npos ? "eviction" : "version";
}

std::string advice_for(errc reason, std::string_view problem) {
    auto const says = [problem](std::string_view word) { return problem.find(word) != std::string_view::npos; };
    if (reason == errc::authentication) {
        return "check user and password: in the URL (LOCKSTEP_URL, REDIS_URL), in client_options or in the "
               "password_file; at the server: ACL LIST";
    }
    if (reason == errc::unsuitable_server) {
        return says("maxmemory-policy") ? "CONFIG SET maxmemory-policy noeviction, and the same in redis.conf; or "
                                          "allow_eviction in the client's options (the command: --allow-eviction), at your own risk"
                                        : "use Redis 7.0 or newer, or Valkey 7.2 or newer";
    }
    if (reason == errc::cancelled) return "the client is closed: make a new one";
    if (says("BUSY"))
        return "a script or a function runs on and on: SCRIPT KILL or FUNCTION KILL, as an administrator; if it has "
               "written already, only SHUTDOWN NOSAVE ends it";
    if (says("LOADING")) return "wait until it has read its data from disk: INFO persistence says loading_eta_seconds";
    if (says("CLUSTERDOWN"))
        return "a part of the Cluster is down: CLUSTER INFO and CLUSTER NODES say which; start those nodes, or "
               "`redis-cli --cluster fix`";
    if (says("MASTERDOWN")) return "this replica has lost its master: connect to the master";
    if (says("Sentinel"))
        return "check the Sentinels' addresses and the name of the master in the URL; SENTINEL MASTERS, asked of each, "
               "lists the names they know";
    if (says("certificate") || says("TLS") || says("SSL"))
        return "check the certificate: its names against the URL's host, its authority against ca_file, its dates";
    if (says("efused") || says("No such file") || says("esolve") || says("not known"))
        return "start the server, or correct its address in the URL";
    if (reason == errc::timeout || reason == errc::unavailable || reason == errc::indeterminate) {
        return "the server does not answer: is it running and not stopped, is the network (a firewall?) in the way? "
               "`redis-cli ping` from this machine";
    }
    return "see docs/errors.md for what this error means";
}

finding judge_cluster(fields const& info, std::vector<cluster_member> const& members) {
    std::string lost;
    std::string suspected;
    bool lost_slots = false;
    std::size_t masters = 0;
    for (auto const& one : members) {
        masters += one.master && one.slots ? 1 : 0;
        auto const what = fmt::format("{}{} ({})", one.address.starts_with(':') ? "one without an address" : "",
                                      one.address, one.master ? "master" : "replica");
        if (one.failed) {
            lost += (lost.empty() ? "" : ", ") + what;
            lost_slots = lost_slots || (one.master && one.slots);
        } else if (one.doubted || one.cut_off) {
            suspected += (suspected.empty() ? "" : ", ") + what;
        }
    }
    auto const served = info.number_or("cluster_slots_ok", 0);
    auto const state = info.text("cluster_state");
    auto const slots = fmt::format("{} of 16384 slots are served", served);
    if (state != "ok" || served < 16'384 || lost_slots) {
        return unhealthy("cluster",
                         fmt::format("cluster_state {}, {}{}{}", state.empty() ? "unknown" : state, slots,
                                     lost.empty() ? "" : "; failed: " + lost,
                                     suspected.empty() ? "" : "; not answering: " + suspected),
                         lost.empty() && suspected.empty() ? "give every slot an owner: `redis-cli --cluster fix`"
                                                           : "start the failed nodes again; if a master stays away, "
                                                             "CLUSTER FAILOVER TAKEOVER on one of its replicas");
    }
    if (!lost.empty() || !suspected.empty()) {
        return degraded("cluster",
                        fmt::format("{}; failed: {}; not answering: {}", slots, lost.empty() ? "none" : lost,
                                    suspected.empty() ? "none" : suspected),
                        "start these nodes again, or CLUSTER FORGET the ones that are gone for good: until then a "
                        "further failure may have no replica to take over");
    }
    return well("cluster", fmt::format("all slots are served by {} masters, {} nodes in all", masters, members.size()));
}

}  // namespace lockstep::observe
