#include "redis/verdict.hpp"

#include <gtest/gtest.h>

namespace lockstep::redis {
namespace {

TEST(verdict, retries_what_the_server_refused_for_the_moment) {
    for (auto const* const text :
         {"LOADING Redis is loading the dataset in memory",
          "BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.",
          "TRYAGAIN Multiple keys request during rehashing of slot",
          "MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.",
          "CLUSTERDOWN Hash slot not served", "CLUSTERDOWN"}) {
        EXPECT_EQ(judge(text).what, verdict::retry_later) << text;
    }
}

TEST(verdict, knows_the_servers_own_wording_from_that_of_a_script) {
    for (auto const* const text :
         {"LOADING Redis is loading the dataset in memory", "LOADING Valkey is loading the dataset in memory",
          "BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.",
          "BUSY Valkey is busy running a script. You can only call FUNCTION KILL or SHUTDOWN NOSAVE.",
          "BUSY Redis is busy running a module command.",
          "TRYAGAIN Multiple keys request during rehashing of slot",
          "MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.",
          "MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'yes'.", "CLUSTERDOWN The cluster is down",
          "CLUSTERDOWN The cluster is down and only accepts read commands", "CLUSTERDOWN Hash slot not served",
          "READONLY You can't write against a read only replica.",
          "READONLY You can't write against a read only replica. script: 0123, on @user_script:1.",
          "READONLY You can not run script with write flag on readonly replica.",
          "NOAUTH Authentication required.", "NOSCRIPT No matching script. Please use EVAL.", "MOVED 3999 127.0.0.1:6381",
          "ASK 3999 127.0.0.1:6381"}) {
        EXPECT_TRUE(is_servers_own(text)) << text;
    }
    for (auto const* const text : {"BUSY held", "LOADING", "TRYAGAIN later", "READONLY mode", "NOAUTH you", "CLUSTERDOWN",
                                   "MASTERDOWN", "ERR BUSY Redis is busy running a script"}) {
        EXPECT_FALSE(is_servers_own(text)) << text;
    }
}

TEST(verdict, delivers_what_is_the_callers_business) {
    for (auto const* const text :
         {"", "ERR unknown command 'x'", "WRONGTYPE Operation against a key",
          "OOM command not allowed when used memory", "MISCONF Redis is configured to save RDB snapshots",
          "NOPERM this user has no permissions", "EXECABORT Transaction",
          "NOREPLICAS Not enough good replicas to write.", "UNBLOCKED client unblocked via CLIENT UNBLOCK",
          "BUSYGROUP Consumer Group name already exists", "BUSYKEY Target key name already exists.",
          "NOTBUSY No scripts", "WRONGPASS invalid username-password pair", "loading", " LOADING", "MOVEDX 1 a:1"}) {
        EXPECT_EQ(judge(text), judgement{}) << text;
    }
}

TEST(verdict, tells_what_may_pass_from_what_stays_refused) {
    for (auto const* const text :
         {"OOM command not allowed when used memory > 'maxmemory'.", "MISCONF Redis is configured to save RDB snapshots",
          "NOREPLICAS Not enough good replicas to write.", "LOADING Redis is loading the dataset in memory",
          "BUSY Redis is busy running a script.", "READONLY You can't write against a read only replica.", "TRYAGAIN Multiple keys",
          "CLUSTERDOWN Hash slot not served", "MASTERDOWN Link with MASTER is down", "NOAUTH Authentication required."}) {
        EXPECT_TRUE(may_pass(text)) << text;
    }
    for (auto const* const text : {"", "WRONGTYPE Operation against a key", "NOPERM this user has no permissions", "ERR OOM",
                                   "LOCKSTEP_FORMAT this lock", "MOVED 3999 127.0.0.1:6381", "OOMX"}) {
        EXPECT_FALSE(may_pass(text)) << text;
    }
}

TEST(verdict, knows_the_words_with_an_answer_of_their_own) {
    EXPECT_EQ(judge("NOSCRIPT No matching script. Please use EVAL.").what, verdict::noscript);
    EXPECT_EQ(judge("READONLY You can't write against a read only replica.").what, verdict::read_only);
    EXPECT_EQ(judge("NOAUTH Authentication required.").what, verdict::log_in);
}

TEST(verdict, reads_where_a_slot_went) {
    EXPECT_EQ(judge("MOVED 3999 127.0.0.1:6381"), (judgement{verdict::moved, 3999, "127.0.0.1", 6381}));
    EXPECT_EQ(judge("ASK 0 node-3.example:7000"), (judgement{verdict::ask, 0, "node-3.example", 7000}));
    EXPECT_EQ(judge("MOVED 16383 ::1:6381"), (judgement{verdict::moved, 16383, "::1", 6381}));
    EXPECT_EQ(judge("MOVED 16383 [::1]:6381"), (judgement{verdict::moved, 16383, "::1", 6381}));
}

TEST(verdict, reads_a_missing_host_as_the_one_that_answered) {
    EXPECT_EQ(judge("MOVED 1 :6381"), (judgement{verdict::moved, 1, "", 6381}));
    EXPECT_EQ(judge("ASK 1 ?:6381"), (judgement{verdict::ask, 1, "", 6381}));
}

TEST(verdict, delivers_a_redirection_it_cannot_read) {
    for (auto const* const text : {"MOVED", "MOVED ", "MOVED 1", "MOVED 1 ", "MOVED 1 host", "MOVED x host:1",
                                   "MOVED 16384 h:1", "MOVED -1 h:1", "MOVED 1 h:", "MOVED 1 h:0", "MOVED 1 h:65536",
                                   "MOVED 1 h:1 ", "MOVED 1 a b:1", "MOVED  1 h:1", "ASK 1: h", "MOVED 1:2"}) {
        EXPECT_EQ(judge(text), judgement{}) << text;
    }
}

TEST(keep_alive, takes_every_refusal_for_life_but_a_lost_log_in) {
    for (auto const* const text : {"MISCONF x", "BUSY x", "LOADING x", "MASTERDOWN x", "NOPERM x", "ERR x", ""}) {
        EXPECT_TRUE(is_alive_answer(text)) << text;
    }
    EXPECT_FALSE(is_alive_answer("NOAUTH Authentication required."));
}

}  // namespace
}  // namespace lockstep::redis
