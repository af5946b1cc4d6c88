// The server's half of a broadcast event: each rule of its scripts, on a real server with the test's own clock.
// gate_script_simulation_test.cpp puts the rules together at random.

#include "gate_script_support.hpp"
#include "support/eventually.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace {

using lockstep::test::broadcast_scripts;
using lockstep::test::eventually;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::StartsWith;
namespace scripts = lockstep::scripts;

class broadcast_script : public testing::Test {
protected:
    broadcast_script() {
        for (auto const* const client : {"a", "b", "c"}) event.connect(client);
    }
    ~broadcast_script() override { EXPECT_EQ(lockstep::test::session_damage(event.sessions()), ""); }
    broadcast_scripts event;
};

TEST_F(broadcast_script, tells_every_client_that_waits_once_when_it_is_set) {
    EXPECT_EQ(event.wait("a.1").word, "waiting");
    EXPECT_EQ(event.wait("a.2").word, "waiting");
    EXPECT_EQ(event.wait("b.1").word, "waiting");
    EXPECT_EQ(event.entries('c'), 2) << "once per client";
    auto const set = event.set("s", 1);
    EXPECT_EQ(set.word, "set");
    EXPECT_THAT(event.told(), ElementsAre("a", "b"));
    EXPECT_EQ(event.entries('c'), 0);
    auto const open = event.wait_again("a.3", 0);
    EXPECT_EQ(open.word, "open");
    EXPECT_EQ(open.value, set.value);
    event.set("s", 2);
    EXPECT_THAT(event.told(), IsEmpty()) << "nobody waits any more";
}

TEST_F(broadcast_script, stays_set_until_it_is_cleared) {
    event.set("s", 1);
    for (auto const* const hold : {"a.1", "b.1", "a.2"}) EXPECT_EQ(event.wait(hold).word, "open");
    EXPECT_EQ(event.clear("s", 2).word, "cleared");
    EXPECT_EQ(event.wait("c.1").word, "waiting");
    EXPECT_EQ(event.clear("s", 3).word, "cleared");
    EXPECT_EQ(event.entries('c'), 1) << "clearing forgets nobody";
}

TEST_F(broadcast_script, frees_who_waited_at_a_set_also_when_it_looks_only_after_a_clear) {
    auto const before = event.wait("a.1");
    auto const set = event.set("s", 1);
    event.clear("s", 2);
    auto const newcomer = event.wait("b.1");
    EXPECT_EQ(newcomer.word, "waiting") << "it came after the clear";
    EXPECT_EQ(newcomer.value, set.value);
    EXPECT_EQ(event.wait_again("a.2", before.value).word, "open");
    EXPECT_EQ(event.wait_again("b.2", newcomer.value).word, "waiting");
}

TEST_F(broadcast_script, has_a_larger_generation_with_each_set) {
    auto last = event.set("s", 1).value;
    for (int i = 2; i < 5; ++i) {
        if (i == 3) event.pass(-event.hour);
        if (i == 4) event.commands.must({"DEL", event.key}), event.pass(event.hour);
        auto const next = event.set("s", i).value;
        EXPECT_GT(next, last) << (i == 3 ? "the clock went back" : i == 4 ? "the hash was gone" : "");
        last = next;
    }
}

TEST_F(broadcast_script, counts_a_set_or_clear_once_that_is_sent_again) {
    auto const set = event.set("s", 1);
    EXPECT_EQ(event.clear("other", 1).word, "cleared");
    auto const again = event.set("s", 1);
    EXPECT_EQ(again.word, "set");
    EXPECT_EQ(again.value, set.value);
    EXPECT_EQ(event.wait("a.1").word, "waiting") << "the clear stands";
    EXPECT_EQ(event.set("s", 1, 1).word, "set") << "counted is counted, also after the deadline";
    event.set("s", 2);
    EXPECT_EQ(event.clear("other", 1).word, "cleared");
    EXPECT_EQ(event.wait("a.2").word, "open") << "and the set stands";
    EXPECT_EQ(event.clear("s", 2).word, "cleared");
    EXPECT_EQ(event.wait("a.3").word, "open") << "sets and clears share their sequence";
}

TEST_F(broadcast_script, counts_a_clear_also_when_there_is_nothing_to_clear) {
    event.clear("s", 1);
    event.set("other", 1);
    event.clear("s", 1);
    EXPECT_EQ(event.wait("a.1").word, "open");
}

TEST_F(broadcast_script, counts_each_of_thousands_once_that_are_in_flight_and_sent_again) {
    for (int const calls : {1500, 5000}) {
        auto const session = [&](int i) { return event.text(calls) + "-" + event.text(i); };
        for (int i = 0; i < calls; ++i) ASSERT_EQ(event.set(session(i), 1).word, "set");
        auto const last = event.clear("other", calls).value;
        for (int i = 0; i < calls; ++i) ASSERT_EQ(event.set(session(i), 1).value, last) << i;
        EXPECT_EQ(event.wait("").word, "waiting") << "the clear stands";
        event.set("other", calls + 1);
        for (int i = 0; i < calls; ++i) event.clear(session(i), 1);
        EXPECT_EQ(event.wait("").word, "open") << "the set stands";
    }
}

TEST_F(broadcast_script, forgets_sessions_that_are_idle_for_a_minute) {
    for (int i = 0; i < 1500; ++i) event.set("s" + event.text(i), 1);
    event.clear("s0", 2);
    EXPECT_EQ(event.entries('a'), 1500);
    event.pass(61'000);
    for (int i = 0; i < 600; ++i) event.clear("t" + event.text(i), 1);
    EXPECT_EQ(event.entries('a'), 900) << "two by each call, and one new";
    event.set("t0", 1);
    EXPECT_EQ(event.wait("").word, "waiting") << "known";
    event.set("s0", 2);
    EXPECT_EQ(event.wait("").word, "open") << "forgotten";
}

TEST_F(broadcast_script, does_nothing_after_its_deadline) {
    auto const past = event.now() - 1;
    for (auto const& answer : {event.set("s", 1, past), event.clear("s", 2, past), event.wait("a.1", past)}) {
        EXPECT_EQ(answer.word, "late");
        EXPECT_GT(answer.now, past);
    }
    EXPECT_FALSE(event.exists());
    EXPECT_EQ(event.set("s", 1, past + 60'000).word, "set") << "and the sequence is not used up";
}

TEST_F(broadcast_script, forgets_a_client_that_leaves_but_not_one_that_asked_since) {
    event.wait("a.1");
    event.wait("b.1");
    EXPECT_EQ(event.leave("a.2").word, "left");
    EXPECT_EQ(event.leave("a.2").word, "gone");
    event.wait("b.3");
    event.wait("b.2");  // comes late
    EXPECT_EQ(event.leave("b.2").word, "gone") << "of an earlier time";
    event.set("s", 1);
    EXPECT_THAT(event.told(), ElementsAre("b"));
    EXPECT_EQ(event.leave("b.4").word, "gone") << "told is forgotten";
}

TEST_F(broadcast_script, lets_one_look_without_waiting) {
    EXPECT_EQ(event.wait("").word, "waiting");
    EXPECT_FALSE(event.exists());
    event.set("s", 1);
    EXPECT_EQ(event.wait("").word, "open");
}

TEST_F(broadcast_script, forgets_who_is_not_heard) {
    event.wait("a.1");
    event.wait("b.1");
    event.disconnect("a");
    event.set("s", 1);
    EXPECT_THAT(event.told(), ElementsAre("b"));
    event.clear("s", 2);
    event.connect("a");
    EXPECT_EQ(event.entries('c'), 0);
    EXPECT_EQ(event.wait_again("a.2", 0).word, "open") << "it asks when it is back, and loses nothing";
}

TEST_F(broadcast_script, tells_a_thousand_clients) {
    for (int i = 0; i < 1500; ++i) event.wait("x" + event.text(i) + ".1");
    event.wait("a.1");
    event.server.must({"CONFIG", "RESETSTAT"});
    event.set("s", 1);
    EXPECT_THAT(event.told(), ElementsAre("a"));
    EXPECT_EQ(event.entries('c'), 0);
    EXPECT_THAT(event.server.info("cmdstat_publish"), StartsWith("calls=1501,"));
    event.set("s", 2);
    event.wait("a.2");
    EXPECT_THAT(event.server.info("cmdstat_hkeys"), StartsWith("calls=1,")) << "only when somebody is to be told";
}

TEST_F(broadcast_script, expires_when_nobody_uses_it_and_moves_that_seldom) {
    event.wait("a.1");
    EXPECT_GT(event.expires_in(), event.retention);
    EXPECT_LE(event.expires_in(), 2 * event.retention);
    for (int i = 1; i <= 100; ++i) {
        event.pass(event.retention / 10);
        if (i % 3 == 0) event.wait("a." + event.text(i));
        if (i % 3 == 1) event.set("s", i);
        if (i % 3 == 2) event.clear("s", i);
        EXPECT_GE(event.expires_in(), event.retention - 1000);
    }
    EXPECT_LE(std::stoi(event.server.info("cmdstat_pexpire").substr(6)), 11);
    event.pass(2 * event.retention);
    EXPECT_TRUE(eventually([&] { return !event.exists(); }));
    EXPECT_EQ(event.wait("a.101").word, "waiting");
}

TEST_F(broadcast_script, refuses_another_format_or_type_and_writes_nothing) {
    auto const all = [&] {
        return std::vector{event.set("s", 1), event.clear("s", 1), event.wait("a.1"), event.leave("a.1")};
    };
    for (std::string const kind : {"latch 1", "broadcast 2", "1", ""}) {
        event.commands.must({"DEL", event.key});
        event.commands.must({"HSET", event.key, kind.empty() ? "colour" : "v", kind, "ca", "1"});
        auto const before = event.hash();
        for (auto const& answer : all()) EXPECT_THAT(answer.word, StartsWith("LOCKSTEP_FORMAT")) << kind;
        EXPECT_EQ(event.hash(), before);
    }
    event.commands.must({"SET", event.key, "mine"});
    for (auto const& answer : all()) EXPECT_THAT(answer.word, StartsWith("WRONGTYPE"));
    EXPECT_EQ(event.commands.must({"GETDEL", event.key}).text, "mine");
}

TEST_F(broadcast_script, refuses_bad_arguments_before_it_writes) {
    auto const refused = [&](scripts::script const& script, broadcast_scripts::arguments const& good) {
        for (std::size_t at = 0; at < good.size(); ++at)
            for (std::string const bad : {"", "x y", "-1", "0.5", "nan", "inf", "1e3", "0x1", "99999999999999999"}) {
                auto given = good;
                given[at] = bad;
                bool const session =
                    (&script == &scripts::broadcast_set || &script == &scripts::broadcast_clear) && at == 0;
                bool const optional = &script == &scripts::broadcast_wait && at < 2;
                if (session && !bad.empty() && bad != "x y") continue;
                if ((optional && bad.empty()) || (good[at] == "a.1" && bad == "0.5")) continue;
                EXPECT_THAT(event.call(script, given).word, StartsWith("LOCKSTEP_ARGUMENT"))
                    << script.name << at << bad;
            }
        for (std::string const bad : {"500 0 x", "500 1", "500 1 ", "x 1 x", "500 9999999999999 x"}) {
            auto given = good;
            given.back() = bad;
            EXPECT_THAT(event.call(script, given).word, StartsWith("LOCKSTEP_ARGUMENT")) << script.name << bad;
        }
    };
    for (auto const* const script : {&scripts::broadcast_set, &scripts::broadcast_clear})
        refused(*script, {"s", "1", "9999999999999", event.rules});
    refused(scripts::broadcast_wait, {"a.1", "0", "9999999999999", event.rules});
    refused(scripts::broadcast_leave, {"a.1", event.rules});
    EXPECT_EQ(event.call(scripts::broadcast_set, {"s", "0", "9999999999999", event.rules}).word.substr(0, 17),
              "LOCKSTEP_ARGUMENT");
    EXPECT_FALSE(event.exists());
}

TEST_F(broadcast_script, changes_all_or_nothing_when_the_server_is_out_of_memory) {
    event.wait("a.1");
    auto const before = event.hash();
    event.server.must({"CONFIG", "SET", "maxmemory", "1"});
    EXPECT_THAT(event.set("s", 1).word, StartsWith("OOM"));
    EXPECT_THAT(event.wait("b.1").word, StartsWith("OOM"));
    EXPECT_EQ(event.hash(), before);
    EXPECT_THAT(event.told(), IsEmpty());
    EXPECT_EQ(event.leave("a.1").word, "left");
    event.server.must({"CONFIG", "SET", "maxmemory", "0"});
    event.set("s", 1);
    auto const set = event.hash();
    event.server.must({"CONFIG", "SET", "maxmemory", "1"});
    EXPECT_THAT(event.clear("s", 2).word, StartsWith("OOM"));
    EXPECT_EQ(event.hash(), set);
    EXPECT_EQ(event.wait("b.2").word, "open") << "that writes nothing";
    event.server.must({"CONFIG", "SET", "maxmemory", "0"});
}

TEST_F(broadcast_script, is_set_although_the_channel_is_forbidden) {
    event.wait("a.1");
    event.server.must({"ACL", "SETUSER", "default", "resetchannels"});
    EXPECT_EQ(event.set("s", 1).word, "set");
    EXPECT_EQ(event.wait("a.2").word, "open");
}

TEST_F(broadcast_script, tells_by_a_sharded_channel_if_that_has_a_hash_tag) {
    event.rules = "500 3600000 lockstep:{name}:wake:";
    event.wait("a.1");
    event.ear = event.server.connect();
    event.ear.send({"SSUBSCRIBE", "lockstep:{name}:wake:a"});
    EXPECT_EQ(event.ear.read().elements.at(0).text, "ssubscribe");
    event.set("s", 1);
    auto const said = event.ear.read();
    EXPECT_EQ(said.elements.at(0).text, "smessage");
    EXPECT_EQ(said.elements.at(2).text, "=" + event.key);
    EXPECT_EQ(event.server.info("cmdstat_publish"), "");
}

}  // namespace
