// The audit log: what is written to it is read again, and it does not grow without end where somebody may shorten it.
#include "observe/acl.hpp"
#include "observe/audit.hpp"
#include "support/redis_server.hpp"

#include <lockstep/client.hpp>
#include <lockstep/monitor.hpp>
#include <lockstep/mutex.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace lockstep::test {
namespace {

class audit : public testing::Test {
protected:
    void fill(int count) {
        server.must({"EVAL", "for i = 1, ARGV[1] do redis.call('RPUSH', KEYS[1], 'id 1700000000000-' .. i .. '\\naction ask\\n') end return 1", "1", key, std::to_string(count)});
    }
    std::int64_t length() { return server.must({"LLEN", key}).integer; }

    redis_server server;
    std::string const key = observe::audit_key("lockstep");
    client holder{{.url = server.url()}};
};

TEST_F(audit, tells_what_was_written_whatever_characters_it_has) {
    auto const held = mutex{holder, "a name\n100%"}.acquire();
    monitor eye{holder};
    std::string const reason = "line\nbreak, 100%, %0A, %25, \xC3\xA9", by = "ada\nby root";
    eye.ask(eye.active("a name\n100%").at(0), {.by = by, .reason = reason});
    for (auto const& all : {eye.audit(), sync_wait(eye.async_audit())}) {
        ASSERT_EQ(all.size(), 1U);
        EXPECT_EQ(all[0].action, "ask");
        EXPECT_EQ(all[0].name, "a name\n100%");
        EXPECT_EQ(all[0].kind, "lock");
        EXPECT_EQ(all[0].by, by);
        EXPECT_EQ(all[0].reason, reason);
        EXPECT_EQ(all[0].outcome, "done");
        EXPECT_GT(all[0].at, std::chrono::system_clock::time_point{});
        EXPECT_THAT(all[0].id, testing::HasSubstr("-"));
    }
    EXPECT_EQ(server.must({"EXISTS", "lockstep:{audit}:log"}).integer, 0);
}

TEST_F(audit, passes_over_what_is_no_entry) {
    fill(3);
    server.must({"RPUSH", key, "", "\n\n", "id", "x", "of 1700000000000-2", "of 1700000000000-2\noutcome done\n", std::string(100'000, ' ')});
    auto const all = monitor{holder}.audit();
    ASSERT_EQ(all.size(), 3U);
    EXPECT_EQ(all[0].id, "1700000000000-3");
    EXPECT_EQ(all[0].outcome, "requested");
    EXPECT_EQ(all[1].id, "1700000000000-2");
}

TEST_F(audit, reads_the_newest_of_many) {
    fill(2'600);
    monitor eye{holder};
    auto const all = eye.audit(1'700);
    ASSERT_EQ(all.size(), 1'700U);
    EXPECT_EQ(all.front().id, "1700000000000-2600");
    EXPECT_EQ(all.back().id, "1700000000000-901");
    EXPECT_EQ(eye.audit(1).size(), 1U);
    EXPECT_EQ(eye.audit(0).size(), 0U);
    EXPECT_EQ(eye.audit(100'000).size(), 2'600U);
}

TEST_F(audit, is_shortened_to_the_newest_by_those_who_may) {
    fill(10'999);
    auto const held = mutex{holder, "x"}.acquire();
    monitor eye{holder};
    eye.ask(eye.active("x").at(0));
    EXPECT_EQ(length(), 10'001) << "shortened by the action, and its outcome behind it";
    EXPECT_EQ(eye.audit(1).at(0).name, "x");
    EXPECT_EQ(eye.audit(1).at(0).outcome, "done");
}

TEST_F(audit, stays_as_long_as_it_is_where_nobody_may_shorten_it) {
    std::vector<std::string> words{"ACL", "SETUSER", "actor"};
    for (auto const& rule : observe::acl_rules({.uses = {observe::acl_use::act}})) words.push_back(rule);
    words.insert(words.end(), {"on", ">secret"});
    server.must(words);
    fill(10'999);
    auto const held = mutex{holder, "x"}.acquire();
    client actor{{.url = server.url(), .user = "actor", .password = "secret"}};
    monitor eye{actor};
    EXPECT_TRUE(eye.ask(eye.active("x").at(0)));
    EXPECT_EQ(length(), 11'001);
    EXPECT_EQ(eye.audit(1).at(0).outcome, "done");
}

// Nothing is done that could not be noted.
TEST_F(audit, of_a_user_who_may_not_write_it_keeps_the_action_from_being_done) {
    std::vector<std::string> words{"ACL", "SETUSER", "worker"};
    for (auto const& rule : observe::acl_rules({.uses = {observe::acl_use::locks, observe::acl_use::look}})) words.push_back(rule);
    words.insert(words.end(), {"on", ">secret"});
    server.must(words);
    auto const held = mutex{holder, "x"}.acquire();
    client worker{{.url = server.url(), .user = "worker", .password = "secret"}};
    monitor eye{worker};
    EXPECT_THROW(eye.release(eye.active("x").at(0), {.force = true}), server_error);
    EXPECT_TRUE(held.valid());
    EXPECT_EQ(length(), 0);
}

}  // namespace
}  // namespace lockstep::test
