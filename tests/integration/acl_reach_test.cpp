// How far the rules of `lockstep acl` reach: every command of the server, as each kind of user. What lies outside of the prefix is not read, changed or
// disturbed, and its names are not learned; who looks writes nothing; the audit log is appended to by those who act, and nothing else.

#include "observe/acl.hpp"
#include "observe/audit.hpp"
#include "support/command_lines.hpp"
#include "support/eventually.hpp"
#include "support/redis_server.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>
#include <set>
#include <string>
#include <vector>

namespace lockstep::test {
namespace {

using observe::acl_use;
using testing::HasSubstr;
using names = std::set<std::string>;
using line = std::vector<std::string>;

bool is_refused(reply const& answer) {
    if (!answer.is_error()) return false;
    constexpr std::string_view reasons[] = {"NOPERM", "user executing the script can't", "not allowed from script", "not allowed from read-only script"};
    return std::ranges::any_of(reasons, [&](auto reason) { return answer.text.find(reason) != std::string::npos; });
}
// Then nothing can be told of the user's rights.
bool is_malformed(reply const& answer) { return answer.is_error() && answer.text.find("wrong number of arg") != std::string::npos; }

bool mentions(reply const& answer, std::string const& text) {
    return answer.text.find(text) != std::string::npos || std::ranges::any_of(answer.elements, [&](reply const& one) { return mentions(one, text); });
}

class acl_reach : public testing::TestWithParam<acl_use> {
protected:
    acl_reach() {
        std::vector<line> const others{{"SET", "other:secret", "SECRET"}, {"HSET", "lockstepping:{x}:lock", "SECRET", "SECRET"}, {"RPUSH", "lockstep:x", "SECRET"},
                                       {"SADD", "lockstep", "SECRET"}, {"ZADD", "{lockstep}:{x}:lock", "1", "SECRET"}, {"XADD", "xlockstep:{x}:stream", "*", "SECRET", "SECRET"},
                                       {"FUNCTION", "LOAD", "#!lua name=SECRETlib\nredis.register_function('SECRETf', function() return 1 end)"}};
        for (auto const& one : others) server.must(one);
        // With an "x" in each, which is what lines of commands are about.
        std::vector<line> const own{{"SET", "lockstep:{o}:string", "1"}, {"HSET", "lockstep:{o}:hash", "x", "1"}, {"RPUSH", "lockstep:{o}:list", "x", "y"}, {"SADD", "lockstep:{o}:set", "x"},
                                    {"ZADD", "lockstep:{o}:zset", "1", "x"}, {"XADD", "lockstep:{o}:stream", "*", "x", "1"}, {"XGROUP", "CREATE", "lockstep:{o}:stream", "x", "0"}};
        for (auto const& one : own) server.must(one);
        server.must({"RPUSH", audit, "first", "second"});
        blocked.must({"CLIENT", "SETNAME", "SECRETclient"});
        blocked.send({"BLPOP", "other:list", "0"});
        listening.must({"SUBSCRIBE", "SECRETchannel"});
        all = lines_of_all_commands(admin);
        login();
    }

    void make_user(acl_use use, std::string const& name = "user") {
        line words{"ACL", "SETUSER", name};
        std::ranges::copy(observe::acl_rules({.uses = {use}, .cluster = true}), std::back_inserter(words));
        words.insert(words.end(), {"on", ">password"});
        server.must(words);
    }
    void login() {
        make_user(GetParam());
        server.must({"CONFIG", "SET", "requirepass", "admin"});  // or RESET would make an administrator of the user
        reconnect();
    }
    void reconnect() {
        user = server.connect();
        user.must({"AUTH", "user", "password"});
    }
    reply run(line const& words) {
        auto answer = user.command(words);
        if (!is_refused(answer) && !is_malformed(answer)) reconnect();  // it may subscribe, or stop to answer
        return answer;
    }
    // By a script, which is refused what its user is.
    reply run_in_script(line words) {
        line call{"EVAL_RO", "return redis.pcall(unpack(ARGV))", "0"};
        if (GetParam() != acl_use::look && GetParam() != acl_use::near_cache) call[0] = "EVAL";
        call.insert(call.end(), words.begin(), words.end());
        return run(call);
    }
    line contents(line const& keys) {
        line all_of_them;
        for (auto const& key : keys) all_of_them.push_back(server.must({"DUMP", key}).text + " " + std::to_string(server.must({"PTTL", key}).integer));
        return all_of_them;
    }

    static line const other_keys, own_keys;
    inline static std::string const audit = observe::audit_key("lockstep");
    redis_server server{{.config = {"enable-module-command yes", "enable-debug-command yes"}}};  // refused to the user, not to all
    raw_client admin = server.connect(), blocked = server.connect(), listening = server.connect(), user = server.connect();
    std::vector<command_line> all;
};
line const acl_reach::other_keys{"other:secret", "lockstepping:{x}:lock", "lockstep:x", "lockstep", "{lockstep}:{x}:lock", "xlockstep:{x}:stream", "other:list", "other:none"};
line const acl_reach::own_keys{"lockstep:{o}:string", "lockstep:{o}:hash", "lockstep:{o}:list", "lockstep:{o}:set", "lockstep:{o}:zset", "lockstep:{o}:stream", "lockstep:{o}:none"};

// Without keys these tell of the server as a whole, or of nothing: INFO counts, ROLE and CLUSTER SLOTS know addresses, PUBSUB NUMSUB tells how many subscribe to a
// channel whose name is known. EVAL is tried with each of the others inside.
names const allowed_to_all{"asking", "auth", "cluster|slots", "eval_ro", "evalsha_ro", "hello", "info", "ping", "quit", "reset", "role", "time"};
names allowed_besides(acl_use use) {
    names more;
    if (use != acl_use::near_cache) more = {"unsubscribe", "sunsubscribe"};
    if (use != acl_use::near_cache && use != acl_use::state) more.insert({"pubsub|numsub", "pubsub|shardnumsub"});
    if (use != acl_use::near_cache && use != acl_use::look) more.insert({"eval", "evalsha"});
    if (use == acl_use::locks) more.insert({"exec", "multi", "wait"});
    if (use == acl_use::messaging) more.insert("punsubscribe");
    if (use == acl_use::near_cache) more.insert("client|tracking");
    return more;
}

TEST_P(acl_reach, ends_at_the_prefix_whatever_the_command) {
    auto const before = contents(other_keys);
    auto const settings = describe(server.must({"CONFIG", "GET", "*"})), users = describe(server.must({"ACL", "LIST"}));
    names tried, answered;
    auto const note = [&](command_line const& what, line const& words, reply const& answer) {
        if (is_malformed(answer)) return;
        tried.insert(what.command);
        if (is_refused(answer)) return;
        answered.insert(what.command);
        EXPECT_FALSE(mentions(answer, "SECRET")) << testing::PrintToString(words) << ": " << describe(answer);
        EXPECT_EQ(what.keys(), 0U) << testing::PrintToString(words) << ": " << describe(answer);
    };
    for (auto const& what : all) {
        for (std::size_t i = 0; i < std::max<std::size_t>(what.keys(), 1); ++i) {
            // All that is not this key is the user's own.
            for (auto const* const key : {"other:secret", "lockstep:x"}) {
                auto const words = what.with_keys(i, key, "lockstep:{o}:hash");
                note(what, words, run(words));
                auto const answer = run_in_script(words);
                EXPECT_FALSE(mentions(answer, "SECRET")) << testing::PrintToString(words) << ": " << describe(answer);
                if (what.keys() == 0) break;
                EXPECT_TRUE(answer.is_error()) << testing::PrintToString(words) << ": " << describe(answer);
            }
        }
    }
    EXPECT_GT(tried.size(), 300U);
    names allowed = allowed_to_all;
    allowed.merge(allowed_besides(GetParam()));
    EXPECT_THAT(answered, testing::IsSubsetOf(allowed));
    EXPECT_EQ(contents(other_keys), before);
    EXPECT_EQ(describe(server.must({"ACL", "LIST"})), users);
    EXPECT_EQ(describe(server.must({"CONFIG", "GET", "*"})), settings);
    EXPECT_THAT(describe(server.must({"FUNCTION", "LIST"})), HasSubstr("SECRETlib"));
    // Whoever waits still waits, and nobody was sent anything.
    EXPECT_EQ(server.info("blocked_clients"), "1");
    EXPECT_EQ(server.must({"PUBLISH", "SECRETchannel", "mark"}).integer, 1);
    EXPECT_EQ(listening.read().elements.at(2).text, "mark");
    server.must({"RPUSH", "other:list", "mark"});
    EXPECT_EQ(blocked.read().elements.at(1).text, "mark");
}

TEST_P(acl_reach, covers_no_channel_of_others) {
    for (line const& words : std::vector<line>{{"SUBSCRIBE", "SECRETchannel"}, {"PSUBSCRIBE", "*"}, {"SSUBSCRIBE", "lockstep"}, {"PUBLISH", "SECRETchannel", "x"}, {"SPUBLISH", "lockstepping:{x}:y", "x"},
                                               {"PUBSUB", "CHANNELS"}, {"PUBSUB", "SHARDCHANNELS"}, {"PUBSUB", "NUMPAT"}}) {
        EXPECT_TRUE(is_refused(run(words))) << testing::PrintToString(words);
    }
}

TEST_P(acl_reach, to_the_audit_log_is_to_append_for_those_who_act_and_to_read_for_those_who_look) {
    names answered;
    std::size_t appended = 0;
    for (auto const& what : all) {
        for (std::size_t i = 0; i < what.keys(); ++i) {
            auto const words = what.with_keys(i, audit, "lockstep:{o}:list");
            for (bool const in_script : {false, true}) {
                auto const answer = in_script ? run_in_script(words) : run(words);
                if (is_malformed(answer) || is_refused(answer) || (in_script && answer.is_error())) continue;
                answered.insert(what.command);
                if (what.command == "rpush" && !answer.is_error()) ++appended;
            }
        }
    }
    bool const reads = GetParam() == acl_use::look || GetParam() == acl_use::act;
    EXPECT_EQ(answered.contains("lrange"), reads);
    EXPECT_EQ(answered.contains("rpush"), GetParam() == acl_use::act);
    EXPECT_EQ(answered.empty(), !reads);
    auto const log = server.must({"LRANGE", audit, "0", "-1"});
    EXPECT_GE(log.elements.size(), 2 + appended);
    EXPECT_EQ(log.elements.at(0).text, "first");
    EXPECT_EQ(log.elements.at(1).text, "second");
    EXPECT_EQ(server.must({"PTTL", audit}).integer, -1);
    EXPECT_EQ(log.elements.size() > 2, GetParam() == acl_use::act);
}

INSTANTIATE_TEST_SUITE_P(each, acl_reach,
                         testing::Values(acl_use::locks, acl_use::messaging, acl_use::jobs, acl_use::state, acl_use::near_cache, acl_use::look, acl_use::act),
                         [](auto const& use) {
                             std::string name = observe::acl_use_names[static_cast<std::size_t>(use.param)];
                             std::ranges::replace(name, '-', '_');
                             return name;
                         });

class acl_readers : public acl_reach {};

TEST_P(acl_readers, write_nothing_within_the_prefix_either) {
    auto const before = contents(own_keys);
    auto listener = server.connect();
    listener.must({"AUTH", "admin"});
    listener.must({"SUBSCRIBE", "lockstep:news"});
    for (auto const& what : all) {
        for (auto const& key : own_keys) {
            auto const words = what.with_keys(0, key, key);
            run(words);
            run_in_script(words);
            if (what.keys() == 0) break;
        }
    }
    for (auto const* const channel : {"lockstep:news", "lockstep:wake:x", "lockstep:{o}:y"}) EXPECT_TRUE(is_refused(run({"PUBLISH", channel, "x"}))) << channel;
    EXPECT_EQ(contents(own_keys), before);
    server.must({"PUBLISH", "lockstep:news", "mark"});
    EXPECT_EQ(listener.read().elements.at(2).text, "mark");
}
INSTANTIATE_TEST_SUITE_P(each, acl_readers, testing::Values(acl_use::near_cache, acl_use::look),
                         [](auto const& use) { return use.param == acl_use::look ? std::string{"look"} : std::string{"near_cache"}; });

// docs/acl.md: what EVAL means. A script of theirs has written nothing, so it can be ended.
TEST_P(acl_readers, run_no_script_that_only_the_end_of_the_server_ends) {
    server.must({"CONFIG", "SET", "busy-reply-threshold", "10"});
    user.send({"EVAL_RO", "redis.pcall('HSET', KEYS[1], 'x', '2') while true do end", "1", "lockstep:{o}:hash"});
    ASSERT_TRUE(eventually([&] { return server.command({"PING"}).text.starts_with("BUSY"); }));
    EXPECT_EQ(server.must({"SCRIPT", "KILL"}).text, "OK");
    EXPECT_TRUE(user.read().is_error());
    EXPECT_EQ(server.must({"HGET", "lockstep:{o}:hash", "x"}).text, "1");
}

// What a user had before is gone: other passwords, patterns and selectors.
TEST(acl_rules, begin_with_a_reset) {
    redis_server server;
    server.must({"SET", "other", "SECRET"});
    server.must({"ACL", "SETUSER", "legacy", "on", ">old", "~*", "&*", "+@all", "(~* +@all)"});
    line words{"ACL", "SETUSER", "legacy"};
    std::ranges::copy(observe::acl_rules({}), std::back_inserter(words));
    words.insert(words.end(), {"on", ">new"});
    server.must(words);
    auto user = server.connect();
    EXPECT_TRUE(user.command({"AUTH", "legacy", "old"}).is_error());
    user.must({"AUTH", "legacy", "new"});
    EXPECT_THAT(user.command({"GET", "other"}).text, HasSubstr("NOPERM"));
    EXPECT_THAT(user.command({"PUBLISH", "other", "x"}).text, HasSubstr("NOPERM"));
}

TEST(acl_rules, do_not_allow_all_channels_where_new_users_may_use_them) {
    redis_server server{{.config = {"acl-pubsub-default allchannels"}}};
    line words{"ACL", "SETUSER", "user"};
    std::ranges::copy(observe::acl_rules({.uses = {acl_use::act}}), std::back_inserter(words));
    words.insert(words.end(), {"on", ">password"});
    server.must(words);
    auto user = server.connect();
    user.must({"AUTH", "user", "password"});
    EXPECT_THAT(user.command({"PUBLISH", "other", "x"}).text, HasSubstr("NOPERM"));
    EXPECT_THAT(user.command({"SUBSCRIBE", "other"}).text, HasSubstr("NOPERM"));
}

// The characters of a pattern are meant as they are.
TEST(acl_rules, of_a_prefix_with_characters_of_patterns_fit_that_prefix_only) {
    redis_server server;
    line words{"ACL", "SETUSER", "user"};
    std::ranges::copy(observe::acl_rules({.prefix = "a*[b]?^", .uses = {acl_use::act}}), std::back_inserter(words));
    words.insert(words.end(), {"on", ">password"});
    server.must(words);
    auto user = server.connect();
    user.must({"AUTH", "user", "password"});
    EXPECT_EQ(user.command({"RPUSH", "a*[b]?^:{x}:list", "1"}).integer, 1);
    EXPECT_EQ(user.command({"RPUSH", observe::audit_key("a*[b]?^"), "1"}).integer, 1);
    for (auto const* const key : {"axb?^:{x}:list", "a*bx^:{x}:list", "a*[b]x^:{x}:list"}) EXPECT_THAT(user.command({"RPUSH", key, "1"}).text, HasSubstr("NOPERM")) << key;
}

}  // namespace
}  // namespace lockstep::test
