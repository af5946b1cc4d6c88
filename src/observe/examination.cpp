#include "observe/examination.hpp"

#include "observe/probes.hpp"
#include "observe/rules.hpp"

#include "base/names.hpp"
#include "base/random.hpp"
#include "core/session.hpp"
#include "redis/slot.hpp"
#include "redis/slot_map.hpp"

#include <lockstep/error.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

namespace lockstep::observe {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

constexpr milliseconds sentinel_patience{1'000};
constexpr int round_trips = 10;

/// What was found at one server, or about all of them.
struct part {
    std::string label;
    std::string server;
    findings found;
};

client_facts facts_of(detail::core const& owner, health_options const& options) {
    auto const& chosen = owner.options();
    return {.allow_eviction = chosen.allow_eviction,
            .cluster = owner.is_cluster(),
            .sentinel = owner.where().kind == redis::topology::sentinel,
            .database = owner.where().database,
            .ttl = chosen.defaults.ttl.value_or(milliseconds{30'000}),
            .keepalive_interval = chosen.keepalive_interval,
            .slow = options.slow,
            .prefix = chosen.prefix};
}

// ---- where to look

std::string probe_key(exam const& of) {
    return base::key_name(of.by.prefix, "lockstep-health-" + base::random_id().substr(0, 12), "lock");
}

place anywhere(exam const& of) {
    place made{.label = {}, .key = probe_key(of), .slot = -1};
    return made;
}

/// The masters, each with a name for the probe lock that belongs to one of its slots.
std::vector<place> masters_in(exam const& of, reply_view slots) {
    std::map<std::string, std::vector<redis::slot_range>> ranges;
    for (auto& one : redis::read_slots(slots, {})) ranges[redis::to_string(one.master)].push_back(one);
    std::vector<place> places;
    for (auto const& [address, own] : ranges) {
        place made{.label = address, .key = {}, .slot = static_cast<std::int16_t>(own.front().first)};
        for (int tries = 0; tries < 100'000 && made.key.empty(); ++tries) {
            auto key = probe_key(of);
            auto const slot = redis::key_slot(key);
            bool const fits = std::any_of(own.begin(), own.end(), [slot](auto const& range) {
                return range.first <= slot && slot <= range.last;
            });
            if (!fits) continue;
            made.slot = static_cast<std::int16_t>(slot);
            made.key = std::move(key);
        }
        if (!made.key.empty()) places.push_back(std::move(made));
    }
    return places;
}

/// It can't be used at all, and that is why.
void note_refusal(exam const& of, answer first, std::string const& target, findings& to) {
    // A request that was under way when its time was over knows nothing of what those before it were answered.
    auto const [count, last] = refusals_of(*of.owner);
    if (first.reason == errc::timeout && count != of.refusals)
        first.problem += fmt::format("; it answered before: {}", last);
    auto const behind = check_behind(first.reason, first.problem);
    auto const advice = advice_for(first.reason, first.problem);
    bool const is_named = first.problem.starts_with(target + ": ");
    auto const problem = is_named ? first.problem : fmt::format("{}: {}", target, first.problem);
    to.push_back(behind.empty() ? unhealthy("connect", problem, advice) : unhealthy("connect", fmt::format("{} is not used, for the reason below", target), fmt::format("see {}", behind)));
    to.back().took = first.took;
    if (!behind.empty()) to.push_back(unhealthy(behind, problem, advice));
}

// ---- one server

constexpr std::string_view looked_at[] = {"appendonly",
                                          "appendfsync",
                                          "save",
                                          "min-replicas-to-write",
                                          "min-replicas-max-lag",
                                          "client-output-buffer-limit",
                                          "maxclients",
                                          "timeout",
                                          "tcp-keepalive",
                                          "bind",
                                          "port",
                                          "tls-port",
                                          "protected-mode",
                                          "busy-reply-threshold",
                                          "lua-time-limit",
                                          "notify-keyspace-events",
                                          "replica-read-only",
                                          "cluster-require-full-coverage",
                                          "cluster-node-timeout"};

std::vector<std::string> config_question(bool thorough) {
    auto command = words("CONFIG", "GET", "min-replicas-to-write");
    if (thorough) command.insert(command.end(), std::begin(looked_at), std::end(looked_at));
    return command;
}

struct questions {
    answer info, config, time, default_user, slow_log, cluster, nodes;
    milliseconds asked_at{0}, answered_at{0};  // by this machine's clock
};

milliseconds wall_clock() {
    return std::chrono::duration_cast<milliseconds>(std::chrono::system_clock::now().time_since_epoch());
}

task<questions> ask_all(exam const& of, place const& at, bool thorough) {
    questions made;
    std::vector<task<answer>> all;
    std::vector<answer questions::*> places;
    auto const add = [&](answer questions::*which, std::vector<std::string> command) {
        places.push_back(which);
        all.push_back(ask(of, at, std::move(command)));
    };
    add(&questions::info, words("INFO"));
    add(&questions::config, config_question(thorough));
    if (thorough) {
        add(&questions::time, words("TIME"));
        add(&questions::default_user, words("ACL", "GETUSER", "default"));
        add(&questions::slow_log, words("SLOWLOG", "GET", "128"));
    }
    if (of.by.cluster) {
        add(&questions::cluster, words("CLUSTER", "INFO"));
        add(&questions::nodes, words("CLUSTER", "NODES"));
    }
    made.asked_at = wall_clock();
    auto answers = co_await when_all(std::move(all));
    made.answered_at = wall_clock();
    for (std::size_t i = 0; i < answers.size(); ++i) made.*places[i] = std::move(answers[i]);
    co_return made;
}

node_facts read(exam const& of, questions const& heard) {
    node_facts facts;
    auto const& user = of.owner->where().user;
    facts.user = user.empty() ? "default" : user;
    if (heard.info.ok() && heard.info.value.is_text()) facts.info = fields::of_lines(heard.info.value.text());
    if (heard.config.ok()) facts.config = fields::of_pairs(heard.config.value);
    if (heard.default_user.ok()) facts.default_user = fields::of_pairs(heard.default_user.value);
    if (heard.slow_log.ok()) facts.slow_log = heard.slow_log.value;
    if (heard.time.ok() && heard.time.value.size() == 2) {
        auto const server = milliseconds{heard.time.value[0].as<std::int64_t>() * 1'000 +
                                         heard.time.value[1].as<std::int64_t>() / 1'000};
        auto const uncertain = heard.answered_at - heard.asked_at;
        facts.clock_ahead = server - (heard.asked_at + uncertain / 2);
        facts.clock_error = uncertain / 2;
    }
    return facts;
}

/// What could not be looked at. Never worse than degraded: not knowing is no failure.
void note_blindness(questions const& heard, node_facts const& facts, bool thorough, findings& to) {
    std::string what;
    std::string rights;
    std::string why;
    auto const add = [&](answer const& one, std::string_view thing, std::string_view right) {
        if (one.ok()) return;
        what += fmt::format("{}{}", what.empty() ? "" : ", ", thing);
        if (one.lacks_rights()) rights += fmt::format(" {}", right);
        if (why.empty()) why = one.problem;
    };
    add(heard.info, "INFO (memory, eviction, persistence, replicas)", "+info");
    if (thorough) {
        add(heard.config, "CONFIG GET (the configuration)", "+config|get");
        add(heard.slow_log, "SLOWLOG", "+slowlog|get");
        add(heard.default_user, "ACL GETUSER (who may log in)", "+acl|getuser");
    }
    if (what.empty()) return;
    to.push_back(degraded("look", fmt::format("could not look at {}: {}", what, why),
                          rights.empty()
                              ? advice_for(heard.info.reason, why)
                              : fmt::format("look as an administrator; or, to let this user look, ACL SETUSER {}{}",
                                            facts.user, rights)));
}

task<std::vector<microseconds>> measure(exam const& of, place const& at) {
    std::vector<microseconds> times;
    for (int i = 0; i < round_trips; ++i) {
        auto const one = co_await ask(of, at, words("TIME"));
        if (!one.answered()) break;
        times.push_back(one.took);
    }
    co_return times;
}

/// Why nothing should be tried: it would only take until the deadline. Empty: go on.
std::string not_to_try(node_facts const& facts) {
    if (facts.info.number_or("loading", 0) != 0) return "the server is loading its data";
    if (facts.info.text("role") == "slave") return "the server is a replica";
    return {};
}

task<std::string> try_all(exam const& of, place const& at, std::string user, bool thorough, findings& to) {
    std::vector<task<trial>> tries;
    if (of.may_write) tries.push_back(try_lock(of, at));
    tries.push_back(try_push(of, at));
    tries.push_back(try_script(of, at));
    auto made = co_await when_all(std::move(tries));
    bool lacks_rights = false;
    for (auto& one : made) {
        lacks_rights = lacks_rights || one.last.lacks_rights();
        to.push_back(std::move(one.found));
    }
    if (of.may_write && (thorough || lacks_rights)) {  // trying rights writes, too
        auto rights = co_await try_rights(of, at, std::move(user));
        to.push_back(std::move(rights));
    }
    co_return of.may_write ? made.front().last.problem : std::string{};
}

task<part> look_at(exam const& of, place const& at, bool thorough) {
    part made{.label = at.label, .server = {}, .found = {}};
    auto const target = at.label.empty() ? of.owner->description() : at.label;
    auto const hello = co_await ask(of, at, words("HELLO"));
    if (!hello.answered()) {
        note_refusal(of, hello, target, made.found);
        co_return made;
    }
    made.found.push_back(well("connect", fmt::format("{} answers", target)));
    made.found.back().took = hello.took;
    auto const heard = co_await ask_all(of, at, thorough);
    auto facts = read(of, heard);
    made.server = server_text(facts.info, hello.value);
    if (!made.server.empty()) made.found.push_back(well("version", made.server));
    if (!heard.info.answered()) {  // connected, but it takes no requests
        made.found.erase(made.found.begin());
        note_refusal(of, heard.info, target, made.found);
        co_return made;
    }
    if (auto const why = not_to_try(facts); !why.empty()) {
        made.found.push_back(unhealthy("probe_lock", "not tried: " + why, "see `loading` or `replicas`"));
    } else {
        facts.refusal = co_await try_all(of, at, facts.user, thorough, made.found);
    }
    if (thorough) facts.round_trips = co_await measure(of, at);
    note_blindness(heard, facts, thorough, made.found);
    findings judged;
    judge_state(facts, of.by, judged);
    if (thorough) judge_config(facts, of.by, judged);
    for (auto& one : judged) {
        one.took = heard.info.took;
        made.found.push_back(std::move(one));
    }
    if (of.by.cluster && heard.cluster.ok() && heard.nodes.ok() && heard.cluster.value.is_text() &&
        heard.nodes.value.is_text()) {
        made.found.push_back(
            judge_cluster(fields::of_lines(heard.cluster.value.text()), read_members(heard.nodes.value.text())));
        made.found.back().took = heard.nodes.took;
    }
    co_return made;
}

// ---- Sentinel

task<sentinel_view> view_of(exam const& of, redis::endpoint where) {
    sentinel_view made{
        .address = redis::to_string(where), .problem = {}, .quorum_problem = {}, .master = {}, .replicas = {}};
    auto const session = std::make_shared<detail::session_state>(of.owner, of.owner->make_sentinel_session(where));
    auto const deadline = std::min(of.deadline, clock::now() + sentinel_patience);
    auto const& name = of.owner->where().master_name;
    std::vector<task<answer>> all;
    all.push_back(ask_by(of, session->way(), deadline, words("SENTINEL", "MASTER", name)));
    all.push_back(ask_by(of, session->way(), deadline, words("SENTINEL", "REPLICAS", name)));
    all.push_back(ask_by(of, session->way(), deadline, words("SENTINEL", "CKQUORUM", name)));
    auto const answers = co_await when_all(std::move(all));
    made.problem = answers[0].problem;
    made.master = fields::of_pairs(answers[0].value);
    if (answers[1].ok() && answers[1].value.is_aggregate()) {
        for (auto const one : answers[1].value) made.replicas.push_back(fields::of_pairs(one));
    }
    if (answers[2].reason == errc::server && !answers[2].lacks_rights()) made.quorum_problem = answers[2].problem;
    co_return made;
}

task<part> look_at_sentinels(exam const& of, bool thorough) {
    part made;
    auto const begin = clock::now();
    std::vector<task<sentinel_view>> all;
    for (auto const& one : of.owner->where().endpoints) all.push_back(view_of(of, one));
    auto const views = co_await when_all(std::move(all));
    judge_sentinels(views, of.by, thorough, made.found);
    for (auto& one : made.found) one.took = std::chrono::duration_cast<microseconds>(clock::now() - begin);
    co_return made;
}

// ---- one report of all

/// One finding of those that several servers have: the worst state, and what those in it said.
finding merge(std::vector<std::pair<std::string, finding const*>> const& each) {
    constexpr std::size_t shown = 4;
    auto made = *each.front().second;
    for (auto const& [label, one] : each) {
        made.took = std::max(made.took, one->took);
        if (one->state > made.state) made = {made.check, one->state, {}, one->advice, made.took};
    }
    std::vector<std::string> said;
    bool same = true;
    for (auto const& [label, one] : each) {
        if (one->state != made.state) continue;
        same = same && one->found == each.front().second->found;
        said.push_back(label.empty() || one->found.starts_with(label) ? one->found
                                                                      : fmt::format("{}: {}", label, one->found));
    }
    if (said.size() == 1) {
        made.found = said.front();
    } else if (same && said.size() == each.size()) {
        made.found = each.front().second->found;
    } else {
        auto const more = said.size() > shown ? fmt::format("; and {} more", said.size() - shown) : std::string{};
        made.found.clear();
        for (std::size_t i = 0; i < std::min(shown, said.size()); ++i) made.found += (i == 0 ? "" : "; ") + said[i];
        made.found += more;
    }
    return made;
}

health_report report_of(std::vector<part> const& parts) {
    health_report report;
    std::vector<std::string> order;
    std::map<std::string, std::vector<std::pair<std::string, finding const*>>> by_check;
    for (auto const& one : parts) {
        if (report.server.empty()) report.server = one.server;
        for (auto const& finding : one.found) {
            auto& list = by_check[finding.check];
            if (list.empty()) order.push_back(finding.check);
            list.emplace_back(one.label, &finding);
        }
    }
    for (auto const& check : order) {
        report.findings.push_back(merge(by_check[check]));
        report.state = std::max(report.state, report.findings.back().state);
    }
    return report;
}

task<std::vector<part>> look_at_cluster(exam const& of, bool thorough) {
    std::vector<part> parts;
    auto const any = anywhere(of);
    auto const slots = co_await ask(of, any, words("CLUSTER", "SLOTS"));
    auto const places = slots.ok() ? masters_in(of, slots.value) : std::vector<place>{};
    if (places.empty()) {
        part none;
        auto failed = slots;
        if (failed.ok())
            failed.problem = "CLUSTERDOWN: no slot is assigned to any node", failed.reason = errc::unavailable;
        note_refusal(of, failed, of.owner->description(), none.found);
        parts.push_back(std::move(none));
        co_return parts;
    }
    std::vector<task<part>> all;
    for (auto const& one : places) all.push_back(look_at(of, one, thorough));
    co_return co_await when_all(std::move(all));
}

task<std::vector<part>> look_at_one(exam const& of, bool thorough) {
    auto const only = anywhere(of);
    std::vector<task<part>> all;
    all.push_back(look_at(of, only, thorough));
    if (of.by.sentinel) all.push_back(look_at_sentinels(of, thorough));
    co_return co_await when_all(std::move(all));
}

task<health_report> run(exam of, bool thorough) {
    std::vector<part> parts;
    if (of.by.cluster) {
        parts = co_await look_at_cluster(of, thorough);
    } else {
        parts = co_await look_at_one(of, thorough);
    }
    co_return report_of(parts);
}

}  // namespace

task<health_report> examine(std::shared_ptr<detail::core> owner, health_options options, bool thorough) {
    owner->require_same_process();
    if (options.within.count() <= 0) throw invalid_argument_error("health_options::within must be longer than 0");
    if (options.slow.count() <= 0) throw invalid_argument_error("health_options::slow must be longer than 0");
    auto by = facts_of(*owner, options);
    return run({.owner = owner,
                .deadline = owner->deadline(options.within),
                .by = std::move(by),
                .refusals = refusals_of(*owner).first,
                .may_write = options.probe_lock},
               thorough);
}

}  // namespace lockstep::observe
