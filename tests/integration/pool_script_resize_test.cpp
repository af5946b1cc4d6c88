// The server's half of changing how many permits there are, while others hold them and wait for them.

#include "pool_script_support.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace {

using lockstep::test::pool_scripts;
using look = pool_scripts::look;
using pool_script_resize = lockstep::test::pool_script_fixture;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::StartsWith;

TEST_F(pool_script_resize, takes_nothing_from_anybody) {
    EXPECT_EQ(pool.resize(3).word, "gone");
    held_by_a_and_wanted_by({"b.1", "c.1", "b.2"});
    auto const larger = pool.resize(3);
    EXPECT_EQ(larger.word, "resized");
    EXPECT_EQ(larger.old, 1);
    EXPECT_THAT(pool.told(), ElementsAre("b.1", "c.1"));
    for (auto const* const hold : {"b.1", "c.1"}) pool.claim(hold);
    EXPECT_EQ(pool.resize(1).old, 3);
    EXPECT_EQ(pool.read(), (look{1, -2, 3, 1}));
    EXPECT_EQ(pool.renew("c.1").word, "renewed") << "nobody loses anything";
    EXPECT_EQ(pool.change("c.1", 1).word, "changed");
    EXPECT_EQ(pool.release("a.1").offered_to, "");
    EXPECT_EQ(pool.release("b.1").offered_to, "");
    EXPECT_EQ(pool.release("c.1").offered_to, "b.2");
}

TEST_F(pool_script_resize, turns_those_away_who_want_more_than_there_are) {
    held_by_a_and_wanted_by({}, 4);
    EXPECT_EQ(pool.acquire("b.1", 4).word, "queued");
    EXPECT_EQ(pool.acquire("c.1", 2).word, "queued");
    EXPECT_EQ(pool.acquire("d.1", 3).word, "queued");
    pool.resize(2);
    EXPECT_THAT(pool.told(), ElementsAre("b.1", "d.1"));
    EXPECT_EQ(pool.read(), (look{2, -2, 1, 1}));
    for (int repeated = 0; repeated < 2; ++repeated) {  // the reply may have been lost
        EXPECT_EQ(pool.claim("b.1").word, "gone");
        EXPECT_THAT(pool.acquire("b.1", 4).word, HasSubstr("4 permits are wanted, and there are only 2"));
    }
    auto const first_time = pool.acquire("a.9", 3).word;
    EXPECT_EQ(pool.acquire("d.1", 3).word, first_time) << "as one that asks for the first time";
    EXPECT_EQ(pool.release("b.1").word, "gone");
    EXPECT_EQ(pool.release("a.1").offered_to, "c.1");
}

TEST_F(pool_script_resize, lets_those_behind_go_on_at_once) {
    pool.create(4);
    pool.acquire("a.1");
    pool.acquire("b.1", 4);
    pool.acquire("c.1");
    pool.acquire("d.1", 2);
    pool.told();
    pool.resize(3);
    EXPECT_THAT(pool.told(), ElementsAre("c.1", "b.1")) << "and who is turned away hears it when that is written";
    EXPECT_EQ(pool.claim("c.1").word, "granted");
    EXPECT_EQ(pool.release("a.1").offered_to, "d.1");
}

TEST_F(pool_script_resize, is_not_held_up_by_the_dead_and_the_suspect) {
    pool.create(4);
    for (auto const* const hold : {"a.1", "a.2"}) pool.acquire(hold, 2);
    pool.acquire("b.1");
    for (auto const* const hold : {"b.2", "c.1"}) pool.acquire(hold, 4);
    pool.acquire("d.1", 2);
    pool.release("a.1");
    pool.pass(pool.window);  // b does not claim: it is suspect
    pool.disconnect("c");
    pool.told();
    pool.resize(3);
    EXPECT_THAT(pool.told(), ElementsAre("b.2"));
    EXPECT_EQ(pool.read(), (look{3, 1, 1, 1}));
    EXPECT_EQ(pool.release("a.2").offered_to, "d.1");
    EXPECT_THAT(pool.acquire("c.1", 4).word, StartsWith("LOCKSTEP_ARGUMENT")) << "it lives, and looks again";
}

TEST_F(pool_script_resize, turns_away_wherever_they_stand) {
    for (int which = 1; which < 32; ++which) {
        held_by_a_and_wanted_by({}, 5);
        auto const many = [&](int place) { return (which >> place & 1) != 0; };
        for (int i = 0; i < 5; ++i) pool.acquire("b." + pool.text(i), many(i) ? 3 : 2);
        for (int i = 0; i < 5; ++i) EXPECT_EQ(pool.acquire("c." + pool.text(i), 2).word, "queued");
        pool.release("c.2");  // a hole
        pool.resize(2);
        EXPECT_EQ(pool.damage(), "") << which;
        std::string owner = "a.1";
        for (std::string const client : {"b.", "c."})
            for (int i = 0; i < 5; ++i) {
                auto const hold = client + pool.text(i);
                if ((client == "b." && many(i)) || hold == "c.2") continue;
                EXPECT_EQ(pool.release(owner).offered_to, hold) << which;
                pool.claim(hold);
                owner = hold;
            }
        pool.release(owner);
        EXPECT_EQ(pool.residue(), "") << which;
        pool.commands.must({"DEL", pool.key});
    }
}

TEST_F(pool_script_resize, turns_away_among_many_and_where_most_have_left) {
    for (int const stay : {1, 40}) {  // one in so many of those who came
        held_by_a_and_wanted_by({}, 5);
        std::vector<std::string> expected;
        for (int i = 0; i < 2500; ++i) {
            auto const hold = "b." + pool.text(i);
            pool.acquire(hold, i % 7 == 0 ? 3 : i % 11 == 0 ? 2 : 1);
            bool const leaves = (i > 990 && i < 1010) || (i > 10 && i % stay != 0);
            if (leaves) pool.release(hold);
            if (!leaves && i % 7 == 0) expected.push_back(hold);
        }
        pool.told();
        pool.resize(2);
        EXPECT_EQ(pool.told(), expected);
        EXPECT_EQ(pool.damage(), "") << stay;
        pool.commands.must({"DEL", pool.key});
    }
}

TEST_F(pool_script_resize, lets_who_was_turned_away_queue_again_if_there_is_enough_when_it_asks) {
    held_by_a_and_wanted_by({}, 4);
    pool.acquire("b.1", 4);
    pool.acquire("c.1");
    pool.resize(2);
    pool.resize(4);
    EXPECT_EQ(pool.claim("b.1").word, "gone");
    auto const again = pool.acquire("b.1", 4);
    EXPECT_EQ(again.word, "queued");
    EXPECT_EQ(again.position, 2) << "behind those who stayed";
    EXPECT_EQ(pool.release("a.1").offered_to, "c.1");
    pool.claim("c.1");
    EXPECT_EQ(pool.release("c.1").offered_to, "b.1");
}

TEST_F(pool_script_resize, keeps_what_was_offered_before_but_only_while_that_lasts) {
    held_by_a_and_wanted_by({}, 4);
    for (auto const* const hold : {"b.1", "c.1"}) pool.acquire(hold, 4);
    pool.release("a.1");
    pool.resize(2);
    EXPECT_EQ(pool.claim("b.1").word, "granted");
    EXPECT_EQ(pool.read(), (look{2, -2, 1, 0}));
    pool.release("b.1");
    pool.resize(4);
    pool.acquire("b.2", 4);
    pool.acquire("d.1", 4);
    pool.release("b.2");
    pool.resize(2);
    pool.pass(pool.window);
    EXPECT_EQ(pool.claim("d.1").word, "gone");
    EXPECT_THAT(pool.acquire("d.1", 4).word, StartsWith("LOCKSTEP_ARGUMENT"));
}

TEST_F(pool_script_resize, is_possible_when_the_server_is_out_of_memory) {
    held_by_a_and_wanted_by({}, 4);
    pool.acquire("b.1", 4);
    pool.acquire("c.1");
    pool.server.must({"CONFIG", "SET", "maxmemory", "1"});
    EXPECT_EQ(pool.resize(2).word, "resized");
    EXPECT_THAT(pool.told(), ElementsAre("b.1")) << "who wants more than there are";
    pool.server.must({"CONFIG", "SET", "maxmemory", "0"});
}

TEST_F(pool_script_resize, frees_a_queue_that_an_earlier_version_left_stuck) {
    held_by_a_and_wanted_by({}, 4);
    pool.acquire("b.1", 4);
    pool.acquire("c.1");
    pool.commands.must({"HSET", pool.key, "c", "2"});
    pool.release("a.1");
    EXPECT_THAT(pool.told(), ElementsAre("c.1", "b.1"));
    EXPECT_THAT(pool.acquire("b.1", 4).word, HasSubstr("4 permits are wanted, and there are only 2"));
}

TEST_F(pool_script_resize, and_creating_tell_those_who_ask_again) {
    EXPECT_EQ(pool.acquire("b.1", 0).word, "queued");
    EXPECT_EQ(pool.acquire("c.1", 0).word, "queued");
    EXPECT_EQ(pool.wait("d.1").word, "queued");
    pool.create(3);
    EXPECT_THAT(pool.told(), ElementsAre("d.1", "b.1", "c.1")) << "who gets some first; the others ask again";
    EXPECT_EQ(pool.acquire("c.1", 0).word, "granted");
    EXPECT_EQ(pool.claim("d.1").word, "granted");
    EXPECT_EQ(pool.read().count, 2) << "what is consumed is gone";
    pool.add(1, "s", 1);
    EXPECT_THAT(pool.acquire("b.1", 4).word, HasSubstr("4 permits are wanted, and there are only 3"));
}

TEST_F(pool_script_resize, of_signals_turns_nobody_away_who_waits_for_more_of_them) {
    pool.add(1, "s", 1);
    EXPECT_EQ(pool.acquire("b.1", {.amount = 2, .mode = "consume"}).word, "queued");
    EXPECT_EQ(pool.acquire("c.1", {.amount = 3, .mode = "consume"}).word, "queued");
    pool.resize(0);
    EXPECT_THAT(pool.told(), IsEmpty());
    pool.add(2, "s", 2);
    EXPECT_THAT(pool.told(), ElementsAre("b.1"));
}

}  // namespace
