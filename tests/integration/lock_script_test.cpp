// The server's half of a lock: each rule of its scripts, on a real server with the test's own clock. Holds are "<client>.<n>"; a client
// is heard while the test listens for it. lock_script_simulation_test.cpp puts the rules together at random.

#include "lock_script_support.hpp"
#include "support/eventually.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace {

using lockstep::test::eventually;
using lockstep::test::lock_scripts;
using testing::ElementsAre;
using testing::IsEmpty;
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

TEST_F(lock_script, gives_the_same_grant_to_the_same_hold) {
    auto const first = lock.acquire("a.1");
    for (int i = 0; i < 2; ++i) {
        auto const again = lock.acquire("a.1");
        EXPECT_EQ(again.word, "granted");
        EXPECT_EQ(again.fence, first.fence);
        EXPECT_LE(again.left, lock.ttl);
        EXPECT_EQ(lock.acquire("b.1").word, "queued");  // the second time a.1 is kept in the long form
    }
    lock.release("a.1");
    auto const claimed = lock.claim("b.1");
    EXPECT_GT(claimed.fence, first.fence);
    EXPECT_EQ(lock.claim("b.1").fence, claimed.fence);
    EXPECT_EQ(lock.acquire("b.1").fence, claimed.fence);
    lock.release("b.1");
}

TEST_F(lock_script, is_handed_on_in_order_by_an_offer_that_must_be_claimed) {
    held_by_a_and_wanted_by({"b.1", "c.1", "b.2"});
    EXPECT_EQ(lock.acquire("b.2").position, 3);
    auto fence = lock.acquire("a.1").fence;
    std::string owner = "a.1";
    for (auto const* const next : {"b.1", "c.1", "b.2"}) {
        auto const released = lock.release(owner);
        EXPECT_EQ(released.offered_to, next);
        EXPECT_EQ(released.heard, 1);
        EXPECT_THAT(lock.told(), ElementsAre(next));
        EXPECT_EQ(lock.renew(next).word, "gone") << "an offer is no lease";
        EXPECT_EQ(lock.try_acquire("d.1").word, "busy") << "nor is it free";
        auto const claimed = lock.claim(next);
        EXPECT_EQ(claimed.word, "granted");
        EXPECT_EQ(claimed.left, lock.ttl);
        EXPECT_GT(claimed.fence, fence);
        fence = claimed.fence;
        owner = next;
    }
    EXPECT_EQ(lock.release(owner).offered_to, "");
    EXPECT_EQ(lock.residue(), "");
}

TEST_F(lock_script, frees_what_a_dead_holder_had_when_its_lease_is_over) {
    held_by_a_and_wanted_by({"b.1", "c.1"});
    auto const told = lock.acquire("b.1");
    EXPECT_LE(told.left, lock.ttl);
    lock.pass(told.left - 100);
    EXPECT_EQ(lock.acquire("b.1").word, "queued");
    lock.pass(100);
    EXPECT_EQ(lock.acquire("b.1").word, "granted");
    EXPECT_THAT(lock.told(), IsEmpty()) << "who asks need not be told";
    EXPECT_EQ(lock.acquire("a.1").word, "queued");
    lock.pass(lock.ttl);
    EXPECT_EQ(lock.acquire("a.1").word, "queued") << "looking again does not overtake";
    EXPECT_THAT(lock.told(), ElementsAre("c.1"));
}

TEST_F(lock_script, lets_a_newcomer_pass_on_what_ran_out) {
    held_by_a_and_wanted_by({"b.1"});
    lock.pass(lock.ttl);
    EXPECT_EQ(lock.acquire("c.1").word, "queued");
    EXPECT_THAT(lock.told(), ElementsAre("b.1"));
}

TEST_F(lock_script, keeps_the_fence_and_moves_the_end_when_renewed) {
    auto const first = lock.acquire("a.1");
    for (int i = 0; i < 3; ++i) {
        lock.pass(lock.ttl - 1000);
        auto const renewed = lock.renew("a.1");
        EXPECT_EQ(renewed.word, "renewed");
        EXPECT_EQ(renewed.left, lock.ttl);
    }
    EXPECT_EQ(lock.acquire("b.1").word, "queued");
    EXPECT_EQ(lock.acquire("a.1").fence, first.fence);
    EXPECT_EQ(lock.renew("b.1").word, "gone");
    EXPECT_EQ(lock.renew("a.1", 500).word, "renewed") << "also to make it shorter";
    lock.pass(500);
    EXPECT_EQ(lock.acquire("b.1").word, "granted");
}

TEST_F(lock_script, passes_over_who_cannot_be_heard_at_once) {
    held_by_a_and_wanted_by({"b.1", "c.1", "b.2", "d.1"});
    lock.disconnect("b");
    lock.disconnect("c");
    EXPECT_EQ(lock.release("a.1").offered_to, "d.1");
    EXPECT_EQ(lock.claim("b.1").word, "gone") << "it was dropped, somebody behind it being heard";
    EXPECT_EQ(lock.claim("d.1").word, "granted");
    lock.release("d.1");
    EXPECT_EQ(lock.residue(), "");
}

TEST_F(lock_script, drops_nobody_while_nobody_is_heard) {
    held_by_a_and_wanted_by({"b.1", "c.1", "d.1"});
    for (auto const* const client : {"b", "c", "d"}) lock.disconnect(client);
    auto const released = lock.release("a.1");
    EXPECT_EQ(released.offered_to, "b.1");
    EXPECT_EQ(released.heard, 0);
    EXPECT_EQ(lock.claim("c.1").position, 1);
    EXPECT_EQ(lock.claim("d.1").position, 2);
    EXPECT_EQ(lock.claim("b.1").word, "granted") << "it may have found out by itself";
}

TEST_F(lock_script, lets_a_caller_have_what_was_offered_to_nobody_in_particular) {
    held_by_a_and_wanted_by({"b.1", "b.2"});
    lock.disconnect("b");
    EXPECT_EQ(lock.release("a.1").heard, 0);
    EXPECT_EQ(lock.acquire("c.1").word, "granted");
    lock.release("c.1");
    EXPECT_EQ(lock.residue(), "") << "and c, being heard, shows that b is gone";
}

TEST_F(lock_script, takes_an_offer_back_that_is_not_claimed_in_time) {
    held_by_a_and_wanted_by({"b.1", "c.1"});
    lock.release("a.1");
    lock.pass(lock.window);
    EXPECT_EQ(lock.release("a.1").word, "gone");  // the releasing client looks whether its hand-off worked
    EXPECT_THAT(lock.told(), ElementsAre("b.1", "c.1"));
    EXPECT_EQ(lock.claim("b.1").word, "gone");
    EXPECT_EQ(lock.claim("c.1").word, "granted");
    EXPECT_EQ(lock.acquire("b.1").word, "queued") << "who was late joins the tail with the same hold";
    lock.release("c.1");
    EXPECT_EQ(lock.claim("b.1").word, "granted");
}

TEST_F(lock_script, refuses_a_claim_that_comes_too_late_and_passes_on_what_it_was_for) {
    held_by_a_and_wanted_by({"b.1", "c.1"});
    lock.release("a.1");
    lock.pass(lock.window);
    EXPECT_EQ(lock.claim("b.1").word, "gone");
    EXPECT_THAT(lock.told(), ElementsAre("b.1", "c.1"));
    lock.pass(lock.window);
    EXPECT_EQ(lock.claim("c.1").word, "gone") << "also when nobody else wants it";
    EXPECT_EQ(lock.residue(), "");
}

TEST_F(lock_script, passes_over_all_places_of_a_client_that_let_an_offer_lapse) {
    held_by_a_and_wanted_by({"b.1", "b.2", "b.3", "c.1", "b.4", "c.2"});
    lock.release("a.1");
    lock.pass(lock.window);
    EXPECT_EQ(lock.acquire("c.1").word, "granted") << "not b.2";
    EXPECT_EQ(lock.release("c.1").offered_to, "c.2") << "nor b.4";
    EXPECT_EQ(lock.claim("c.2").word, "granted");
    EXPECT_THAT(lock.told(), ElementsAre("b.1", "c.2"));
    EXPECT_EQ(lock.claim("b.1").word, "gone");  // b is back
    EXPECT_EQ(lock.acquire("c.3").word, "queued");
    EXPECT_EQ(lock.release("c.2").offered_to, "b.2") << "so its places count again, in their order";
    lock.pass(lock.window);
    EXPECT_EQ(lock.acquire("c.3").word, "granted");
    EXPECT_EQ(lock.acquire("c.4").word, "queued");
    EXPECT_EQ(lock.acquire("b.5").word, "queued") << "any call will do";
    EXPECT_EQ(lock.release("c.3").offered_to, "b.3");
}

TEST_F(lock_script, does_not_hold_up_a_caller_with_offers_to_suspects) {
    held_by_a_and_wanted_by({"b.1", "b.2", "b.3"});
    lock.release("a.1");
    lock.pass(lock.window);
    lock.release("a.1");  // b.2 is doubted
    EXPECT_EQ(lock.try_acquire("c.1").word, "granted");
    EXPECT_EQ(lock.release("c.1").offered_to, "b.3");
    EXPECT_EQ(lock.claim("b.3").word, "granted") << "and b can still take it if it lives";
    lock.release("b.3");
    EXPECT_EQ(lock.residue(), "");
}

TEST_F(lock_script, passes_many_suspects_over_without_walking_past_them_again) {
    ASSERT_EQ(lock.acquire("a.1").word, "granted");
    for (int i = 0; i < 1500; ++i) ASSERT_EQ(lock.acquire("b." + lock.text(i)).word, "queued");
    for (auto const* const hold : {"c.1", "c.2", "c.3"}) lock.acquire(hold);
    lock.release("a.1");
    lock.pass(lock.window);
    EXPECT_EQ(lock.acquire("c.1").word, "queued") << "one call walks past 1000 and no more";
    EXPECT_EQ(lock.acquire("c.1").word, "granted") << "the next goes on from there";
    lock.server.must({"CONFIG", "RESETSTAT"});
    EXPECT_EQ(lock.release("c.1").offered_to, "c.2");
    EXPECT_LE(std::stoi(lock.server.info("cmdstat_hget").substr(6)), 5);
    EXPECT_EQ(lock.claim("b.0").word, "gone");
    EXPECT_EQ(lock.claim("c.2").word, "granted");
    EXPECT_EQ(lock.release("c.2").offered_to, "b.1");
}

TEST_F(lock_script, forgets_a_waiter_that_cancels_wherever_it_stands) {
    for (std::string const order : {"123", "132", "213", "231", "312", "321", "24", "42"}) {
        held_by_a_and_wanted_by({"b.1", "c.2", "b.3", "c.4"});
        for (auto const number : order) {
            std::string const hold = std::string{number == '1' || number == '3' ? "b." : "c."} + number;
            EXPECT_EQ(lock.release(hold).word, "cancelled");
            EXPECT_EQ(lock.release(hold).word, "gone");
            EXPECT_EQ(lock.queue_damage(), "") << order;
        }
        EXPECT_EQ(lock.acquire("d.9").position, order.size() == 3 ? 2 : 3);
        std::string owner = "a.1";
        for (std::string const left : {"b.1", "c.2", "b.3", "c.4", "d.9"}) {
            if (order.find(left[2]) != std::string::npos) continue;
            EXPECT_EQ(lock.release(owner).offered_to, left) << order;
            EXPECT_EQ(lock.claim(left).word, "granted") << order;
            owner = left;
        }
        lock.release(owner);
        EXPECT_EQ(lock.residue(), "") << order;
    }
}

TEST_F(lock_script, passes_an_offer_on_when_its_waiter_cancels) {
    held_by_a_and_wanted_by({"b.1", "c.1"});
    lock.release("a.1");
    EXPECT_EQ(lock.release("b.1").offered_to, "c.1");
    EXPECT_THAT(lock.told(), ElementsAre("b.1", "c.1"));
    EXPECT_EQ(lock.claim("b.1").word, "gone");
}

TEST_F(lock_script, does_nothing_after_its_deadline) {
    auto const now = lock.acquire("a.1").now;
    for (auto const* const hold : {"b.1", "a.1"})
        EXPECT_EQ(lock.acquire(hold, {.deadline = now - 1}).word, "late") << "waiting and having alike";
    lock.release("a.1");
    auto const late = lock.acquire("b.1", {.deadline = now - 1});
    EXPECT_EQ(late.word, "late");
    EXPECT_GE(late.now, now);
    EXPECT_EQ(lock.residue(), "");
    EXPECT_EQ(lock.acquire("b.1", {.deadline = late.now + 5000}).word, "granted");
}

TEST_F(lock_script, knows_an_end_that_the_clock_put_off_also_when_others_wait) {
    held_by_a_and_wanted_by({"b.1"});
    lock.pass(-lock.hour / 4);
    EXPECT_EQ(lock.acquire("c.1").left, lock.ttl);
    lock.release("a.1");
    lock.pass(-lock.hour / 4);
    EXPECT_EQ(lock.acquire("d.1").left, lock.window) << "an offer has an end too";
}

TEST_F(lock_script, answers_a_try_without_queueing) {
    held_by_a_and_wanted_by({});
    auto const before = lock.hash();
    auto const busy = lock.try_acquire("b.1");
    EXPECT_EQ(busy.word, "busy");
    EXPECT_LE(busy.left, lock.ttl);
    EXPECT_EQ(lock.hash(), before);
    lock.pass(lock.ttl);
    EXPECT_EQ(lock.try_acquire("b.1").word, "granted");
    EXPECT_EQ(lock.acquire("c.1").word, "queued");
    lock.pass(lock.ttl);
    EXPECT_EQ(lock.try_acquire("d.1").word, "busy") << "c.1 was first";
    EXPECT_THAT(lock.told(), ElementsAre("c.1"));
    EXPECT_EQ(lock.claim("c.1").word, "granted");
    lock.release("c.1");
    EXPECT_EQ(lock.residue(), "");
}

TEST_F(lock_script, refuses_one_waiter_too_many) {
    held_by_a_and_wanted_by({"b.1", "b.2", "b.3"});
    EXPECT_THAT(lock.acquire("c.1", {.waiters = 3}).word, StartsWith("LOCKSTEP_WAITERS"));
    EXPECT_EQ(lock.acquire("b.2", {.waiters = 3}).word, "queued") << "it is one of the three";
    lock.release("b.2");
    EXPECT_EQ(lock.acquire("c.1", {.waiters = 3}).word, "queued") << "holes do not count";
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

TEST_F(lock_script, gives_larger_fences_after_the_hash_is_gone) {
    auto const first = lock.acquire("a.1").fence;
    lock.commands.must({"DEL", lock.key});
    EXPECT_GT(lock.acquire("b.1").fence, first);
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

TEST_F(lock_script, takes_back_no_word_that_something_is_lost_when_the_clock_steps_back) {
    for (bool const wanted : {false, true}) {
        held_by_a_and_wanted_by({});
        if (wanted) lock.acquire("b.1");
        lock.pass(lock.ttl);
        EXPECT_EQ(lock.renew("a.1").word, "gone");
        EXPECT_EQ(lock.told().size(), wanted ? 1U : 0U) << "others need not wait any longer";
        lock.pass(-lock.ttl / 2);
        EXPECT_EQ(lock.renew("a.1").word, "gone");
        EXPECT_EQ(lock.acquire("b.1").word, "granted");
        lock.release("b.1");
    }
}

TEST_F(lock_script, frees_a_dead_holders_lock_within_its_ttl_also_when_the_clock_steps_back) {
    for (bool const renewed : {false, true}) {
        held_by_a_and_wanted_by({});
        if (renewed) lock.renew("a.1");
        lock.pass(-lock.hour);
        EXPECT_EQ(lock.acquire("b.1").left, lock.ttl);
        lock.pass(lock.ttl);
        EXPECT_EQ(lock.acquire("b.1").word, "granted");
        lock.release("b.1");
        lock.pass(lock.hour);
    }
}

TEST_F(lock_script, lets_a_token_be_adopted_once) {
    auto const first = lock.acquire("a.1");
    auto const adopted = lock.adopt("a.1", "b.1");
    EXPECT_EQ(adopted.word, "granted");
    EXPECT_EQ(adopted.fence, first.fence);
    EXPECT_EQ(lock.adopt("a.1", "b.1").word, "granted") << "the reply may have been lost";
    EXPECT_EQ(lock.adopt("a.1", "c.1").word, "gone");
    EXPECT_EQ(lock.renew("a.1").word, "gone");
    EXPECT_EQ(lock.release("a.1").word, "gone");
    EXPECT_EQ(lock.renew("b.1").word, "renewed");
    lock.pass(lock.ttl);
    EXPECT_EQ(lock.adopt("b.1", "c.1").word, "gone");
}

TEST_F(lock_script, tells_the_second_in_line_too_when_the_releasing_client_leaves) {
    held_by_a_and_wanted_by({"b.1", "c.1"});
    lock.release_leaving("a.1");
    EXPECT_THAT(lock.told(), ElementsAre("b.1", "c.1"));
    auto const waits = lock.claim("c.1");
    EXPECT_EQ(waits.word, "queued") << "that was a hint and no offer";
    EXPECT_LE(waits.left, lock.window);
    lock.pass(waits.left);
    EXPECT_EQ(lock.claim("c.1").word, "granted");
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

TEST_F(lock_script, expires_later_after_a_late_hand_over) {
    auto const left = [&] { return lock.commands.must({"PTTL", lock.key}).integer; };
    held_by_a_and_wanted_by({"b.1", "c.1"});
    lock.pass(lock.retention + 2 * lock.window);
    EXPECT_EQ(lock.release("a.1").offered_to, "b.1");
    EXPECT_EQ(lock.claim("b.1").word, "granted");
    EXPECT_GE(left(), lock.ttl + lock.retention - 1000) << "moved by the claim";
    lock.pass(lock.retention + lock.ttl);
    EXPECT_EQ(lock.release("b.1").offered_to, "c.1");
    EXPECT_GE(left(), 2 * lock.retention - 1000) << "moved by the offer";
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

TEST_F(lock_script, refuses_another_type_and_leaves_it_alone) {
    lock.commands.must({"SET", lock.key, "mine"});
    for (auto const& answer :
         {lock.acquire("a.1"), lock.claim("a.1"), lock.renew("a.1"), lock.release("a.1"), lock.adopt("a.1", "b.1")})
        EXPECT_THAT(answer.word, StartsWith("WRONGTYPE"));
    EXPECT_EQ(lock.commands.must({"GETDEL", lock.key}).text, "mine");
}

TEST_F(lock_script, refuses_bad_arguments_before_it_writes) {
    std::vector<std::string> const acquire{"b.1", "1000", "9999999999999", "1", "10", lock.rules};
    auto const refused = [&](scripts::script const& script, std::vector<std::string> arguments, std::size_t at) {
        for (std::string const bad : {"", "x", "*", "b c.1", "-1", "0.5", "nan", "inf", "1e13"}) {
            if (at == 0 && bad == "0.5") continue;                          // a hold may look like that
            if (at == 2 && bad.find_first_of("01f") != bad.npos) continue;  // a deadline may be any number
            arguments[at] = bad;
            EXPECT_EQ(lock.error_of(script, arguments), "LOCKSTEP_ARGUMENT") << script.name << ' ' << at << ' ' << bad;
        }
    };
    for (bool const free : {true, false}) {
        if (!free) held_by_a_and_wanted_by({"d.1"});
        auto const before = lock.hash();
        for (std::size_t const at : {0, 1, 2, 3}) refused(scripts::lock_acquire, acquire, at);
        for (std::size_t const at : {0, 1}) refused(scripts::lock_renew, {"a.1", "1000", lock.rules}, at);
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

TEST_F(lock_script, changes_all_or_nothing_when_the_server_is_out_of_memory) {
    held_by_a_and_wanted_by({"b.1", "c.1"});
    auto const before = lock.hash();
    lock.pass(1);  // within the ms in which it was taken, a renewal has nothing to write
    lock.server.must({"CONFIG", "SET", "maxmemory", "1"});
    EXPECT_THAT(lock.acquire("d.1").word, StartsWith("OOM"));
    EXPECT_THAT(lock.release("a.1").word, StartsWith("OOM"));
    EXPECT_THAT(lock.renew("a.1").word, StartsWith("OOM"));
    EXPECT_EQ(lock.hash(), before);
    lock.server.must({"CONFIG", "SET", "maxmemory", "0"});
    EXPECT_EQ(lock.claim("b.1").word, "queued") << "it was told before the write was refused";
    EXPECT_EQ(lock.release("a.1").offered_to, "b.1");
}

TEST_F(lock_script, offers_although_the_channel_is_forbidden) {
    held_by_a_and_wanted_by({"b.1"});
    lock.server.must({"ACL", "SETUSER", "default", "resetchannels"});
    auto const released = lock.release("a.1");
    EXPECT_EQ(released.offered_to, "b.1");
    EXPECT_EQ(released.heard, -1);
    EXPECT_EQ(lock.acquire("b.1").word, "granted");
}

TEST_F(lock_script, tells_by_a_sharded_channel_if_that_has_a_hash_tag) {
    lock.rules = "500 3600000 lockstep:{name}:wake:";
    held_by_a_and_wanted_by({"b.1", "c.1"});
    lock.ear = lock.server.connect();
    lock.ear.send({"SSUBSCRIBE", "lockstep:{name}:wake:c"});
    EXPECT_EQ(lock.ear.read().elements.at(0).text, "ssubscribe");
    EXPECT_EQ(lock.release("a.1").offered_to, "c.1") << "b is not heard";
    auto const said = lock.ear.read();
    EXPECT_EQ(said.elements.at(0).text, "smessage");
    EXPECT_EQ(said.elements.at(2).text, "c.1");
    EXPECT_EQ(lock.server.info("cmdstat_publish"), "");
}

}  // namespace
