// The server's half of a pool of permits (semaphore, shared and recursive mutex, event): the rules of its permits, on a real server with
// the test's own clock. Holds are "<client>.<n>"; a client is heard while the test listens for it. pool_script_waiting_test.cpp has the
// rules of waiting, time and faults, pool_script_simulation_test.cpp puts all of them together at random.

#include "pool_script_support.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace {

using lockstep::test::pool_scripts;
using look = pool_scripts::look;
using pool_script = lockstep::test::pool_script_fixture;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::StartsWith;

// ---- permits ----

TEST_F(pool_script, grants_permits_while_there_are_some_each_with_a_larger_fence) {
    EXPECT_EQ(pool.create(3).word, "created");
    auto const first = pool.acquire("a.1");
    EXPECT_EQ(first.word, "granted");
    EXPECT_EQ(first.left, pool.ttl);
    EXPECT_EQ(first.fence / 1000, first.now);
    auto const second = pool.acquire("b.1", 2);
    EXPECT_TRUE(second.short_way) << "there is nothing to set up";
    EXPECT_GT(second.fence, first.fence);
    EXPECT_EQ(pool.read(), (look{3, 0, 2, 0}));
    EXPECT_EQ(pool.try_acquire("c.1").word, "busy");
    EXPECT_EQ(pool.release("a.1").word, "released");
    EXPECT_EQ(pool.read(), (look{3, 1, 1, 0}));
    EXPECT_EQ(pool.try_acquire("c.1", 2).word, "busy");
    EXPECT_GT(pool.try_acquire("c.1").fence, second.fence);
    EXPECT_EQ(pool.release("b.1").word, "released");
    EXPECT_EQ(pool.read(), (look{3, 2, 1, 0}));
    EXPECT_TRUE(pool.release("c.1").short_way) << "it was the only one";
    EXPECT_EQ(pool.read(), (look{3, 3, 0, 0}));
    EXPECT_EQ(pool.residue(), "");
}

TEST_F(pool_script, grants_no_more_than_the_count_also_on_the_short_way) {
    held_by_a_and_wanted_by({}, 2);
    pool.release("a.1");
    for (auto const* const hold : {"a.2", "a.3"}) EXPECT_TRUE(pool.try_acquire(hold).short_way) << hold;
    EXPECT_EQ(pool.try_acquire("a.4").word, "busy");
    pool.release("a.2");
    EXPECT_EQ(pool.try_acquire("a.4", 2).word, "busy");
}

TEST_F(pool_script, gives_the_same_grant_to_the_same_hold) {
    pool.create(2);
    auto const first = pool.acquire("a.1", 2);
    for (int i = 0; i < 2; ++i) {
        auto const again = pool.acquire("a.1", 2);
        EXPECT_EQ(again.word, "granted");
        EXPECT_EQ(again.fence, first.fence);
        EXPECT_LE(again.left, pool.ttl);
        EXPECT_EQ(pool.acquire("b.1").word, "queued");
        EXPECT_EQ(pool.claim("a.1").fence, first.fence);
    }
    pool.release("a.1");
    auto const claimed = pool.claim("b.1");
    EXPECT_GT(claimed.fence, first.fence);
    EXPECT_EQ(pool.claim("b.1").fence, claimed.fence);
    EXPECT_EQ(pool.acquire("b.1").fence, claimed.fence);
    auto const short_one = pool.acquire("c.1");
    EXPECT_EQ(pool.acquire("c.1").fence, short_one.fence);
    EXPECT_EQ(pool.read(), (look{2, 0, 2, 0})) << "and took its permits once";
}

TEST_F(pool_script, does_not_let_an_offer_be_changed) {
    held_by_a_and_wanted_by({"b.1"});
    EXPECT_EQ(pool.release("a.1").offered_to, "b.1");
    EXPECT_EQ(pool.change("b.1", 0).word, "gone");
}

TEST_F(pool_script, offers_to_as_many_as_fit_and_lets_nobody_pass_one_that_does_not) {
    pool.create(4);
    pool.acquire("a.1", 2);
    pool.acquire("a.2", 2);
    pool.acquire("b.1");
    pool.acquire("c.1");
    pool.acquire("b.2", 3);
    pool.acquire("c.2");
    EXPECT_EQ(pool.release("a.1").offered_to, "b.1");
    EXPECT_THAT(pool.told(), ElementsAre("b.1", "c.1"));
    EXPECT_EQ(pool.release("b.1").offered_to, "");
    EXPECT_EQ(pool.release("c.1").offered_to, "");
    EXPECT_EQ(pool.read(), (look{4, 2, 1, 2}));
    EXPECT_EQ(pool.try_acquire("d.1").word, "busy") << "b.2 was first, and wants three";
    EXPECT_EQ(pool.acquire("d.2").word, "queued");
    EXPECT_EQ(pool.release("a.2").offered_to, "b.2");
    EXPECT_THAT(pool.told(), ElementsAre("b.2", "c.2"));
    EXPECT_EQ(pool.claim("b.2").word, "granted");
    EXPECT_EQ(pool.claim("d.2").position, 1);
}

TEST_F(pool_script, lets_those_behind_go_when_a_large_request_is_cancelled) {
    pool.create(3);
    pool.acquire("a.1", 2);
    pool.acquire("b.1", 3);
    pool.acquire("c.1");
    pool.acquire("c.2");
    EXPECT_EQ(pool.release("b.1").word, "cancelled");
    EXPECT_THAT(pool.told(), ElementsAre("c.1"));
    EXPECT_EQ(pool.claim("c.1").word, "granted");
}

TEST_F(pool_script, offers_a_hundred_at_a_time_and_more_when_these_claim) {
    pool.acquire("a.1", writer());
    for (int i = 0; i < 250; ++i) ASSERT_EQ(pool.acquire("b." + pool.text(i)).word, "queued");
    pool.release("a.1");
    EXPECT_EQ(pool.told().size(), 100U);
    pool.claim("b.0");
    EXPECT_EQ(pool.told().size(), 100U);
    pool.claim("b.1");
    EXPECT_EQ(pool.told().size(), 50U);
    for (int i = 0; i < 250; ++i) ASSERT_EQ(pool.claim("b." + pool.text(i)).word, "granted");
    for (int i = 0; i < 250; ++i) ASSERT_EQ(pool.release("b." + pool.text(i * 7 % 250)).word, "released");
    EXPECT_EQ(pool.residue(), "");
}

TEST_F(pool_script, refuses_more_than_there_are_and_names_both) {
    pool.create(3);
    auto const refused = pool.acquire("a.1", 4);
    EXPECT_THAT(refused.word, StartsWith("LOCKSTEP_ARGUMENT"));
    EXPECT_THAT(refused.word, HasSubstr("4 permits are wanted, and there are only 3"));
    pool.acquire("a.1");
    EXPECT_THAT(pool.change("a.1", 4).word, StartsWith("LOCKSTEP_ARGUMENT"));
    pool.acquire("c.1", 2);
    EXPECT_THAT(pool.acquire("d.1", 4).word, StartsWith("LOCKSTEP_ARGUMENT")) << "also when nothing is free";
}

// ---- ends ----

TEST_F(pool_script, frees_what_a_dead_holder_had_also_when_that_is_read_or_changed) {
    held_by_a_and_wanted_by({"b.1", "c.1"});
    pool.pass(pool.ttl);
    EXPECT_EQ(pool.read(), (look{1, 1, 0, 2}));
    EXPECT_EQ(pool.change("a.1", 0).word, "gone");
    EXPECT_THAT(pool.told(), ElementsAre("b.1")) << "who noticed passed it on";
    EXPECT_EQ(pool.acquire("b.1").word, "granted");
}

TEST_F(pool_script, finds_a_dead_holder_among_living_ones) {
    pool.create(3);
    for (auto const* const hold : {"a.1", "b.1", "c.1"}) EXPECT_EQ(pool.acquire(hold).word, "granted");
    pool.pass(pool.ttl / 2);
    for (auto const* const hold : {"a.1", "c.1"}) EXPECT_EQ(pool.renew(hold).word, "renewed");
    EXPECT_LE(pool.acquire("d.1").left, pool.ttl / 2);
    pool.pass(pool.ttl / 2);
    EXPECT_EQ(pool.acquire("d.1").word, "granted");
    EXPECT_EQ(pool.claim("b.1").word, "gone");
    EXPECT_EQ(pool.renew("c.1").word, "renewed") << "it was moved to another number";
    EXPECT_EQ(pool.read(), (look{3, 0, 3, 0}));
}

TEST_F(pool_script, takes_the_short_way_again_after_a_holder_died) {
    pool.create(1);
    pool.acquire("a.1");
    pool.pass(pool.ttl);
    auto const next = pool.acquire("b.1");
    EXPECT_EQ(next.word, "granted");
    EXPECT_FALSE(next.short_way);
    pool.release("b.1");
    EXPECT_TRUE(pool.acquire("b.2").short_way);
}

TEST_F(pool_script, looks_at_all_holders_only_when_one_of_them_can_be_over) {
    pool.create(1000);
    for (int i = 0; i < 200; ++i) ASSERT_EQ(pool.acquire("a." + pool.text(i)).word, "granted");
    pool.acquire("b.1", 801);
    pool.server.must({"CONFIG", "RESETSTAT"});
    for (int i = 0; i < 50; ++i) {
        EXPECT_EQ(pool.acquire("b.1", 801).word, "queued");
        EXPECT_EQ(pool.renew("a." + pool.text(i)).word, "renewed");
    }
    EXPECT_LE(std::stoi(pool.server.info("cmdstat_hmget").substr(6)), 151);
    pool.pass(pool.ttl / 2);
    for (int i = 0; i < 200; ++i) ASSERT_EQ(pool.renew("a." + pool.text(i)).word, "renewed");
    pool.pass(pool.ttl / 2 + 10);
    EXPECT_GE(pool.acquire("b.1", 801).left, pool.ttl / 4) << "everybody renewed";
    EXPECT_EQ(pool.read(), (look{1000, 800, 200, 1}));
}

TEST_F(pool_script, knows_a_lease_that_ends_before_those_of_the_others) {
    pool.create(2);
    pool.acquire("a.1");
    EXPECT_EQ(pool.acquire("b.1", {.ttl = 100}).word, "granted");
    pool.pass(100);
    EXPECT_EQ(pool.acquire("c.1").word, "granted");
    EXPECT_EQ(pool.renew("c.1", 100).word, "renewed") << "also when renewing makes it shorter";
    pool.pass(100);
    EXPECT_EQ(pool.try_acquire("d.1").word, "granted");
}

TEST_F(pool_script, frees_thousands_of_dead_holders_in_bounded_steps) {
    pool.create(all);
    for (int i = 0; i < 5000; ++i) ASSERT_EQ(pool.acquire("a." + pool.text(i)).word, "granted");
    EXPECT_EQ(pool.acquire("b.1", all).word, "queued");
    pool.pass(pool.ttl);
    int calls = 1;
    for (auto said = pool.acquire("b.1", all); said.word != "granted"; ++calls) {
        ASSERT_TRUE(said.asks_again) << calls;
        said = pool.acquire("b.1", all);
    }
    EXPECT_GT(calls, 10) << "400 of them in each";
    EXPECT_LT(calls, 20);
    pool.release("b.1");
    EXPECT_EQ(pool.residue(), "");
}

// ---- a shared mutex ----

TEST_F(pool_script, lets_many_readers_in_or_one_writer_in_the_order_they_came) {
    for (auto const* const hold : {"a.1", "b.1"}) EXPECT_EQ(pool.acquire(hold, reader()).word, "granted");
    EXPECT_EQ(pool.acquire("c.1", writer()).word, "queued");
    for (auto const* const hold : {"a.2", "b.2"})
        EXPECT_EQ(pool.acquire(hold, reader()).word, "queued") << "a waiting writer stops new readers";
    EXPECT_EQ(pool.acquire("c.2", writer()).word, "queued");
    EXPECT_EQ(pool.release("a.1").offered_to, "");
    EXPECT_EQ(pool.release("b.1").offered_to, "c.1");
    pool.claim("c.1");
    pool.told();
    EXPECT_EQ(pool.release("c.1").offered_to, "a.2");
    EXPECT_THAT(pool.told(), ElementsAre("a.2", "b.2")) << "readers enter together";
    EXPECT_EQ(pool.claim("b.2").word, "granted");
    EXPECT_EQ(pool.claim("a.2").word, "granted");
    EXPECT_EQ(pool.read().waiting, 1);
}

TEST_F(pool_script, lets_a_writer_become_a_reader_with_its_fence) {
    auto const write = pool.acquire("a.1", writer());
    pool.acquire("b.1", reader());
    pool.acquire("c.1", writer());
    pool.pass(1000);
    auto const read = pool.change("a.1", 1);
    EXPECT_EQ(read.word, "changed");
    EXPECT_EQ(read.fence, write.fence);
    EXPECT_EQ(read.left, pool.ttl);
    EXPECT_THAT(pool.told(), ElementsAre("b.1"));
    EXPECT_EQ(pool.change("a.1", 1).fence, write.fence) << "the reply may have been lost";
    EXPECT_EQ(pool.acquire("a.1", reader()).fence, write.fence);
    EXPECT_EQ(pool.claim("b.1").word, "granted");
}

TEST_F(pool_script, lets_a_reader_become_a_writer_if_it_is_alone) {
    auto const read = pool.acquire("a.1", reader());
    pool.acquire("b.1", reader());
    pool.acquire("c.1", writer());
    auto const busy = pool.change("a.1", all);
    EXPECT_EQ(busy.word, "busy");
    EXPECT_LE(busy.left, pool.ttl);
    EXPECT_GT(busy.left, 0);
    pool.release("b.1");
    auto const write = pool.change("a.1", all);
    EXPECT_EQ(write.word, "changed") << "c.1 could not go before a.1 ends anyway";
    EXPECT_GT(write.fence, read.fence);
    EXPECT_EQ(pool.change("a.1", all).fence, write.fence);
    EXPECT_EQ(pool.try_acquire("b.2").word, "busy");
    EXPECT_EQ(pool.change("b.1", 1).word, "gone");
    EXPECT_EQ(pool.release("a.1").offered_to, "c.1");
}

// ---- a recursive mutex ----

TEST_F(pool_script, lets_an_owner_enter_again_at_once_with_the_same_fence) {
    auto const first = pool.enter("a.1", "me");
    EXPECT_EQ(first.word, "granted");
    EXPECT_EQ(pool.enter("b.1", "you").word, "queued");
    pool.pass(100);
    for (auto const* const hold : {"a.2", "c.3"}) {
        auto const again = pool.enter(hold, "me");
        EXPECT_EQ(again.word, "granted");
        EXPECT_EQ(again.fence, first.fence);
        EXPECT_EQ(again.left, pool.ttl);
    }
    EXPECT_EQ(pool.read(), (look{1, 0, 3, 1}));
    for (auto const* const hold : {"a.1", "c.3"}) EXPECT_EQ(pool.release(hold).offered_to, "");
    EXPECT_EQ(pool.enter("d.1", "you").word, "queued");
    EXPECT_EQ(pool.release("a.2").offered_to, "b.1") << "free when the last one is gone";
    EXPECT_GT(pool.claim("b.1").fence, first.fence);
}

TEST_F(pool_script, knows_its_owner_also_on_the_short_way) {
    pool.enter("a.1", "me");
    pool.release("a.1");
    auto const first = pool.enter("a.1", "me");
    EXPECT_TRUE(first.short_way);
    EXPECT_EQ(pool.enter("b.1", "you").word, "queued");
    pool.pass(10);
    EXPECT_EQ(pool.enter("a.2", "me").fence, first.fence);
    EXPECT_EQ(pool.enter("a.1", "me").fence, first.fence);
    pool.release("a.1");
    EXPECT_EQ(pool.release("a.2").offered_to, "b.1");
}

TEST_F(pool_script, shares_what_an_owner_has_also_while_more_is_free) {
    auto const first = pool.acquire("a.1", {.count = "2", .mode = "group me"});
    pool.pass(10);
    EXPECT_EQ(pool.enter("a.2", "me").fence, first.fence);
    EXPECT_EQ(pool.read(), (look{2, 1, 2, 0}));
    EXPECT_GT(pool.enter("b.1", "you").fence, first.fence);
    pool.release("a.1");
    EXPECT_EQ(pool.try_acquire("c.1").word, "busy");
    pool.release("a.2");
    EXPECT_EQ(pool.try_acquire("c.1").word, "granted");
}

TEST_F(pool_script, keeps_what_an_owner_has_from_one_that_has_no_owner) {
    for (auto const* const hold : {"a.1", "a.2"}) pool.enter(hold, "me");
    EXPECT_EQ(pool.acquire("b.1").word, "queued");
    EXPECT_EQ(pool.release("a.1").offered_to, "");
    EXPECT_EQ(pool.release("a.2").offered_to, "b.1");
}

TEST_F(pool_script, gives_all_waiting_holds_of_one_owner_one_fence) {
    pool.enter("a.1", "me");
    for (auto const* const hold : {"b.1", "c.1", "b.2"}) pool.enter(hold, "you");
    pool.enter("d.1", "other");
    pool.release("a.1");
    EXPECT_THAT(pool.told(), ElementsAre("b.1", "c.1", "b.2"));
    auto const first = pool.claim("c.1");
    pool.pass(10);
    EXPECT_EQ(pool.claim("b.2").fence, first.fence);
    pool.release("b.2");
    EXPECT_EQ(pool.claim("b.1").fence, first.fence);
    EXPECT_EQ(pool.enter("a.2", "you").fence, first.fence);
    EXPECT_EQ(pool.enter("a.3", "me").word, "queued");
    pool.release("c.1");
    pool.release("a.2");
    EXPECT_EQ(pool.release("b.1").offered_to, "d.1");
}

TEST_F(pool_script, lets_an_owner_enter_beside_what_it_was_offered) {
    pool.enter("a.1", "me");
    pool.enter("b.1", "you");
    pool.release("a.1");
    auto const beside = pool.enter("b.2", "you");
    EXPECT_EQ(beside.word, "granted");
    pool.pass(pool.window);
    EXPECT_EQ(pool.enter("c.1", "me").word, "queued") << "b.1 lapsed, b.2 did not";
    EXPECT_EQ(pool.release("b.2").offered_to, "c.1");
}

TEST_F(pool_script, frees_a_dead_owners_mutex_when_its_last_lease_is_over) {
    pool.enter("a.1", "me");
    pool.pass(pool.ttl / 2);
    pool.enter("a.2", "me");
    pool.pass(pool.ttl / 2);
    EXPECT_EQ(pool.enter("b.1", "you").word, "queued");
    pool.pass(pool.ttl / 2);
    EXPECT_EQ(pool.enter("b.1", "you").word, "granted");
    EXPECT_EQ(pool.enter("a.3", "me").word, "queued");
}

// ---- an event ----

TEST_F(pool_script, uses_up_one_signal_for_each_wait_and_keeps_those_nobody_waits_for) {
    EXPECT_EQ(pool.wait("a.1").word, "queued");
    EXPECT_EQ(pool.add(1, "s", 1).word, "added");
    EXPECT_THAT(pool.told(), ElementsAre("a.1"));
    EXPECT_EQ(pool.read(), (look{1, 0, 1, 0}));
    auto const got = pool.claim("a.1");
    EXPECT_EQ(got.word, "granted");
    EXPECT_EQ(pool.read(), (look{0, 0, 1, 0}));
    EXPECT_EQ(pool.wait("a.1").fence, got.fence) << "the reply may have been lost";
    EXPECT_EQ(pool.release("a.1").word, "released");
    EXPECT_EQ(pool.read(), (look{0, 0, 0, 0})) << "used up is used up";

    pool.add(2, "s", 2);
    EXPECT_EQ(pool.wait("a.2").word, "granted");
    EXPECT_EQ(pool.wait("a.3").word, "granted");
    EXPECT_EQ(pool.wait("a.2").word, "granted");
    EXPECT_EQ(pool.wait("a.4").word, "queued");
    pool.pass(pool.ttl);
    EXPECT_EQ(pool.wait("a.4").word, "queued") << "the records' ends give nothing back";
    EXPECT_EQ(pool.read(), (look{0, 0, 0, 1}));
    pool.release("a.4");
    EXPECT_EQ(pool.residue(), "");
}

TEST_F(pool_script, passes_a_signal_on_that_was_offered_and_not_taken) {
    for (auto const* const hold : {"a.1", "b.1", "c.1"}) pool.wait(hold);
    pool.add(1, "s", 1);
    EXPECT_EQ(pool.release("a.1").offered_to, "b.1") << "one that gives up";
    pool.pass(pool.window);
    EXPECT_EQ(pool.claim("c.1").word, "granted") << "one that is too late";
    EXPECT_EQ(pool.read(), (look{0, 0, 1, 0}));
}

TEST_F(pool_script, takes_a_signal_back_that_nobody_had_any_use_of) {
    pool.add(1, "s", 1);
    ASSERT_EQ(pool.wait("a.1").word, "granted");
    EXPECT_EQ(pool.release_unused("a.1", 1).word, "released");
    EXPECT_EQ(pool.release_unused("a.1", 1).word, "gone") << "once";
    ASSERT_EQ(pool.wait("a.2").word, "granted");
    EXPECT_EQ(pool.wait("b.1").word, "queued");
    EXPECT_EQ(pool.release_unused("a.2", 1).offered_to, "b.1") << "who waits gets it";
    EXPECT_EQ(pool.release_unused("b.1", 1).word, "released") << "which was only offered: nothing more comes back";
    EXPECT_EQ(pool.read().available, 1);
}

TEST_F(pool_script, counts_a_signal_once_that_is_sent_again) {
    for (std::int64_t const sequence : {1, 1, 2, 1, 2, 7, 7}) EXPECT_EQ(pool.add(1, "s", sequence).word, "added");
    pool.add(1, "other", 1);
    EXPECT_EQ(pool.read().available, 4);
}

TEST_F(pool_script, drops_stored_signals_but_not_those_under_way) {
    EXPECT_EQ(pool.clear().old, 0);
    EXPECT_EQ(pool.commands.must({"EXISTS", pool.key}).integer, 0);
    pool.wait("a.1");
    pool.add(4, "s", 1);
    EXPECT_EQ(pool.clear().old, 3);
    EXPECT_EQ(pool.read(), (look{1, 0, 1, 0}));
    EXPECT_EQ(pool.claim("a.1").word, "granted");
    EXPECT_EQ(pool.wait("a.2").word, "queued");
    pool.wait("b.1");
    pool.add(1, "s", 2);
    pool.pass(pool.window);
    EXPECT_EQ(pool.clear().old, 0) << "it is b.1's now, which waited for it";
    EXPECT_EQ(pool.claim("b.1").word, "granted");
}

// ---- creation and count ----

TEST_F(pool_script, grants_nothing_before_it_is_created_and_then_tells_those_who_wait) {
    EXPECT_EQ(pool.read(), (look{-1, 0, 0, 0}));
    EXPECT_EQ(pool.try_acquire("a.1", 0).word, "busy");
    EXPECT_EQ(pool.commands.must({"EXISTS", pool.key}).integer, 0);
    auto const waits = pool.acquire("a.1", 0);
    EXPECT_EQ(waits.word, "queued");
    EXPECT_EQ(waits.left, pool.ttl) << "there is no lease to wait for";
    EXPECT_EQ(pool.wait("b.1").word, "queued") << "what uses permits up waits for the first of them";
    EXPECT_EQ(pool.acquire("c.1", 0).word, "queued");
    EXPECT_EQ(pool.read(), (look{-1, 0, 0, 3}));
    EXPECT_EQ(pool.create(2).word, "created");
    EXPECT_THAT(pool.told(), ElementsAre("b.1", "a.1", "c.1"));
    EXPECT_EQ(pool.claim("a.1").word, "gone") << "it asks again";
    for (auto const* const hold : {"a.1", "c.1"}) EXPECT_EQ(pool.acquire(hold, 0).word, "granted") << "it wants nothing that is taken";
    EXPECT_EQ(pool.try_acquire("d.1", 0).word, "granted");
    EXPECT_EQ(pool.read(), (look{2, 1, 4, 0}));
}

TEST_F(pool_script, refuses_permits_of_one_that_does_not_exist) {
    auto const refusal = "LOCKSTEP_NOT_FOUND it does not exist: create it first";
    for (int again = 0; again < 2; ++again) {
        EXPECT_EQ(pool.acquire("a.1").word, refusal);
        EXPECT_EQ(pool.try_acquire("a.1", 2).word, refusal);
        EXPECT_EQ(pool.acquire("a.1", {.mode = "group A"}).word, refusal);
        EXPECT_EQ(pool.commands.must({"EXISTS", pool.key}).integer, 0);
        EXPECT_EQ(pool.enter("b.1", "B").word, "granted") << "it brings a count";
        pool.commands.must({"DEL", pool.key});
        pool.create(1);
        EXPECT_EQ(pool.acquire("a.1").word, "granted");
        EXPECT_EQ(pool.acquire("b.1").word, "queued");
        pool.commands.must({"DEL", pool.key});  // it vanished: who waits hears of it when he looks again
        EXPECT_EQ(pool.claim("b.1").word, "gone");
        EXPECT_EQ(pool.acquire("b.1").word, refusal);
    }
}

TEST_F(pool_script, turns_those_away_whom_an_earlier_version_let_wait_before_it_was_created) {
    EXPECT_EQ(pool.acquire("b.1", 0).word, "queued");
    EXPECT_EQ(pool.acquire("c.1", 0).word, "queued");
    EXPECT_THAT(pool.acquire("b.1", 2).word, StartsWith("LOCKSTEP_NOT_FOUND"));
    EXPECT_EQ(pool.read(), (look{-1, 0, 0, 1}));
    pool.create(2);
    EXPECT_THAT(pool.told(), ElementsAre("c.1"));
}

TEST_F(pool_script, works_when_the_first_offer_was_never_claimed) {
    pool.wait("a.1");
    pool.create(1);
    EXPECT_EQ(pool.release("a.1").word, "released");
    EXPECT_EQ(pool.acquire("b.1").word, "granted");
    EXPECT_EQ(pool.acquire("b.2").word, "queued");
    EXPECT_EQ(pool.release("b.1").offered_to, "b.2");
}

TEST_F(pool_script, asks_nobody_who_wants_no_permits_to_wait_for_permits) {
    held_by_a_and_wanted_by({"b.1"});
    EXPECT_EQ(pool.acquire("c.1", 0).word, "granted");
    pool.resize(0);
    EXPECT_EQ(pool.acquire("c.2", 0).word, "granted");
    EXPECT_EQ(pool.read(), (look{0, -1, 3, 0}));
}

TEST_F(pool_script, is_created_by_the_first_that_brings_a_count) {
    EXPECT_EQ(pool.acquire("a.1", 0).word, "queued");
    EXPECT_EQ(pool.acquire("b.1", {.count = "2"}).word, "granted");
    EXPECT_THAT(pool.told(), ElementsAre("a.1"));
    EXPECT_EQ(pool.acquire("c.1", {.count = "9"}).word, "granted");
    EXPECT_EQ(pool.read(), (look{2, 0, 3, 0})) << "a count is for new pools only";
    pool.pass(pool.ttl);
    EXPECT_EQ(pool.acquire("d.1", {.count = "9"}).word, "granted");
    EXPECT_EQ(pool.read(), (look{2, 1, 1, 0}));
}

TEST_F(pool_script, is_created_once_and_with_one_count) {
    EXPECT_EQ(pool.create(3).word, "created");
    EXPECT_EQ(pool.create(3).word, "exists");
    EXPECT_EQ(pool.create(4).word, "LOCKSTEP_COUNT 3");
    EXPECT_EQ(pool.read().count, 3);
}

TEST_F(pool_script, is_read_without_being_touched) {
    held_by_a_and_wanted_by({"b.1", "c.1"});
    pool.pass(pool.ttl);
    auto const before = pool.hash();
    EXPECT_EQ(pool.read(), (look{1, 1, 0, 2}));
    EXPECT_EQ(pool.hash(), before);
    EXPECT_THAT(pool.told(), IsEmpty());
}

TEST_F(pool_script, is_not_changed_after_the_deadline) {
    pool.create(2);
    pool.add(1, "s", 1);
    auto const before = pool.hash();
    for (auto const& answer : {pool.add(1, "s", 2, 1), pool.clear(1), pool.resize(5, 1)}) EXPECT_EQ(answer.word, "late");
    EXPECT_EQ(pool.hash(), before);
    EXPECT_EQ(pool.add(1, "s", 2).word, "added") << "and the sequence is not used up";
    EXPECT_EQ(pool.read().count, 4);
}

}  // namespace
