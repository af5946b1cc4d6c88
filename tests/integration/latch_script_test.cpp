// The server's half of a latch: each rule of its scripts, on a real server with the test's own clock.
// gate_script_simulation_test.cpp puts the rules together at random.

#include "gate_script_support.hpp"
#include "support/eventually.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace {

using lockstep::test::eventually;
using lockstep::test::latch_scripts;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::StartsWith;
namespace scripts = lockstep::scripts;

class latch_script : public testing::Test {
protected:
    latch_script() {
        for (auto const* const client : {"a", "b", "c"}) latch.connect(client);
    }
    ~latch_script() override { EXPECT_EQ(lockstep::test::session_damage(latch.sessions()), ""); }
    latch_scripts latch;
};

TEST_F(latch_script, opens_for_all_when_its_count_is_reached) {
    auto const created = latch.create(3);
    EXPECT_EQ(created.word, "created");
    EXPECT_EQ(created.value, 3);
    EXPECT_EQ(latch.wait("a.1").word, "waiting");
    EXPECT_EQ(latch.wait("a.2").value, 3);
    EXPECT_EQ(latch.wait("b.1").word, "waiting");
    EXPECT_EQ(latch.count_down(2, "s", 1).value, 1);
    EXPECT_EQ(latch.wait("c.1").value, 1);
    EXPECT_EQ(latch.leave("c.1").word, "left");
    EXPECT_THAT(latch.told(), IsEmpty());
    auto const last = latch.count_down(1, "s", 2);
    EXPECT_EQ(last.word, "counted");
    EXPECT_EQ(last.value, 0);
    EXPECT_THAT(latch.told(), ElementsAre("a", "b"));
    for (auto const* const hold : {"a.3", "b.2", "c.2"}) EXPECT_EQ(latch.wait(hold).word, "open");
    EXPECT_EQ(latch.entries('c'), 0);
}

TEST_F(latch_script, is_created_once) {
    EXPECT_EQ(latch.create(3).word, "created");
    latch.count_down(2, "s", 1);
    auto const again = latch.create(3);
    EXPECT_EQ(again.word, "exists");
    EXPECT_EQ(again.value, 1);
    auto const before = latch.hash();
    EXPECT_THAT(latch.create(4).word, StartsWith("LOCKSTEP_COUNT 3 "));
    EXPECT_EQ(latch.hash(), before);
    latch.count_down(1, "s", 2);
    EXPECT_EQ(latch.create(3).value, 0) << "an open one stays open";
}

TEST_F(latch_script, is_open_from_the_start_with_a_count_of_zero) {
    EXPECT_EQ(latch.create(0).value, 0);
    EXPECT_EQ(latch.wait("a.1").word, "open");
}

TEST_F(latch_script, is_absent_before_it_is_created) {
    EXPECT_EQ(latch.wait("a.1").word, "absent");
    EXPECT_EQ(latch.count_down(1, "s", 1).word, "absent");
    EXPECT_EQ(latch.leave("a.1").word, "gone");
    EXPECT_FALSE(latch.exists());
}

TEST_F(latch_script, counts_a_count_down_once_that_is_sent_again) {
    latch.create(3);
    for (int i = 0; i < 3; ++i) EXPECT_EQ(latch.count_down(1, "s", 1).value, 2);
    EXPECT_EQ(latch.count_down(1, "s", 1, 1).word, "counted") << "counted is counted, also after the deadline";
    EXPECT_EQ(latch.count_down(1, "t", 1).value, 1) << "another session";
    EXPECT_EQ(latch.count_down(1, "s", 2).value, 0);
    auto const again = latch.count_down(1, "s", 2);
    EXPECT_EQ(again.word, "counted") << "also when nothing is left";
    EXPECT_EQ(again.value, 0);
}

TEST_F(latch_script, counts_each_of_thousands_once_that_are_in_flight_and_sent_again) {
    latch.create(6501);
    for (int const calls : {1500, 5000})
        for (int i = 0; i < 2 * calls; ++i)
            ASSERT_EQ(latch.count_down(1, latch.text(calls) + "-" + latch.text(i % calls), 1).word, "counted");
    EXPECT_EQ(latch.wait("a.1").value, 1);
}

TEST_F(latch_script, forgets_sessions_that_are_idle_for_a_minute) {
    latch.create(10'000);
    for (int i = 0; i < 1500; ++i) latch.count_down(1, "s" + latch.text(i), 1);
    EXPECT_EQ(latch.entries('a'), 1500);
    latch.pass(61'000);
    for (int i = 0; i < 600; ++i) latch.count_down(1, "t" + latch.text(i), 1);
    EXPECT_EQ(latch.entries('a'), 900) << "two by each call, and one new";
    EXPECT_EQ(latch.count_down(1, "t0", 1).value, 7900) << "known";
    EXPECT_EQ(latch.count_down(1, "s0", 1).value, 7899) << "forgotten";
}

TEST_F(latch_script, refuses_to_count_more_than_is_left) {
    latch.create(3);
    latch.count_down(1, "s", 1);
    auto const before = latch.hash();
    EXPECT_THAT(latch.count_down(3, "s", 2).word, StartsWith("LOCKSTEP_ARGUMENT"));
    EXPECT_EQ(latch.hash(), before);
    EXPECT_EQ(latch.count_down(2, "s", 2).value, 0) << "the sequence is not used up";
    EXPECT_THAT(latch.count_down(1, "s", 3).word, StartsWith("LOCKSTEP_ARGUMENT"));
}

TEST_F(latch_script, does_nothing_after_its_deadline) {
    auto const past = latch.now() - 1;
    EXPECT_EQ(latch.create(2, past).word, "late");
    EXPECT_FALSE(latch.exists());
    latch.create(2);
    auto const before = latch.hash();
    EXPECT_EQ(latch.count_down(1, "s", 1, past).word, "late");
    EXPECT_EQ(latch.wait("a.1", past).word, "late");
    EXPECT_EQ(latch.hash(), before);
    EXPECT_EQ(latch.count_down(1, "s", 1, past + 60'000).value, 1);
}

TEST_F(latch_script, forgets_a_client_that_leaves_but_not_one_that_asked_since) {
    latch.create(1);
    latch.wait("a.1");
    latch.wait("b.3");
    latch.wait("b.2");  // comes late
    EXPECT_EQ(latch.leave("a.1").word, "left");
    EXPECT_EQ(latch.leave("b.2").word, "gone");
    latch.count_down(1, "s", 1);
    EXPECT_THAT(latch.told(), ElementsAre("b"));
}

TEST_F(latch_script, lets_one_look_without_waiting) {
    latch.create(1);
    auto const before = latch.hash();
    EXPECT_EQ(latch.wait("").word, "waiting");
    EXPECT_EQ(latch.hash(), before);
}

TEST_F(latch_script, tells_a_thousand_clients) {
    latch.create(1);
    for (int i = 0; i < 1500; ++i) latch.wait("x" + latch.text(i) + ".1");
    latch.wait("a.1");
    latch.count_down(1, "s", 1);
    EXPECT_THAT(latch.told(), ElementsAre("a"));
    EXPECT_EQ(latch.entries('c'), 0);
}

TEST_F(latch_script, stays_open_for_the_retention_after_its_last_use) {
    latch.create(60);
    for (int i = 1; i <= 60; ++i) {
        latch.pass(latch.retention / 10);
        if (i % 2 == 0) latch.wait("a." + latch.text(i));
        latch.count_down(1, "s", i);
        EXPECT_GE(latch.expires_in(), latch.retention - 1000);
    }
    EXPECT_LE(std::stoi(latch.server.info("cmdstat_pexpire").substr(6)), 7);
    for (int i = 0; i < 4; ++i) {
        latch.pass(latch.retention - 1000);
        EXPECT_EQ(latch.wait("").word, "open");
        EXPECT_GE(latch.expires_in(), latch.retention - 1000) << "looking is using it";
    }
    latch.pass(latch.retention - 1000);
    EXPECT_EQ(latch.create(60).word, "exists");
    latch.pass(2 * latch.retention);
    EXPECT_TRUE(eventually([&] { return !latch.exists(); }));
    EXPECT_EQ(latch.wait("a.62").word, "absent");
}

TEST_F(latch_script, refuses_another_format_or_type_and_writes_nothing) {
    auto const all = [&] {
        return std::vector{latch.create(1), latch.count_down(1, "s", 1), latch.wait("a.1"), latch.leave("a.1")};
    };
    for (std::string const kind : {"broadcast 1", "latch 2", "1", ""}) {
        latch.commands.must({"DEL", latch.key});
        latch.commands.must({"HSET", latch.key, kind.empty() ? "colour" : "v", kind, "ca", "1", "l", "1", "k", "1"});
        auto const before = latch.hash();
        for (auto const& answer : all()) EXPECT_THAT(answer.word, StartsWith("LOCKSTEP_FORMAT")) << kind;
        EXPECT_EQ(latch.hash(), before);
    }
    latch.commands.must({"SET", latch.key, "mine"});
    for (auto const& answer : all()) EXPECT_THAT(answer.word, StartsWith("WRONGTYPE"));
    EXPECT_EQ(latch.commands.must({"GETDEL", latch.key}).text, "mine");
}

TEST_F(latch_script, refuses_bad_arguments_before_it_writes) {
    latch.create(5);
    auto const before = latch.hash();
    auto const refused = [&](scripts::script const& script, latch_scripts::arguments const& good, std::size_t at) {
        for (std::string const bad : {"", "x y", "-1", "0.5", "nan", "inf", "1e3", "0x1", "99999999999999999"}) {
            auto given = good;
            given[at] = bad;
            if (good[at] == "a.1" && bad.find_first_of("05") == 0) continue;          // a hold may look like that
            if (good[at] == "s" && !bad.empty() && bad != "x y") continue;            // and a session
            if (&script == &scripts::latch_wait && at == 0 && bad.empty()) continue;  // looks only
            EXPECT_THAT(latch.call(script, given).word, StartsWith("LOCKSTEP_ARGUMENT")) << script.name << at << bad;
        }
    };
    for (std::size_t const at : {0, 1, 2}) refused(scripts::latch_create, {"5", "9999999999999", latch.rules}, at);
    for (std::size_t const at : {0, 1, 2, 3, 4})
        refused(scripts::latch_count_down, {"1", "s", "1", "9999999999999", latch.rules}, at);
    for (std::size_t const at : {0, 1, 2}) refused(scripts::latch_wait, {"a.1", "9999999999999", latch.rules}, at);
    for (std::size_t const at : {0, 1}) refused(scripts::latch_leave, {"a.1", latch.rules}, at);
    EXPECT_THAT(latch.count_down(0, "s", 1).word, StartsWith("LOCKSTEP_ARGUMENT"));
    EXPECT_EQ(latch.hash(), before);
}

TEST_F(latch_script, changes_all_or_nothing_when_the_server_is_out_of_memory) {
    latch.create(1);
    latch.wait("a.1");
    auto const before = latch.hash();
    latch.server.must({"CONFIG", "SET", "maxmemory", "1"});
    EXPECT_THAT(latch.count_down(1, "s", 1).word, StartsWith("OOM"));
    EXPECT_EQ(latch.hash(), before);
    EXPECT_THAT(latch.told(), IsEmpty());
    EXPECT_EQ(latch.leave("a.1").word, "left");
    latch.server.must({"CONFIG", "SET", "maxmemory", "0"});
    EXPECT_EQ(latch.count_down(1, "s", 1).value, 0);
}

}  // namespace
