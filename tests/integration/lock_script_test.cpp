// The server's half of a lock: each rule of its scripts, on a real server with the test's own clock. Holds are "<client>.<n>"; a client
// is heard while the test listens for it. What is so for pools too is in queue_script_test.cpp; lock_script_simulation_test.cpp puts the
// rules together at random.

#include "lock_script_support.hpp"
#include "support/eventually.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace {

using lockstep::test::eventually;
using lockstep::test::lock_scripts;
using testing::StartsWith;
namespace scripts = lockstep::scripts;

class lock_script : public testing::Test {
protected:
    lock_script() {
        for (auto const* const client : {"a", "b", "c", "d"}) lock.connect(client);
    }
    ~lock_script() override { EXPECT_EQ(lock.queue_damage(), ""); }

    // a.1 has the lock; then these wait for it, in order.
    void held_by_a_and_wanted_by(std::vector<std::string> const& holds) {
        ASSERT_EQ(lock.acquire("a.1").word, "granted");
        for (auto const& hold : holds) ASSERT_EQ(lock.acquire(hold).word, "queued");
    }

    lock_scripts lock;
};

TEST_F(lock_script, grants_a_free_lock_with_the_servers_time_as_its_fence) {
    auto const first = lock.acquire("a.1");
    EXPECT_EQ(first.word, "granted");
    EXPECT_EQ(first.left, lock.ttl);
    EXPECT_EQ(first.fence / 1000, first.now);
    EXPECT_EQ(lock.release("a.1").word, "released");
    auto const second = lock.acquire("b.1");
    EXPECT_TRUE(second.short_way) << "the second time there is nothing to set up";
    EXPECT_GT(second.fence, first.fence);
    EXPECT_TRUE(lock.release("b.1").short_way);
    EXPECT_EQ(lock.residue(), "");
}

TEST_F(lock_script, takes_so_many_dead_places_out_of_the_queue_in_one_call_and_no_more) {
    ASSERT_EQ(lock.acquire("a.1").word, "granted");
    for (int i = 0; i < 1200; ++i) ASSERT_EQ(lock.acquire("b." + lock.text(i)).word, "queued");
    for (auto const* const hold : {"c.1", "c.2"}) lock.acquire(hold);
    lock.disconnect("b");
    auto const first = lock.release("a.1");
    EXPECT_EQ(first.word, "released");
    EXPECT_EQ(first.offered_to, "");
    EXPECT_TRUE(first.asks_again);
    auto const newcomer = lock.acquire("d.1");
    EXPECT_EQ(newcomer.word, "queued") << "nobody passes those who wait meanwhile";
    EXPECT_TRUE(newcomer.asks_again);
    EXPECT_EQ(lock.try_acquire("d.2").word, "busy");
    EXPECT_THAT(lock.told(), testing::ElementsAre("c.1")) << "and each call went on";
    EXPECT_EQ(lock.claim("c.1").word, "granted");
    EXPECT_EQ(lock.release("c.1").offered_to, "c.2");
    EXPECT_EQ(lock.claim("b.0").word, "gone");
}

TEST_F(lock_script, gives_larger_fences_when_the_clock_steps_back) {
    auto fence = lock.acquire("a.1").fence;
    lock.release("a.1");
    lock.pass(-lock.hour / 2);
    for (int i = 0; i < 3; ++i) {
        auto const after = lock.acquire("b.1", {.fences = 10});
        EXPECT_EQ(after.fence, fence + 1);
        EXPECT_EQ(after.fences, 1) << "a range would run ahead of the clock";
        fence = after.fence;
        EXPECT_EQ(lock.acquire("c.1").word, "queued");
        lock.release("b.1");
        auto const claimed = lock.claim("c.1", 10);
        EXPECT_EQ(claimed.fence, fence + 1);
        fence = claimed.fence;
        lock.release("c.1");
    }
}

TEST_F(lock_script, reserves_a_range_of_fences_that_nobody_else_gets) {
    auto const first = lock.acquire("a.1", {.fences = 1000});
    EXPECT_EQ(first.fences, 1000);
    EXPECT_EQ(lock.acquire("a.1", {.fences = 1000}).fence, first.fence + 999) << "asked again, only the last";
    lock.acquire("b.1");
    lock.release("a.1");
    auto const second = lock.claim("b.1", 1000);
    EXPECT_GE(second.fence, first.fence + 1000);
    EXPECT_EQ(std::stoll(lock.hash()["f"]), second.fence + second.fences - 1);
    lock.release("b.1");
    auto const third = lock.acquire("c.1", {.fences = 1000});
    EXPECT_GE(third.fence, second.fence + second.fences);
    lock.release("c.1");
    EXPECT_GE(lock.acquire("d.1").fence, third.fence + third.fences);
}

TEST_F(lock_script, expires_some_time_after_its_last_lease_and_moves_that_seldom) {
    auto const left = [&] { return lock.commands.must({"PTTL", lock.key}).integer; };
    lock.acquire("a.1");
    EXPECT_GT(left(), lock.ttl + lock.retention);
    EXPECT_LE(left(), lock.ttl + 2 * lock.retention);
    for (int i = 0; i < 100; ++i) {
        lock.pass(lock.retention / 10);
        lock.renew("a.1");
        lock.release("a.1");
        lock.acquire("a.1");
        EXPECT_GE(left(), lock.retention + lock.ttl - 1000);
    }
    EXPECT_LE(std::stoi(lock.server.info("cmdstat_pexpireat").substr(6)), 11);
    lock.release("a.1");
    EXPECT_LE(left(), lock.ttl + 2 * lock.retention);
    lock.pass(lock.ttl + 2 * lock.retention);
    EXPECT_TRUE(eventually([&] { return lock.commands.must({"EXISTS", lock.key}).integer == 0; }));
}

TEST_F(lock_script, refuses_another_format_and_writes_nothing) {
    // All that the usual ways look at, but for v.
    lock.commands.must({"HSET", lock.key,
                        "v",    "2",
                        "o",    "*",
                        "p",    "a.1",
                        "s",    "offered",
                        "e",    "1999999999999",
                        "d",    "999999999999",
                        "f",    "7",
                        "x",    "9999999999999",
                        "h",    "1",
                        "l",    "1",
                        "q1",   "b.1",
                        "wb.1", "1"});
    for (int i = 0; i < 2; ++i) {
        auto const before = lock.hash();
        EXPECT_THAT(lock.acquire("c.1").word, StartsWith("LOCKSTEP_FORMAT"));
        for (auto const& answer : {lock.acquire("a.1"), lock.claim("a.1"), lock.renew("a.1"), lock.release("a.1"),
                                   lock.adopt("a.1", "b.1"), lock.acquire("a.1", {.deadline = 1})})
            EXPECT_THAT(answer.word, StartsWith("LOCKSTEP_FORMAT"));
        EXPECT_EQ(lock.hash(), before);
        lock.commands.must({"DEL", lock.key});
        lock.commands.must({"HSET", lock.key, "colour", "blue"});  // and somebody else's hash
    }
    lock.commands.must({"DEL", lock.key});
}

TEST_F(lock_script, refuses_bad_arguments_before_it_writes) {
    std::vector<std::string> const acquire{"b.1", "1000", "9999999999999", "1", "10", lock.rules};
    auto const refused = [&](scripts::script const& script, std::vector<std::string> arguments, std::size_t at) {
        for (std::string const bad : {"", "x", "*", "b c.1", "-1", "0.5", "nan", "inf", "1e13"}) {
            if (at == 0 && bad == "0.5") continue;                          // a hold may look like that
            if (at == 2 && bad.find_first_of("01f") != bad.npos) continue;  // a deadline may be any number
            if (&script == &scripts::lock_renew && at == 3 && bad == "1e13") continue;  // and so may the number of a command
            arguments[at] = bad;
            EXPECT_EQ(lock.error_of(script, arguments), "LOCKSTEP_ARGUMENT") << script.name << ' ' << at << ' ' << bad;
        }
    };
    for (bool const free : {true, false}) {
        if (!free) held_by_a_and_wanted_by({"d.1"});
        auto const before = lock.hash();
        for (std::size_t const at : {0, 1, 2, 3}) refused(scripts::lock_acquire, acquire, at);
        for (std::size_t const at : {0, 1, 3}) refused(scripts::lock_renew, {"a.1", "1000", lock.rules, "1", "9999999999999"}, at);
        for (std::size_t const at : {0, 1}) refused(scripts::lock_claim, {"a.1", "1000", "1", lock.rules}, at);
        EXPECT_EQ(lock.error_of(scripts::lock_claim, {"a.1", "1000", "1001", lock.rules}), "LOCKSTEP_ARGUMENT");
        EXPECT_EQ(lock.error_of(scripts::lock_release, {"", lock.rules}), "LOCKSTEP_ARGUMENT");
        for (std::string const rules : {"", "500", "500 1", "-1 1 channel", "x 1 channel", "500 1 "}) {
            if (free) {  // behind others it has no use for them
                EXPECT_EQ(lock.error_of(scripts::lock_acquire, {"b.1", "1000", "9999999999999", "1", "10", rules}),
                          "LOCKSTEP_ARGUMENT");
            }
            EXPECT_EQ(lock.error_of(scripts::lock_release, {"b.1", rules}), "LOCKSTEP_ARGUMENT");
        }
        EXPECT_EQ(lock.hash(), before);
    }
}

}  // namespace
