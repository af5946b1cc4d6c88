// The server's half of a pool of permits: who waits and in which order, who is passed over, and what time, tokens and faults do to it.
// pool_script_test.cpp has the rules of permits themselves, queue_script_test.cpp what is so for locks too.

#include "pool_script_support.hpp"
#include "support/eventually.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace {

using lockstep::test::eventually;
using lockstep::test::pool_scripts;
using look = pool_scripts::look;
using pool_script_waiting = lockstep::test::pool_script_fixture;
using testing::ElementsAre;
using testing::StartsWith;
namespace scripts = lockstep::scripts;

// ---- who waits ----

TEST_F(pool_script_waiting, passes_over_who_cannot_be_heard_at_once) {
    held_by_a_and_wanted_by({"b.1", "c.1", "b.2", "d.1", "d.2"}, 2);
    pool.disconnect("b");
    pool.disconnect("c");
    EXPECT_EQ(pool.release("a.1").offered_to, "d.1");
    EXPECT_THAT(pool.told(), ElementsAre("d.1", "d.2"));
    EXPECT_EQ(pool.claim("b.1").word, "gone") << "it was dropped, somebody behind it being heard";
    for (auto const* const hold : {"d.1", "d.2"}) EXPECT_EQ(pool.claim(hold).word, "granted");
    for (auto const* const hold : {"d.1", "d.2"}) pool.release(hold);
    EXPECT_EQ(pool.residue(), "");
}

TEST_F(pool_script_waiting, is_not_held_up_by_a_dead_waiter_that_wants_more_than_is_free) {
    pool.acquire("a.1", reader());
    pool.acquire("b.1", writer());
    EXPECT_EQ(pool.acquire("c.1", reader()).word, "queued");
    pool.disconnect("b");
    EXPECT_EQ(pool.acquire("d.1", reader()).word, "granted") << "it finds out";
    EXPECT_THAT(pool.told(), ElementsAre("c.1"));
    EXPECT_EQ(pool.claim("b.1").word, "gone");
    EXPECT_EQ(pool.claim("c.1").word, "granted");
}

TEST_F(pool_script_waiting, takes_those_whom_nobody_hears_out_of_the_queue) {
    held_by_a_and_wanted_by({"b.1", "b.2", "b.3"}, 3);
    pool.disconnect("b");
    EXPECT_EQ(pool.release("a.1").offered_to, "");
    EXPECT_EQ(pool.read(), (look{3, 3, 0, 0}));
    EXPECT_EQ(pool.claim("b.1").word, "gone");
    EXPECT_EQ(pool.acquire("b.1").word, "granted") << "it lives";
}

TEST_F(pool_script_waiting, passes_on_at_a_claim_what_ran_out_meanwhile) {
    pool.create(2);
    for (auto const* const hold : {"a.1", "a.2", "b.1", "c.1"}) pool.acquire(hold);
    pool.pass(pool.ttl - 100);
    pool.renew("a.2");
    EXPECT_EQ(pool.release("a.2").offered_to, "b.1");
    pool.pass(100);
    EXPECT_EQ(pool.claim("b.1").word, "granted");
    EXPECT_THAT(pool.told(), ElementsAre("b.1", "c.1"));
}

TEST_F(pool_script_waiting, passes_on_at_a_release_what_ran_out_meanwhile) {
    pool.create(2);
    for (auto const* const hold : {"a.1", "a.2", "b.1", "c.1"}) pool.acquire(hold);
    pool.pass(pool.ttl / 2);
    pool.renew("a.2");
    pool.pass(pool.ttl / 2);
    pool.release("a.2");
    EXPECT_THAT(pool.told(), ElementsAre("b.1", "c.1"));
}

TEST_F(pool_script_waiting, passes_suspects_over_that_stand_first) {
    held_by_a_and_wanted_by({"b.1", "b.2", "b.3", "c.1"});
    pool.release("a.1");
    pool.pass(pool.window);
    EXPECT_EQ(pool.acquire("c.1").word, "granted");
    EXPECT_EQ(pool.acquire("c.2").word, "queued");
    EXPECT_EQ(pool.release("c.1").offered_to, "c.2");
}

TEST_F(pool_script_waiting, trusts_a_client_again_that_claims_in_time) {
    pool.create(2);
    for (auto const* const hold : {"a.1", "a.2", "b.1", "b.2", "b.3", "c.1", "c.2"}) pool.acquire(hold);
    EXPECT_EQ(pool.release("a.1").offered_to, "b.1");
    pool.pass(pool.window - 100);
    EXPECT_EQ(pool.release("a.2").offered_to, "b.2");
    pool.pass(100);
    EXPECT_EQ(pool.acquire("c.1").word, "granted") << "b let an offer lapse";
    EXPECT_EQ(pool.claim("b.2").word, "granted");
    EXPECT_TRUE(pool.acquire("b.3").place_is_new) << "its other places went with the offer";
    EXPECT_EQ(pool.release("c.1").offered_to, "c.2");
    EXPECT_EQ(pool.release("c.2").offered_to, "b.3");
}

TEST_F(pool_script_waiting, lets_a_holder_grow_into_what_was_offered_to_nobody_in_particular) {
    pool.create(2);
    for (auto const* const hold : {"a.1", "d.1", "b.1"}) pool.acquire(hold);
    pool.disconnect("b");
    EXPECT_EQ(pool.release("d.1").heard, 0);
    EXPECT_EQ(pool.change("a.1", 2).word, "changed");
    EXPECT_EQ(pool.claim("b.1").word, "gone");
}

TEST_F(pool_script_waiting, forgets_a_waiter_that_cancels_wherever_it_stands) {
    for (std::string const order : {"123", "132", "213", "231", "312", "321", "24", "42"}) {
        held_by_a_and_wanted_by({}, 2);
        for (std::string const hold : {"b.1", "c.2", "b.3", "c.4"}) pool.acquire(hold, 2);
        for (auto const number : order) {
            std::string const hold = std::string{number == '1' || number == '3' ? "b." : "c."} + number;
            EXPECT_EQ(pool.release(hold).word, "cancelled");
            EXPECT_EQ(pool.release(hold).word, "gone");
            EXPECT_EQ(pool.damage(), "") << order;
        }
        EXPECT_EQ(pool.acquire("d.9", 2).position, order.size() == 3 ? 2 : 3);
        std::string owner = "a.1";
        for (std::string const left : {"b.1", "c.2", "b.3", "c.4", "d.9"}) {
            if (order.find(left[2]) != std::string::npos) continue;
            EXPECT_EQ(pool.release(owner).offered_to, left) << order;
            EXPECT_EQ(pool.claim(left).word, "granted") << order;
            EXPECT_EQ(pool.read().available, 0) << "what it wants is not forgotten when a neighbour leaves";
            owner = left;
        }
        pool.release(owner);
        EXPECT_EQ(pool.residue(), "") << order;
    }
}

TEST_F(pool_script_waiting, refuses_one_waiter_too_many_also_when_something_is_free) {
    pool.create(3);
    pool.acquire("a.1");
    for (auto const* const hold : {"b.1", "b.2", "b.3"}) EXPECT_EQ(pool.acquire(hold, 3).word, "queued");
    EXPECT_THAT(pool.acquire("c.1", {.waiters = 3}).word, StartsWith("LOCKSTEP_WAITERS"));
    pool.release("b.2");
    EXPECT_EQ(pool.acquire("c.1", {.waiters = 3}).word, "queued");
}

// ---- time, tokens and faults ----

TEST_F(pool_script_waiting, gives_larger_fences_when_the_clock_steps_back) {
    auto fence = pool.acquire("a.1", {.count = "1"}).fence;
    pool.release("a.1");
    pool.pass(-pool.hour / 2);
    for (int i = 0; i < 3; ++i) {
        auto const after = pool.acquire("b.1");
        EXPECT_EQ(after.fence, fence + 1);
        fence = after.fence;
        EXPECT_EQ(pool.acquire("c.1").word, "queued");
        pool.release("b.1");
        auto const claimed = pool.claim("c.1");
        EXPECT_EQ(claimed.fence, fence + 1);
        fence = claimed.fence;
        pool.release("c.1");
    }
}

TEST_F(pool_script_waiting, frees_dead_holders_within_their_ttl_also_when_the_clock_steps_back) {
    for (bool const renewed : {false, true}) {
        pool.create(2);
        for (auto const* const hold : {"a.1", "c.1"}) EXPECT_EQ(pool.acquire(hold).word, "granted");
        if (renewed) pool.renew("a.1");
        pool.pass(-pool.hour);
        EXPECT_EQ(pool.acquire("b.1", 2).left, pool.ttl);
        pool.pass(pool.ttl);
        EXPECT_EQ(pool.acquire("b.1", 2).word, "granted");
        pool.release("b.1");
        pool.pass(pool.hour);
    }
}

TEST_F(pool_script_waiting,
       gives_an_owner_a_larger_fence_after_it_was_told_that_all_is_lost_also_when_the_clock_steps_back) {
    auto const lost = pool.enter("a.1", "me").fence;
    pool.pass(pool.ttl);
    EXPECT_EQ(pool.renew("a.1").word, "gone");
    pool.pass(-pool.hour);
    EXPECT_GT(pool.enter("a.2", "me").fence, lost);
}

TEST_F(pool_script_waiting, knows_an_end_that_the_clock_put_off_also_when_it_is_ones_own) {
    held_by_a_and_wanted_by({"b.1"});
    pool.pass(-pool.hour / 4);
    EXPECT_EQ(pool.acquire("a.1").left, pool.ttl);
    pool.release("a.1");
    pool.pass(-pool.hour / 4);
    EXPECT_EQ(pool.acquire("d.1").left, pool.window) << "an offer has an end too";
}

TEST_F(pool_script_waiting, knows_an_end_that_the_clock_put_off_among_longer_ones) {
    pool.acquire("a.1", {.ttl = 2 * pool.ttl, .count = "3"});
    pool.pass(3 * pool.ttl / 2);
    pool.acquire("c.1");
    pool.pass(-6 * pool.ttl / 5);
    EXPECT_EQ(pool.claim("c.1").left, pool.ttl);
    EXPECT_EQ(pool.damage(), "") << "it ends before the others now";
    pool.pass(pool.ttl);
    EXPECT_EQ(pool.acquire("b.1", 2).word, "granted");
}

TEST_F(pool_script_waiting, lets_a_token_be_adopted_once) {
    pool.create(2);
    pool.acquire("d.1");
    auto const first = pool.acquire("a.1");
    auto const adopted = pool.adopt("a.1", "b.1");
    EXPECT_EQ(adopted.word, "granted");
    EXPECT_EQ(adopted.fence, first.fence);
    EXPECT_EQ(pool.adopt("a.1", "b.1").word, "granted") << "the reply may have been lost";
    EXPECT_EQ(pool.adopt("a.1", "c.1").word, "gone");
    EXPECT_EQ(pool.renew("a.1").word, "gone");
    EXPECT_EQ(pool.release("a.1").word, "gone");
    EXPECT_EQ(pool.renew("b.1").word, "renewed");
    EXPECT_EQ(pool.read(), (look{2, 0, 2, 0}));
    pool.pass(pool.ttl);
    EXPECT_EQ(pool.adopt("b.1", "c.1").word, "gone");
}

TEST_F(pool_script_waiting, expires_some_time_after_its_last_lease_and_moves_that_seldom) {
    auto const left = [&] { return pool.commands.must({"PTTL", pool.key}).integer; };
    pool.create(2);
    EXPECT_GT(left(), 2 * pool.retention - 1000);
    for (int i = 0; i < 100; ++i) {
        pool.pass(pool.retention / 10);
        pool.acquire("a.1");
        pool.renew("a.1");
        EXPECT_GE(left(), pool.retention + pool.ttl - 1000);
        pool.release("a.1");
    }
    EXPECT_LE(std::stoi(pool.server.info("cmdstat_pexpireat").substr(6)), 11);
    EXPECT_LE(left(), pool.ttl + 2 * pool.retention);
    pool.pass(pool.ttl + 2 * pool.retention);
    EXPECT_TRUE(eventually([&] { return pool.commands.must({"EXISTS", pool.key}).integer == 0; }));
}

TEST_F(pool_script_waiting, expires_later_also_when_it_takes_the_short_way) {
    auto const left = [&] { return pool.commands.must({"PTTL", pool.key}).integer; };
    for (bool const waits : {false, true}) {
        pool.create(2);
        pool.pass(pool.retention - 3 * pool.ttl / 2);
        pool.acquire("a.1", 2);
        if (!waits) pool.release("a.1");
        pool.pass(pool.ttl - 1000);
        EXPECT_EQ(pool.acquire("b.1").word, waits ? "queued" : "granted");
        EXPECT_GE(left(), pool.retention + pool.ttl - 1000);
        pool.commands.must({"DEL", pool.key});
    }
}

TEST_F(pool_script_waiting, stays_while_somebody_waits_for_it_or_counts_on_it) {
    auto const left = [&] { return pool.commands.must({"PTTL", pool.key}).integer; };
    pool.acquire("a.1", 0);
    for (int i = 0; i < 5; ++i) {
        EXPECT_GE(left(), pool.retention + pool.ttl - 1000) << "who waits looks again";
        pool.pass(pool.retention - pool.ttl);
        pool.acquire("a.1", 0);
    }
    pool.release("a.1");
    pool.create(1);
    for (int i = 0; i < 8; ++i) {
        pool.pass(pool.retention + 1000);
        if (i % 4 == 0) pool.create(1 + i / 4);
        if (i % 4 == 1) pool.resize(2);
        if (i % 4 == 2) pool.add(0, "s", i);
        if (i % 4 == 3) pool.clear(), pool.resize(2);
        EXPECT_GE(left(), 2 * pool.retention - 1000) << i;
    }
}

TEST_F(pool_script_waiting, expires_later_after_a_hand_over_at_the_last_moment) {
    auto const left = [&] { return pool.commands.must({"PTTL", pool.key}).integer; };
    held_by_a_and_wanted_by({});
    pool.release("a.1");
    pool.pass(pool.retention - 100);
    held_by_a_and_wanted_by({});
    pool.acquire("b.1", {.ttl = 100});
    pool.pass(pool.ttl - 200);
    EXPECT_EQ(pool.release("a.1").offered_to, "b.1");
    EXPECT_GE(left(), 2 * pool.retention - 1000);
}

TEST_F(pool_script_waiting, and_a_lock_refuse_each_other_and_write_nothing) {
    auto const refused = [&](std::string const& rival) {
        auto const before = pool.hash();
        std::string const many = "9999999999999";
        auto const& rules = pool.rules;
        if (rival == "lock") {
            for (auto const* const hold : {"a.1", "c.1", "b.1"}) {
                EXPECT_EQ(pool.error_of(scripts::lock_acquire, {hold, "100", many, "1", "1", rules}),
                          "LOCKSTEP_FORMAT");
                EXPECT_EQ(pool.error_of(scripts::lock_claim, {hold, "100", "1", rules}), "LOCKSTEP_FORMAT");
                EXPECT_EQ(pool.error_of(scripts::lock_renew, {hold, "100", rules, "1", many}), "LOCKSTEP_FORMAT");
                EXPECT_EQ(pool.error_of(scripts::lock_release, {hold, rules}), "LOCKSTEP_FORMAT");
                EXPECT_EQ(pool.error_of(scripts::lock_adopt, {hold, "c.1", "100", rules}), "LOCKSTEP_FORMAT");
            }
        } else {
            for (auto const* const hold : {"a.1", "c.1"})
                for (auto const& answer :
                     {pool.acquire(hold, {.count = "1"}), pool.acquire(hold, {.deadline = 1}), pool.claim(hold),
                      pool.renew(hold), pool.release(hold), pool.adopt(hold, "c.2"), pool.change(hold, 1),
                      pool.create(1), pool.resize(1), pool.add(1, "s", 1), pool.clear()})
                    EXPECT_THAT(answer.word, StartsWith("LOCKSTEP_FORMAT"));
            EXPECT_THAT(pool.read_error(), StartsWith("LOCKSTEP_FORMAT"));
        }
        EXPECT_EQ(pool.hash(), before);
    };
    held_by_a_and_wanted_by({"b.1"});
    refused("lock");
    pool.release("b.1");
    pool.release("a.1");
    refused("lock");  // which is free
    pool.commands.must({"DEL", pool.key});
    EXPECT_EQ(pool.error_of(scripts::lock_acquire, {"a.1", "100", "9999999999999", "1", "1", pool.rules}), "");
    refused("pool");
    pool.commands.must({"DEL", pool.key});
    // All that the short and the usual ways look at, but for v: something free, all taken, an offer, somebody who waits.
    auto const now = pool.commands.must({"TIME"}).elements.at(0).text;
    auto const held = "1 1 100000 " + now + "000000";
    pool.commands.must({"HSET", pool.key, "v",         "5", "c",    "5", "u", "1", "n",
                        "1",    "b",      now + "999", "d", "1000", "t", "7", "x", "9999999999999",
                        "o1",   "a.1",    "ia.1",      held});
    refused("pool");
    pool.commands.must({"HSET", pool.key, "c", "1"});
    refused("pool");
    pool.commands.must({"HSET", pool.key, "ia.1", "1 1 500 0 " + now + "999 offered 1"});
    refused("pool");
    pool.commands.must({"HSET", pool.key, "ia.1", held, "h", "1", "l", "1", "q1", "b.1", "wb.1", "1"});
    refused("pool");
    pool.commands.must({"HSET", pool.key, "n", "2", "u", "2", "c", "2", "o2", "a.2", "ia.2", held});
    pool.commands.must({"HDEL", pool.key, "h", "l", "q1", "wb.1"});
    refused("pool");
    pool.commands.must({"DEL", pool.key});
    pool.commands.must({"HSET", pool.key, "colour", "blue"});  // and somebody else's hash
    refused("pool");
    pool.commands.must({"DEL", pool.key});
}

TEST_F(pool_script_waiting, refuses_another_type_and_leaves_it_alone) {
    pool.commands.must({"SET", pool.key, "mine"});
    for (auto const& answer :
         {pool.acquire("a.1"), pool.claim("a.1"), pool.renew("a.1"), pool.release("a.1"), pool.adopt("a.1", "b.1"),
          pool.change("a.1", 1), pool.create(1), pool.resize(1), pool.add(1, "s", 1), pool.clear()})
        EXPECT_THAT(answer.word, StartsWith("WRONGTYPE"));
    EXPECT_THAT(pool.read_error(), StartsWith("WRONGTYPE"));
    EXPECT_EQ(pool.commands.must({"GETDEL", pool.key}).text, "mine");
}

TEST_F(pool_script_waiting, refuses_bad_arguments_before_it_writes) {
    auto const& rules = pool.rules;
    auto const refused = [&](scripts::script const& script, std::vector<std::string> arguments, std::size_t at,
                             std::vector<std::string> const& bad) {
        for (auto const& one : bad) {
            arguments[at] = one;
            EXPECT_EQ(pool.error_of(script, arguments), "LOCKSTEP_ARGUMENT") << script.name << ' ' << at << ' ' << one;
        }
    };
    std::vector<std::string> const holds{"", "x", "*", "b c.1", "-1", "nan"};
    std::vector<std::string> const numbers{"", "x", "-1", "0.5", "nan", "inf", "1e13"};
    std::vector<std::string> const digits{"", "x", "-1", "0.5", "nan", "inf", "1e13", " 1", "1e3", "0x1"};
    std::vector<std::string> const acquire{"b.1", "1000", "9999999999999", "1", "10", rules, "2", ""};
    for (bool const free : {true, false}) {
        if (!free) held_by_a_and_wanted_by({"d.1"}, 2);
        auto const before = pool.hash();
        refused(scripts::pool_acquire, acquire, 0, holds);
        refused(scripts::pool_acquire, acquire, 1, digits);
        refused(scripts::pool_acquire, acquire, 1, {"0"});
        refused(scripts::pool_acquire, acquire, 2, {"", "x", "nan"});
        refused(scripts::pool_acquire, acquire, 3, digits);
        refused(scripts::pool_acquire, acquire, 4, {"", "x"});
        refused(scripts::pool_acquire, acquire, 5, {"", "500", "500 1", "-1 1 channel", "x 1 channel", "500 1 "});
        refused(scripts::pool_acquire, acquire, 6, {"x", "-1", "0.5", "1e3", "9999999999999"});
        refused(scripts::pool_acquire, acquire, 7, {"x", "group", "group ", "group a b", "consume "});
        refused(scripts::pool_claim, {"a.1", "1000", "1", rules}, 0, holds);
        refused(scripts::pool_claim, {"a.1", "1000", "1", rules}, 1, numbers);
        refused(scripts::pool_claim, {"a.1", "1000", "1", rules}, 2, {"", "x"});
        std::vector<std::string> const renew{"a.1", "1000", rules, "1", "9999999999999"};
        refused(scripts::pool_renew, renew, 0, holds);
        refused(scripts::pool_renew, renew, 1, numbers);
        refused(scripts::pool_renew, renew, 3, {"", "x", "-1", "0", "0.5", "nan", "inf"});
        refused(scripts::pool_renew, renew, 4, {"", "x"});
        refused(scripts::pool_release, {"a.1", rules}, 0, holds);
        refused(scripts::pool_release, {"b.1", rules}, 1, {"", "500", "500 1"});
        refused(scripts::pool_adopt, {"a.1", "b.1", "1000", rules}, 1, holds);
        refused(scripts::pool_adopt, {"a.1", "b.1", "1000", rules}, 2, numbers);
        std::vector<std::string> const change{"a.1", "1", "1000", rules, "1", "9999999999999"};
        refused(scripts::pool_change, change, 0, holds);
        refused(scripts::pool_change, change, 1, numbers);
        refused(scripts::pool_change, change, 2, numbers);
        refused(scripts::pool_change, change, 4, {"", "x", "-1", "0", "0.5", "nan", "inf"});
        refused(scripts::pool_change, change, 5, {"", "x"});
        refused(scripts::pool_create, {"1", rules, ""}, 0, numbers);
        std::vector<std::string> const resize{"s", "1", "1", "", rules, "9999999999999"}, add{"s", "1", "1", rules, "9999999999999"};
        std::vector<std::string> const clear{"s", "1", rules, "9999999999999"};
        for (auto const& [script, arguments] : {std::pair{&scripts::pool_resize, &resize}, {&scripts::pool_add, &add}, {&scripts::pool_clear, &clear}}) {
            refused(*script, *arguments, 0, {"", "a b"});
            refused(*script, *arguments, 1, {"", "x", "-1", "0", "0.5", "nan", "inf"});
            refused(*script, *arguments, arguments->size() - 2, {"", "500"});
            refused(*script, *arguments, arguments->size() - 1, {"", "x"});
            if (script != &scripts::pool_clear) refused(*script, *arguments, 2, numbers);
        }
        EXPECT_EQ(pool.hash(), before);
    }
    pool.enter("c.9", "me");  // queued
    pool.release("a.1");
    pool.release("d.1");
    pool.claim("c.9");
    EXPECT_THAT(pool.change("c.9", 2).word, StartsWith("LOCKSTEP_ARGUMENT")) << "an owner's permits are shared";
}

TEST_F(pool_script_waiting, takes_no_more_when_the_server_is_out_of_memory_but_keeps_and_hands_on_what_is_there) {
    held_by_a_and_wanted_by({"b.1", "c.1"}, 2);
    auto const before = pool.hash();
    pool.server.must({"CONFIG", "SET", "maxmemory", "1"});
    for (auto const& answer : {pool.acquire("d.1"), pool.add(1, "s", 1)}) EXPECT_THAT(answer.word, StartsWith("OOM"));
    EXPECT_EQ(pool.hash(), before);
    EXPECT_EQ(pool.renew("a.1").word, "renewed");
    EXPECT_EQ(pool.adopt("a.1", "e.1").word, "granted");
    EXPECT_EQ(pool.change("e.1", 1).word, "changed");
    EXPECT_EQ(pool.claim("b.1").word, "granted") << "of the one that this one has no more";
    EXPECT_EQ(pool.release("e.1").offered_to, "c.1");
    EXPECT_THAT(pool.acquire("d.1").word, StartsWith("OOM"));
    pool.server.must({"CONFIG", "SET", "maxmemory", "0"});
}

TEST_F(pool_script_waiting, tells_those_who_only_wait_for_its_creation_though_others_are_before_them) {
    EXPECT_EQ(pool.wait("a.1").word, "queued");
    EXPECT_EQ(pool.acquire("b.1", {.amount = 0}).word, "queued");
    pool.create(1);
    EXPECT_THAT(pool.told(), ElementsAre("a.1", "b.1"));
    EXPECT_EQ(pool.acquire("b.1", {.amount = 0}).word, "granted");
}

TEST_F(pool_script_waiting, frees_one_that_claimed_for_less_than_was_left_to_claim_when_its_lease_is_over) {
    pool.create(1);
    pool.acquire("a.9");
    pool.acquire("a.1", {.ttl = 100});
    pool.release("a.9");
    EXPECT_EQ(pool.claim("a.1", 100).word, "granted");
    pool.pass(150);
    EXPECT_EQ(pool.acquire("b.1").word, "granted");
}

TEST_F(pool_script_waiting, lets_one_in_beside_its_owner_as_soon_as_it_is_first) {
    pool.enter("x.1", "X");
    for (auto const* const hold : {"a.1", "c.1", "b.1"}) EXPECT_EQ(pool.enter(hold, hold[0] == 'c' ? "Y" : "T").word, "queued");
    EXPECT_EQ(pool.release("x.1").offered_to, "a.1");
    EXPECT_EQ(pool.claim("a.1").word, "granted");
    pool.told();
    EXPECT_EQ(pool.release("c.1").word, "cancelled");
    EXPECT_THAT(pool.told(), ElementsAre("b.1"));
    EXPECT_EQ(pool.claim("b.1").word, "granted");
}

}  // namespace
