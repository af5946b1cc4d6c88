#include "observe/acl.hpp"

#include "scripts/all.hpp"

#include <lockstep/error.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <map>
#include <regex>
#include <set>
#include <string>
#include <vector>

namespace lockstep::observe {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::Not;
using names = std::set<std::string>;

std::vector<std::string> rules_of(acl_use use, bool cluster = true) { return acl_rules({.uses = {use}, .cluster = cluster}); }

names commands_of(acl_use use) {
    names all;
    for (auto const& rule : rules_of(use)) {
        if (rule[0] == '+') all.insert(rule.substr(1));
    }
    return all;
}

std::string lower(std::string text) {
    std::ranges::transform(text, text.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    return text;
}

/// What the script calls, as rules have it.
names commands_in(std::string_view script) {
    static names const no_commands{"byscore", "consumers", "count", "delconsumer", "entriesread", "groups", "idle", "justid", "keepttl", "limit", "maxlen", "minid",
                                   "numsub", "rank", "retrycount", "rev", "setid", "shardnumsub", "stream", "usage", "withscores", "withvalues"};
    static std::regex const word{"['\"]([A-Z]{3,})['\"](, ['\"]([A-Z]{3,})['\"])?"};
    static names const containers{"memory", "xgroup", "xinfo"};
    std::string text{script};
    names all;
    for (std::smatch found; std::regex_search(text, found, word); text = text.substr(static_cast<std::size_t>(found.position(1) + found.length(1)) + 1)) {
        auto const name = lower(found[1]);
        if (name == "pubsub") all.insert({"pubsub|numsub", "pubsub|shardnumsub"});
        if (containers.contains(name)) all.insert(name + '|' + lower(found[3]));
        if (!no_commands.contains(name) && !containers.contains(name) && name != "pubsub") all.insert(name);
    }
    return all;
}

/// The scripts of each use, by what their names begin with.
std::map<acl_use, std::vector<std::string>> const scripts_of{
    {acl_use::locks, {"barrier_", "broadcast_", "latch_", "lock_", "pool_", "election_", "redlock_", "quorum_", "compare_", "once_", "client_leave", "client_register", "statistics_", "index_", "queue_read"}},
    {acl_use::messaging, {"queue_", "steal_", "stream_", "idempotency_", "compare_", "client_leave", "client_register", "statistics_", "index_"}},
    {acl_use::jobs, {"job_", "cron_", "queue_count", "queue_leave", "queue_pause", "queue_pull", "queue_purge", "queue_push", "queue_read", "election_", "lock_adopt", "rate_", "breaker_", "client_leave", "client_register", "statistics_", "index_"}},
    {acl_use::state, {"value_", "map_", "counter_", "board_", "breaker_", "rate_", "session_", "client_leave", "client_register", "statistics_", "index_"}},
    {acl_use::near_cache, {"value_read", "map_read"}},
    {acl_use::look, {"survey", "scan_page", "audit_read", "client_read", "queue_read", "queue_count", "steal_count", "queue_letters", "job_list", "job_count", "job_read", "job_graph", "cron_list", "election_read",
                     "stream_range"}},
    {acl_use::act, {"job_", "cron_", "queue_", "lock_evict", "pool_evict", "election_evict", "index_"}},
};

/// What the library sends besides.
std::map<acl_use, names> const sent_by{
    {acl_use::locks, {"exec", "hget", "multi", "set", "wait", "watch", "xadd", "xrange", "xrevrange", "eval_ro", "evalsha_ro"}},
    {acl_use::messaging, {"del", "psubscribe", "punsubscribe", "xack", "xautoclaim", "xclaim", "xdel", "xgroup|create", "xgroup|destroy", "xinfo|groups", "xinfo|stream", "xlen",
                          "xpending", "xrange", "xread", "xreadgroup", "xrevrange", "xtrim", "eval_ro", "evalsha_ro"}},
    {acl_use::jobs, {"exists", "hget", "hmget", "time", "unlink", "zrange", "eval_ro", "evalsha_ro"}},
    {acl_use::state, {"hget", "hgetall", "hlen", "unlink", "zrange", "eval_ro", "evalsha_ro"}},
    {acl_use::near_cache, {"client|tracking", "eval_ro", "evalsha_ro"}},
    {acl_use::look, {"eval_ro", "evalsha_ro", "exists", "hget", "hgetall", "hmget", "hscan", "llen", "lrange", "time", "xrange", "xrevrange", "zrange", "zscan", "zscore"}},
    {acl_use::act, {"eval_ro", "evalsha_ro", "exists", "hget", "hgetall", "hmget", "hscan", "llen", "lrange", "time", "xrange", "xrevrange", "zrange", "zscan", "zscore"}},
};

names const of_every_connection{"asking", "cluster|slots", "info", "ping", "role"};
names const of_readers{"exists",        "hexists", "hget",  "hgetall", "hkeys", "hlen",   "hmget",  "hstrlen", "lindex", "llen",   "lpos", "lrange", "pttl",      "pubsub|numsub",
                       "pubsub|shardnumsub", "time",    "xinfo|groups", "xlen",  "xrange", "zcard", "zcount", "zmscore", "zrange", "zrevrange", "zscore"};

names needed_for(acl_use use) {
    names all = of_every_connection;
    all.insert(sent_by.at(use).begin(), sent_by.at(use).end());
    for (auto const* const script : scripts::all()) {
        for (auto const& begin : scripts_of.at(use)) {
            if (!script->name.starts_with(begin)) continue;
            auto called = commands_in(script->text);
            // They have pieces of scripts that write.
            if (use == acl_use::look || use == acl_use::near_cache) std::erase_if(called, [](auto const& name) { return !of_readers.contains(name); });
            all.merge(called);
        }
    }
    if (use == acl_use::near_cache) return all;
    all.insert({"subscribe", "unsubscribe", "ssubscribe", "sunsubscribe"});
    if (use == acl_use::look) return all;
    all.insert({"eval", "evalsha", "publish", "spublish"});
    all.insert({"pexpire", "pttl"});  // of the index, and of what is kept while it is idle
    if (use == acl_use::act) all.merge(needed_for(acl_use::look));
    return all;
}

TEST(acl, allows_what_each_use_needs_and_nothing_else) {
    for (auto const& [use, scripts] : scripts_of) EXPECT_EQ(commands_of(use), needed_for(use)) << acl_use_names[static_cast<std::size_t>(use)];
}

TEST(acl, every_script_belongs_to_a_use) {
    int read_only = 0;
    for (auto const* const script : scripts::all()) {
        bool const is_known = std::ranges::any_of(scripts_of, [&](auto const& of_use) {
            return std::ranges::any_of(of_use.second, [&](auto const& begin) { return script->name.starts_with(begin); });
        });
        EXPECT_TRUE(is_known) << script->name;
        read_only += script->read_only ? 1 : 0;
    }
    EXPECT_GT(read_only, 8);
    for (auto const* const script : scripts::all()) {
        for (auto const use : {acl_use::look, acl_use::near_cache}) {
            bool const is_used = std::ranges::count(scripts_of.at(use), std::string{script->name}) != 0;
            EXPECT_TRUE(script->read_only || !is_used) << script->name;
        }
    }
}

TEST(acl, starts_from_nothing_whatever_the_user_had) {
    for (auto const& [use, scripts] : scripts_of) {
        auto const rules = rules_of(use);
        EXPECT_EQ(rules.at(0), "reset");
        EXPECT_EQ(rules.at(1), "resetchannels");
        EXPECT_THAT(rules, Not(Contains("+client|unblock")));
        EXPECT_THAT(rules, Not(Contains("+scan")));
        EXPECT_THAT(rules, Not(Contains("+select")));
        EXPECT_EQ(std::ranges::count(rules, "+client|tracking"), use == acl_use::near_cache ? 1 : 0);
        EXPECT_THAT(rules_of(use, false), Not(Contains("+cluster|slots")));
    }
    EXPECT_THAT(acl_rules({.database = true}), Contains("+select"));
    EXPECT_THAT(acl_rules({.uses = {acl_use::look}, .scan = true}), Contains("+scan"));
}

TEST(acl, of_several_uses_are_all_of_theirs) {
    auto const rules = acl_rules({.uses = {acl_use::locks, acl_use::look}, .cluster = true});
    for (auto const use : {acl_use::locks, acl_use::look}) {
        for (auto const& name : commands_of(use)) EXPECT_THAT(rules, Contains("+" + name));
    }
    EXPECT_THAT(rules, Contains("~lockstep:{*}:*"));
    EXPECT_THAT(rules, Contains("%R~lockstep-audit:log"));
}

TEST(acl, those_who_look_may_only_read) {
    EXPECT_THAT(rules_of(acl_use::look), Contains("%R~lockstep:{*}:*"));
    EXPECT_THAT(rules_of(acl_use::look), Not(Contains("~lockstep:{*}:*")));
    EXPECT_THAT(rules_of(acl_use::look), Not(Contains("&lockstep:wake:*")));
}

TEST(acl, only_those_who_act_append_to_the_audit_log) {
    for (auto const& [use, scripts] : scripts_of) {
        EXPECT_EQ(std::ranges::count(rules_of(use), "(+rpush %W~lockstep-audit:log)"), use == acl_use::act ? 1 : 0);
    }
}

TEST(acl, takes_a_prefix_as_it_is_and_not_as_a_pattern) {
    EXPECT_THAT(acl_rules({.prefix = "a*b[c]?"}), Contains("~a\\*b\\[c\\]\\?:{*}:*"));
}

TEST(acl, refuses_a_prefix_that_could_be_read_as_more_rules) {
    for (std::string const prefix : {"a ~* +@all x", "a'b", "a\"b", "a`b", "a\\b", "a(b", "a)b", "a\nb", "a{b", ""}) {
        try {
            acl_rules({.prefix = prefix});
            ADD_FAILURE() << prefix;
        } catch (invalid_argument_error const& problem) {
            EXPECT_THAT(problem.what(), HasSubstr("prefix"));
        }
    }
}

}  // namespace
}  // namespace lockstep::observe
