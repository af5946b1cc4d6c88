// What check_health and diagnose make of a server's words, also of words that no test server could be brought to say.
#include "observe/probes.hpp"
#include "observe/rules.hpp"
#include "scripts/all.hpp"

#include <lockstep/error.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <regex>
#include <string>

namespace lockstep::observe {
namespace {

using testing::Contains;
using testing::HasSubstr;

finding of(findings const& all, std::string const& check) {
    auto const found = std::find_if(all.begin(), all.end(), [&](auto const& one) { return one.check == check; });
    return found == all.end() ? finding{} : *found;
}

finding state_finding(std::string const& info, std::string const& check, std::string refusal = {}) {
    node_facts facts;
    facts.info = fields::of_lines(info);
    facts.refusal = std::move(refusal);
    findings all;
    judge_state(facts, {}, all);
    return of(all, check);
}

finding config_finding(fields config, std::string const& check, client_facts const& by = {},
                       std::string const& info = {}) {
    node_facts facts;
    facts.info = fields::of_lines(info);
    facts.config = std::move(config);
    findings all;
    judge_config(facts, by, all);
    return of(all, check);
}

fields config(std::initializer_list<std::pair<char const*, char const*>> values) {
    fields made;
    for (auto const& [name, value] : values) made.set(name, value);
    return made;
}

TEST(health_facts, are_read_from_lines_with_comments) {
    auto const info = fields::of_lines(
        "# Memory\r\nused_memory:12\r\nempty:\r\n\r\nmaxmemory_policy:noeviction\r\nwith:colon:inside");
    EXPECT_EQ(info.number("used_memory"), 12);
    EXPECT_EQ(info.text("maxmemory_policy"), "noeviction");
    EXPECT_EQ(info.text("with"), "colon:inside");
    EXPECT_TRUE(info.has("empty"));
    EXPECT_FALSE(info.number("empty"));
    EXPECT_FALSE(info.number("maxmemory_policy"));
    EXPECT_FALSE(info.has("# Memory"));
    EXPECT_TRUE(fields::of_lines("").empty());
}

TEST(health_facts, are_read_from_cluster_nodes) {
    auto const members = read_members(
        "aaa 10.0.0.1:7000@17000,name myself,master - 0 0 1 connected 0-5460 [5461->-bbb]\n"
        "bbb 10.0.0.2:7000@17000 master,fail - 0 0 2 disconnected 5461-16383\n"
        "ccc 10.0.0.3:7000@17000 slave,fail? aaa 0 0 1 connected\n"
        "ddd 10.0.0.4:7000@17000 slave aaa 0 0 1 disconnected\n"
        "eee 10.0.0.5:7000@17000 master - 0 0 1 connected [5461-<-bbb]\n"
        "torn line\n");
    ASSERT_EQ(members.size(), 5U);
    EXPECT_TRUE(members[0].master && members[0].slots && !members[0].failed && !members[0].cut_off);
    EXPECT_TRUE(members[1].failed && members[1].slots && !members[1].doubted);
    EXPECT_TRUE(members[2].doubted && !members[2].failed && !members[2].master);
    EXPECT_TRUE(members[3].cut_off);
    EXPECT_FALSE(members[4].slots) << "a slot that is on its way";
    EXPECT_EQ(members[1].address, "10.0.0.2:7000");
}

TEST(health_rules, memory_is_judged_by_what_counts_for_the_limit) {
    EXPECT_EQ(state_finding("used_memory:50\nmaxmemory:100", "memory").state, health_state::healthy);
    EXPECT_EQ(state_finding("used_memory:90\nmaxmemory:100", "memory").state, health_state::degraded);
    EXPECT_EQ(state_finding("used_memory:100\nmaxmemory:100", "memory").state, health_state::unhealthy);
    EXPECT_EQ(state_finding("used_memory:100\nmem_not_counted_for_evict:50\nmaxmemory:100", "memory").state,
              health_state::healthy);
    EXPECT_EQ(state_finding("used_memory:10\nmaxmemory:100", "memory", "OOM command not allowed").state,
              health_state::unhealthy);
    EXPECT_EQ(state_finding("used_memory:10\nmaxmemory:0\nused_memory_rss:95\ntotal_system_memory:100", "memory").state,
              health_state::degraded);
    EXPECT_EQ(state_finding("used_memory:10\nmaxmemory:0\nused_memory_rss:10\ntotal_system_memory:100", "memory").state,
              health_state::healthy);
}

TEST(health_rules, persistence_is_judged_by_whether_writes_are_refused) {
    EXPECT_EQ(state_finding("rdb_last_bgsave_status:ok", "persistence").state, health_state::healthy);
    EXPECT_EQ(state_finding("rdb_last_bgsave_status:err", "persistence").state, health_state::degraded);
    EXPECT_EQ(state_finding("rdb_last_bgsave_status:err", "persistence", "MISCONF Redis is configured to").state,
              health_state::unhealthy);
    auto const full =
        state_finding("rdb_last_bgsave_status:ok\naof_enabled:1\naof_last_write_status:err", "persistence");
    EXPECT_EQ(full.state, health_state::unhealthy);
    EXPECT_THAT(full.found, HasSubstr("append-only"));
    EXPECT_EQ(state_finding("rdb_last_bgsave_status:ok\naof_enabled:0\naof_last_write_status:err", "persistence").state,
              health_state::healthy);
    EXPECT_EQ(
        state_finding("rdb_last_bgsave_status:ok\naof_enabled:1\naof_last_bgrewrite_status:err", "persistence").state,
        health_state::degraded);
    EXPECT_EQ(state_finding("", "persistence").check, "") << "nothing is known";
}

TEST(health_rules, replicas_that_lag_are_named) {
    auto const well = state_finding(
        "role:master\nconnected_slaves:1\nslave0:ip=10.0.0.2,port=6379,state=online,offset=90,lag=1\nmaster_repl_"
        "offset:100",
        "replicas");
    EXPECT_EQ(well.state, health_state::healthy);
    EXPECT_THAT(well.found, HasSubstr("one replica"));
    auto const late = state_finding(
        "role:master\nconnected_slaves:2\nslave0:ip=10.0.0.2,port=6379,state=online,offset=100,lag=1\n"
        "slave1:ip=10.0.0.3,port=6380,state=wait_bgsave,offset=0,lag=0\nmaster_repl_offset:100",
        "replicas");
    EXPECT_EQ(late.state, health_state::degraded);
    EXPECT_THAT(late.found, HasSubstr("10.0.0.3:6380"));
    EXPECT_THAT(late.found, testing::Not(HasSubstr("10.0.0.2")));
    EXPECT_EQ(state_finding("role:master\nslave0:ip=10.0.0.2,port=1,state=online,offset=1,lag=60", "replicas").state,
              health_state::degraded);
    EXPECT_EQ(
        state_finding("role:master\nmin_slaves_good_slaves:0", "replicas", "NOREPLICAS Not enough good replicas").state,
        health_state::unhealthy);
    EXPECT_EQ(
        state_finding("role:slave\nmaster_host:10.0.0.9\nmaster_port:6379\nmaster_link_status:down", "replicas").state,
        health_state::unhealthy);
}

TEST(health_rules, a_cluster_is_as_well_as_its_slots_and_nodes) {
    auto const judged = [](std::string const& info, std::string const& nodes) {
        return judge_cluster(fields::of_lines(info), read_members(nodes));
    };
    std::string const all = "cluster_state:ok\ncluster_slots_ok:16384";
    std::string const master = "aaa 10.0.0.1:7000@1 myself,master - 0 0 1 connected 0-16383\n";
    EXPECT_EQ(judged(all, master).state, health_state::healthy);
    EXPECT_EQ(judged(all, master + "bbb 10.0.0.2:7000@1 slave,fail aaa 0 0 1 disconnected\n").state,
              health_state::degraded);
    EXPECT_EQ(judged(all, master + "bbb 10.0.0.2:7000@1 slave,fail? aaa 0 0 1 connected\n").state,
              health_state::degraded);
    EXPECT_EQ(judged(all, master + "bbb 10.0.0.2:7000@1 master,fail - 0 0 1 disconnected 1-2\n").state,
              health_state::unhealthy);
    EXPECT_EQ(judged("cluster_state:fail\ncluster_slots_ok:16384", master).state, health_state::unhealthy);
    EXPECT_EQ(judged("cluster_state:ok\ncluster_slots_ok:16000", master).state, health_state::unhealthy);
}

TEST(health_rules, sentinels_are_counted) {
    sentinel_view whole{.address = "a:1",
                        .problem = {},
                        .quorum_problem = {},
                        .master = config({{"down-after-milliseconds", "30000"}}),
                        .replicas = {config({{"flags", "slave"}})}};
    sentinel_view silent{.address = "b:2", .problem = "refused", .quorum_problem = {}, .master = {}, .replicas = {}};
    auto const judged = [](std::vector<sentinel_view> const& views, std::string const& check = "sentinel") {
        findings all;
        judge_sentinels(views, {}, true, all);
        return of(all, check);
    };
    EXPECT_EQ(judged({whole, whole}).state, health_state::healthy);
    EXPECT_EQ(judged({whole, silent}).state, health_state::degraded);
    EXPECT_THAT(judged({whole, silent}).found, HasSubstr("1 of 2"));
    EXPECT_EQ(judged({silent}).state, health_state::unhealthy);
    EXPECT_EQ(judged({whole}, "failover_time").state, health_state::degraded)
        << "noticed after 30 s, with a ttl of 30 s";
    auto alone = whole;
    alone.replicas.clear();
    EXPECT_EQ(judged({alone}).state, health_state::degraded);
    auto without_quorum = whole;
    without_quorum.quorum_problem = "NOQUORUM 1 usable Sentinels";
    EXPECT_THAT(judged({without_quorum}).found, HasSubstr("NOQUORUM"));
}

TEST(health_rules, a_failover_must_be_over_before_a_lease_ends) {
    using namespace std::chrono_literals;
    EXPECT_EQ(judge_failover_time(5s, 30s, "x").state, health_state::healthy);
    auto const late = judge_failover_time(16s, 30s, "cluster-node-timeout");
    EXPECT_EQ(late.state, health_state::degraded);
    EXPECT_THAT(late.advice, HasSubstr("at least 32 s")) << late.advice;
}

TEST(health_rules, settings_that_are_not_known_are_not_judged) {
    for (auto const* const check :
         {"durability", "output_buffers", "clients", "idle_timeout", "tcp_keepalive", "exposure", "script_time"}) {
        EXPECT_EQ(config_finding({}, check).check, "") << check;
    }
}

TEST(health_rules, exposure_is_judged_by_who_can_log_in_from_where) {
    auto const judged = [](char const* bind, char const* port, char const* guarded, char const* flags) {
        node_facts facts;
        facts.config = config({{"bind", bind}, {"port", port}, {"protected-mode", guarded}, {"tls-port", "0"}});
        facts.default_user = config({{"flags", flags}});
        findings all;
        judge_config(facts, {}, all);
        return of(all, "exposure").state;
    };
    EXPECT_EQ(judged("127.0.0.1 -::1", "6379", "no", "on nopass"), health_state::healthy);
    EXPECT_EQ(judged("* -::*", "6379", "no", "on nopass"), health_state::unhealthy);
    EXPECT_EQ(judged("* -::*", "6379", "yes", "on nopass"), health_state::healthy);
    EXPECT_EQ(judged("* -::*", "6379", "no", "on"), health_state::degraded);
    EXPECT_EQ(judged("", "6379", "no", "on nopass"), health_state::unhealthy);
    EXPECT_EQ(judged("*", "0", "no", "on nopass"), health_state::healthy);
}

TEST(health_rules, an_idle_timeout_must_be_longer_than_the_keep_alive) {
    using namespace std::chrono_literals;
    client_facts by;
    by.keepalive_interval = 3s;
    EXPECT_EQ(config_finding(config({{"timeout", "60"}}), "idle_timeout", by).state, health_state::healthy);
    EXPECT_EQ(config_finding(config({{"timeout", "5"}}), "idle_timeout", by).state, health_state::degraded);
    by.keepalive_interval = 0s;
    EXPECT_EQ(config_finding(config({{"timeout", "60"}}), "idle_timeout", by).state, health_state::degraded);
    EXPECT_EQ(config_finding(config({{"timeout", "0"}}), "idle_timeout", by).state, health_state::healthy);
}

TEST(health_rules, advice_fits_the_trouble) {
    EXPECT_THAT(advice_for(errc::authentication, "WRONGPASS"), HasSubstr("password"));
    EXPECT_THAT(advice_for(errc::unsuitable_server, "... maxmemory-policy is allkeys-lru"),
                HasSubstr("CONFIG SET maxmemory-policy noeviction"));
    EXPECT_THAT(advice_for(errc::unsuitable_server, "the server is version 6.2"), HasSubstr("7.0"));
    EXPECT_THAT(advice_for(errc::unavailable, "it answered: BUSY Redis is busy running a script"),
                HasSubstr("SCRIPT KILL"));
    EXPECT_THAT(advice_for(errc::unavailable, "it answered: LOADING Redis is"), HasSubstr("wait"));
    EXPECT_THAT(advice_for(errc::unavailable, "127.0.0.1:1: Connection refused"), HasSubstr("start the server"));
    EXPECT_THAT(advice_for(errc::unavailable, "certificate verify failed"), HasSubstr("ca_file"));
    EXPECT_THAT(advice_for(errc::timeout, "the server did not answer in the request's time"),
                HasSubstr("does not answer"));
    EXPECT_EQ(check_behind(errc::unsuitable_server, "maxmemory-policy is allkeys-lru"), "eviction");
    EXPECT_EQ(check_behind(errc::unsuitable_server, "the server is version 6.2"), "version");
    EXPECT_EQ(check_behind(errc::unavailable, "x"), "");
}

TEST(health_rules, missing_right_is_read_from_the_words_of_each_server) {
    auto const redis_7_0 = [](std::string const& words) {
        return missing_right("NOPERM this user has no permissions to " + words, "HGET", "app");
    };
    EXPECT_EQ(redis_7_0("run the 'hget' command"), "+hget");
    EXPECT_EQ(redis_7_0("access one of the keys used as arguments"), "~app:{*}:*");
    EXPECT_EQ(redis_7_0("access one of the channels used as arguments"), "&app:wake:* &app:{*}:* &app:news");
    auto const later = [](std::string const& words) { return missing_right("NOPERM " + words, "HGET", "app"); };
    EXPECT_EQ(later("User bob has no permissions to run the 'hget' command"), "+hget");
    EXPECT_EQ(later("No permissions to access a key"), "~app:{*}:*");
    EXPECT_EQ(later("No permissions to access a channel"), "&app:wake:* &app:{*}:* &app:news");
    EXPECT_EQ(later("No permissions to access database"), "alldbs") << "Valkey 9.1";
}

// A new command in a script must be tried too, or a user without that right would be told that all is well.
TEST(health_rules, rights_cover_all_that_scripts_call) {
    auto const tried = tried_commands();
    std::regex const word{R"(call\('([A-Z]+)')"};
    for (auto const* const script : scripts::all()) {
        std::string const text{script->text};
        for (std::sregex_iterator it{text.begin(), text.end(), word}, end; it != end; ++it) {
            EXPECT_THAT(tried, Contains((*it)[1].str()))
                << "called by " << script->name << ": add it to `trials` in probes.cpp";
        }
    }
    for (auto const* const command : {"EVAL", "EVALSHA", "PUBLISH", "SPUBLISH"}) EXPECT_THAT(tried, Contains(command));
}

}  // namespace
}  // namespace lockstep::observe
