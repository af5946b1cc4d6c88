// The server's half of a barrier: each rule of its scripts, on a real server with the test's own clock. Holds are "<client>.<n>"; three
// parties unless a test says otherwise. gate_script_simulation_test.cpp puts the rules together at random.

#include "gate_script_support.hpp"
#include "support/eventually.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace {

using lockstep::test::barrier_scripts;
using lockstep::test::eventually;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::StartsWith;
namespace scripts = lockstep::scripts;

class barrier_script : public testing::Test {
protected:
    barrier_script() {
        for (auto const* const client : {"a", "b", "c", "d"}) barrier.connect(client);
    }

    // a.1 and b.1 wait; the open generation.
    std::int64_t two_wait() {
        auto const open = barrier.arrive("a.1", 0).value;
        EXPECT_EQ(barrier.arrive("b.1", open).word, "waiting");
        return open;
    }
    std::string outcome(std::string const& hold, std::int64_t generation) { return barrier.ask(hold, generation).word; }

    barrier_scripts barrier;
    barrier_scripts::options const with_completion{.completion = true};
};

TEST_F(barrier_script, lets_all_go_when_the_last_one_arrives) {
    auto const first = barrier.arrive("a.1", 0);
    EXPECT_EQ(first.word, "waiting");
    EXPECT_EQ(first.arrived, 1);
    EXPECT_EQ(first.look_again, barrier.ttl);
    EXPECT_EQ(barrier.arrive("b.1", first.value).arrived, 2);
    EXPECT_EQ(barrier.ask("a.1", first.value).arrived, 2);
    EXPECT_THAT(barrier.told(), IsEmpty());
    auto const last = barrier.arrive("c.1", first.value);
    EXPECT_EQ(last.word, "complete");
    EXPECT_EQ(last.value, first.value);
    EXPECT_THAT(barrier.told(), ElementsAre("a", "b")) << "the caller has its answer";
    for (auto const* const hold : {"a.1", "b.1", "c.1"}) EXPECT_EQ(outcome(hold, first.value), "complete");
}

TEST_F(barrier_script, tells_a_client_once_also_when_it_is_there_several_times) {
    auto const open = barrier.arrive("a.1", 0).value;
    barrier.arrive("a.2", open);
    EXPECT_EQ(barrier.arrive("a.3", open).word, "complete");
    EXPECT_THAT(barrier.told(), ElementsAre("a"));
}

TEST_F(barrier_script, has_one_generation_after_the_other) {
    auto open = std::int64_t{0};
    for (int i = 1; i <= 5; ++i) {
        auto const n = std::to_string(i);
        auto const first = barrier.arrive("a." + n, open);
        EXPECT_TRUE(open == 0 || first.value == open);
        EXPECT_EQ(first.arrived, 1);
        EXPECT_EQ(barrier.arrive("b." + n, first.value).word, "waiting");
        EXPECT_EQ(barrier.arrive("c." + n, first.value).word, "complete");
        open = first.value + 1;
    }
    EXPECT_EQ(outcome("a.1", open - 5), "complete");
    EXPECT_EQ(barrier.entries('h'), 9) << "arrivals of the last three generations";
}

TEST_F(barrier_script, is_for_as_many_as_its_first_arrival_said) {
    auto const open = barrier.arrive("a.1", 0).value;
    auto const before = barrier.hash();
    EXPECT_THAT(barrier.arrive("b.1", open, {.parties = 4}).word, StartsWith("LOCKSTEP_COUNT 3 "));
    EXPECT_EQ(barrier.hash(), before);
    EXPECT_EQ(barrier.arrive("b.1", open).arrived, 2);
}

TEST_F(barrier_script, can_have_a_single_party) {
    auto const only = barrier.arrive("a.1", 0, {.parties = 1});
    EXPECT_EQ(only.word, "complete");
    EXPECT_EQ(barrier.arrive("a.1", 0, {.parties = 1}).value, only.value);
    EXPECT_EQ(barrier.arrive("a.2", only.value + 1, {.parties = 1}).word, "complete");
    EXPECT_THAT(barrier.told(), IsEmpty());
}

TEST_F(barrier_script, gives_the_same_answer_to_an_arrival_that_is_sent_again) {
    auto const open = two_wait();
    for (int i = 0; i < 3; ++i) EXPECT_EQ(barrier.arrive("b.1", open).arrived, 2);
    EXPECT_EQ(barrier.arrive("a.1", 0).value, open);
    EXPECT_EQ(barrier.arrive("a.1", 0, {.deadline = 1}).word, "waiting")
        << "arrived is arrived, also after the deadline";
    EXPECT_EQ(barrier.arrive("c.1", open).word, "complete");
    for (auto const* const hold : {"b.1", "c.1"}) {
        auto const again = barrier.arrive(hold, open);
        EXPECT_EQ(again.word, "complete");
        EXPECT_EQ(again.value, open);
    }
    EXPECT_EQ(barrier.arrive("d.1", open + 1).arrived, 1) << "none of that counted in the next generation";
}

TEST_F(barrier_script, counts_an_arrival_only_in_the_generation_it_is_meant_for) {
    auto const behind = barrier.arrive("a.1", 7);
    EXPECT_EQ(behind.word, "behind") << "there is none yet";
    EXPECT_EQ(behind.value, 0);
    EXPECT_FALSE(barrier.exists());
    auto const open = two_wait();
    barrier.arrive("c.1", open);
    for (auto const meant : {open, open + 2, std::int64_t{0}}) {
        auto const before = barrier.hash();
        auto const answer = barrier.arrive("d.1", meant);
        EXPECT_EQ(answer.word, "behind");
        EXPECT_EQ(answer.value, open + 1);
        EXPECT_EQ(barrier.hash(), before);
    }
    EXPECT_EQ(barrier.arrive("d.1", open + 1).arrived, 1);
}

TEST_F(barrier_script, says_when_it_does_not_know_any_more_whether_a_hold_arrived) {
    auto const open = two_wait();
    barrier.withdraw("a.1", open);
    for (int i = 1; i <= 4; ++i) {
        bool const known = i <= 3;
        EXPECT_EQ(barrier.arrive("a.1", 0).word, known ? "broken" : "forgotten");
        EXPECT_EQ(barrier.arrive("b.1", open).word, known ? "broken" : "forgotten");
        EXPECT_EQ(barrier.arrive("d.1", open).word, known ? "behind" : "forgotten");
        EXPECT_EQ(barrier.arrive("d.1", 0).word, "behind") << "it did not come first, that is known for ever";
        EXPECT_EQ(outcome("b.1", open), "broken") << "it says that it arrived";
        EXPECT_EQ(outcome("d.1", open), known ? "gone" : "broken");
        auto const hold = "c." + std::to_string(i);
        EXPECT_EQ(barrier.arrive(hold, open + i).word, "waiting");
        EXPECT_EQ(barrier.withdraw(hold, open + i).word, "broken");
    }
}

TEST_F(barrier_script, does_nothing_after_its_deadline) {
    auto const past = barrier.now() - 1;
    EXPECT_EQ(barrier.arrive("a.1", 0, {.deadline = past}).word, "late");
    EXPECT_FALSE(barrier.exists());
    auto const open = two_wait();
    auto const before = barrier.hash();
    auto const late = barrier.arrive("c.1", open, {.deadline = past});
    EXPECT_EQ(late.word, "late");
    EXPECT_GT(late.now, past);
    EXPECT_EQ(barrier.hash(), before);
    EXPECT_EQ(barrier.arrive("c.1", open, {.deadline = past + 60'000}).word, "complete");
}

TEST_F(barrier_script, is_broken_for_all_by_who_withdraws) {
    auto const open = two_wait();
    auto const withdrawn = barrier.withdraw("a.1", open);
    EXPECT_EQ(withdrawn.word, "broken");
    EXPECT_EQ(withdrawn.value, open);
    EXPECT_THAT(barrier.told(), ElementsAre("b"));
    EXPECT_EQ(barrier.withdraw("a.1", open).word, "broken");
    EXPECT_EQ(outcome("b.1", open), "broken");
    EXPECT_EQ(barrier.arrive("b.1", open).word, "broken");
    EXPECT_EQ(barrier.arrive("c.1", open).word, "behind");
    EXPECT_EQ(barrier.arrive("c.1", open + 1).arrived, 1) << "the next generation begins from nothing";
}

TEST_F(barrier_script, tells_who_withdraws_too_late_that_it_was_complete) {
    auto const open = two_wait();
    barrier.arrive("c.1", open);
    EXPECT_EQ(barrier.withdraw("a.1", open).word, "complete");
    EXPECT_EQ(outcome("b.1", open), "complete");
}

TEST_F(barrier_script, is_not_broken_by_who_is_not_there) {
    auto const open = two_wait();
    EXPECT_EQ(barrier.withdraw("d.1", open).word, "gone");
    EXPECT_EQ(barrier.withdraw("d.1", open + 1).word, "gone");
    EXPECT_EQ(barrier.withdraw("a.1", open - 1).word, "gone");
    EXPECT_EQ(barrier.withdraw("a.1", open + 1).word, "gone");
    EXPECT_EQ(barrier.ask("d.1", open).word, "gone");
    EXPECT_EQ(barrier.renew("d.1").word, "gone");
    EXPECT_EQ(barrier.arrive("c.1", open).word, "complete");
}

TEST_F(barrier_script, is_broken_when_a_lease_of_an_arrival_runs_out) {
    auto open = two_wait();
    barrier.pass(barrier.ttl - 1000);
    EXPECT_EQ(barrier.renew("b.1").word, "renewed");
    auto const look = barrier.ask("b.1", open);
    EXPECT_LE(look.look_again, 1000);
    barrier.pass(look.look_again);
    EXPECT_EQ(barrier.ask("b.1", open).word, "broken");
    EXPECT_EQ(barrier.renew("a.1").word, "broken") << "lost is lost";
    EXPECT_THAT(barrier.told(), ElementsAre("a", "b")) << "b too, which may have given up the command that found it";
    for (std::string const finder : {"renew", "arrive", "withdraw", "newcomer"}) {
        ++open;
        barrier.arrive("a." + finder, open);
        barrier.arrive("b." + finder, open);
        barrier.pass(barrier.ttl - 1000);
        barrier.renew("b." + finder);
        barrier.pass(1000);
        if (finder == "renew") {
            EXPECT_EQ(barrier.renew("b.renew").word, "broken");
        }
        if (finder == "arrive") {
            EXPECT_EQ(barrier.arrive("b.arrive", open).word, "broken");
        }
        if (finder == "withdraw") {
            EXPECT_EQ(barrier.withdraw("b.withdraw", open).word, "broken");
        }
        if (finder == "newcomer") {
            EXPECT_EQ(barrier.arrive("c.newcomer", open).word, "behind") << "not the last of three";
        }
        EXPECT_EQ(outcome("a." + finder, open), "broken") << finder;
        EXPECT_EQ(outcome("b." + finder, open), "broken") << finder;
        EXPECT_THAT(barrier.told(), ElementsAre("a", "b"));
    }
}

TEST_F(barrier_script, stays_open_while_all_renew) {
    auto const open = two_wait();
    for (int i = 0; i < 10; ++i) {
        barrier.pass(barrier.ttl / 3);
        auto const renewed = barrier.renew("a.1");
        EXPECT_EQ(renewed.word, "renewed");
        EXPECT_EQ(renewed.value, barrier.ttl);
        EXPECT_EQ(barrier.renew("b.1").word, "renewed");
        EXPECT_GT(barrier.ask("a.1", open).look_again, 0);
    }
    EXPECT_LE(std::stoi(barrier.server.info("cmdstat_hgetall").substr(6)), 5) << "looks through all of them seldom";
    EXPECT_EQ(barrier.arrive("c.1", open).word, "complete");
    EXPECT_EQ(barrier.renew("a.1").word, "complete");
    auto const next = barrier.arrive("a.2", open + 1);
    EXPECT_EQ(next.look_again, barrier.ttl);
    EXPECT_EQ(barrier.renew("a.2", 500).word, "renewed") << "also to make it shorter";
    barrier.pass(500);
    EXPECT_EQ(outcome("a.2", open + 1), "broken");
}

TEST_F(barrier_script, looks_again_at_the_earliest_end) {
    auto const first = barrier.arrive("a.1", 0, {.ttl = 5000});
    EXPECT_LE(barrier.arrive("b.1", first.value, {.ttl = 2000}).look_again, 2000) << "an earlier one";
    barrier.withdraw("a.1", first.value);
    auto const next = barrier.arrive("a.2", first.value + 1, {.ttl = 5000});
    EXPECT_EQ(next.look_again, 5000) << "the generation before does not matter any more";
    EXPECT_LE(barrier.arrive("b.2", next.value).look_again, 5000) << "a later one";
    barrier.pass(4000);
    barrier.renew("a.2", 5000);
    barrier.pass(2000);
    auto const look = barrier.ask("a.2", next.value);
    EXPECT_EQ(look.word, "waiting") << "nor does it when all are looked through";
    EXPECT_LE(look.look_again, 3000);
    EXPECT_GT(look.look_again, 1000);
    auto const looked = barrier.server.info("cmdstat_hgetall").substr(0, 8);
    for (int i = 0; i < 5; ++i) barrier.ask("b.2", next.value);
    EXPECT_EQ(barrier.server.info("cmdstat_hgetall").substr(0, 8), looked) << "once";
}

TEST_F(barrier_script, finds_the_dead_also_when_the_clock_steps_back) {
    auto const open = two_wait();
    barrier.pass(-barrier.hour);
    for (int i = 0; i < 9; ++i) {
        if (barrier.renew("b.1").word == "broken") break;
        barrier.pass(barrier.ttl / 3);
    }
    EXPECT_EQ(outcome("a.1", open), "broken");
}

TEST_F(barrier_script, finds_out_when_the_clock_steps_back_that_all_who_arrived_are_dead) {
    auto const open = barrier.arrive("a.1", 0, with_completion).value;
    barrier.arrive("b.1", open, with_completion);
    ASSERT_EQ(barrier.arrive("c.1", open, with_completion).word, "run");
    barrier.pass(-barrier.hour);
    for (int i = 0; i < 2; ++i) {
        auto const next = barrier.arrive("d.1", open, with_completion);
        ASSERT_EQ(next.word, "full");
        EXPECT_LE(next.look_again, barrier.ttl) << "nobody renews these arrivals, and they end in an hour";
        barrier.pass(next.look_again);
    }
    EXPECT_EQ(barrier.arrive("d.1", open, with_completion).word, "behind");
    EXPECT_EQ(outcome("a.1", open), "broken");
}

TEST_F(barrier_script, has_its_completion_step_run_by_the_last_one_only) {
    auto const open = barrier.arrive("a.1", 0, with_completion).value;
    barrier.arrive("b.1", open, with_completion);
    EXPECT_EQ(barrier.finish("b.1", open).word, "waiting") << "it was not told to";
    auto const run = barrier.arrive("c.1", open, with_completion);
    EXPECT_EQ(run.word, "run");
    EXPECT_EQ(run.value, open);
    EXPECT_EQ(barrier.arrive("c.1", open, with_completion).word, "run") << "the reply may have been lost";
    EXPECT_EQ(outcome("c.1", open), "run");
    EXPECT_EQ(outcome("a.1", open), "waiting");
    EXPECT_EQ(barrier.finish("a.1", open).word, "waiting");
    EXPECT_EQ(barrier.finish("d.1", open).word, "gone");
    EXPECT_EQ(barrier.finish("c.1", open + 1).word, "gone") << "nor is it asked for another generation";
    EXPECT_EQ(outcome("c.1", open), "run");
    EXPECT_EQ(barrier.renew("c.1").word, "renewed");
    EXPECT_THAT(barrier.told(), IsEmpty());
    for (int i = 0; i < 2; ++i) EXPECT_EQ(barrier.finish("c.1", open).word, "complete");
    EXPECT_THAT(barrier.told(), ElementsAre("a", "b"));
    EXPECT_EQ(outcome("a.1", open), "complete");
    EXPECT_EQ(barrier.finish("c.1", open, false).word, "complete") << "what is decided stays";
    EXPECT_EQ(barrier.arrive("a.2", open + 1, with_completion).word, "waiting");
}

TEST_F(barrier_script, is_broken_by_a_completion_step_that_fails_or_whose_runner_dies_or_that_is_not_waited_for) {
    auto open = std::int64_t{0};
    for (std::string const how : {"fails", "dies", "withdrawn"}) {
        open = barrier.arrive("a." + how, open, with_completion).value;
        barrier.arrive("b." + how, open, with_completion);
        ASSERT_EQ(barrier.arrive("c." + how, open, with_completion).word, "run");
        if (how == "fails") {
            EXPECT_EQ(barrier.finish("c.fails", open, false).word, "broken");
        }
        if (how == "dies") {
            barrier.pass(barrier.ttl - 1000);
            barrier.renew("a.dies");
            barrier.renew("b.dies");
            barrier.pass(1000);
            EXPECT_EQ(barrier.finish("c.dies", open).word, "broken") << "late, but not dead: it learns that";
        }
        if (how == "withdrawn") {
            EXPECT_EQ(barrier.withdraw("a.withdrawn", open).word, "broken");
        }
        EXPECT_THAT(barrier.told(), testing::Contains("b"));
        for (auto const* const client : {"a.", "b.", "c."}) EXPECT_EQ(outcome(client + how, open), "broken") << how;
        EXPECT_EQ(barrier.finish("c." + how, open).word, "broken");
        ++open;
    }
}

TEST_F(barrier_script, lets_nobody_in_while_the_step_is_run_and_tells_it_when_the_next_generation_opens) {
    auto const open = barrier.arrive("a.1", 0, with_completion).value;
    barrier.arrive("b.1", open, with_completion);
    barrier.arrive("c.1", open, with_completion);
    for (auto const* const hold : {"d.1", "d.2"}) {
        auto const full = barrier.arrive(hold, open, with_completion);
        EXPECT_EQ(full.word, "full");
        EXPECT_EQ(full.value, open);
        EXPECT_LE(full.look_again, barrier.ttl);
    }
    EXPECT_EQ(barrier.ask("a.1", open).arrived, 3);
    EXPECT_EQ(barrier.arrive("d.1", open, {.deadline = 1, .completion = true}).word, "late");
    EXPECT_EQ(barrier.finish("c.1", open).word, "complete");
    EXPECT_THAT(barrier.told(), ElementsAre("a", "b", "d"));
    EXPECT_EQ(barrier.arrive("d.1", open, with_completion).word, "behind");
    EXPECT_EQ(barrier.arrive("d.1", open + 1, with_completion).arrived, 1);
    EXPECT_EQ(barrier.withdraw("d.1", open + 1).word, "broken");
    EXPECT_THAT(barrier.told(), IsEmpty()) << "d does not wait outside any more";
}

TEST_F(barrier_script, keeps_the_outcomes_of_a_hundred_generations) {
    auto const first = two_wait();
    barrier.arrive("c.1", first);
    for (int i = 1; i <= 99; ++i) {
        auto const hold = "a.x" + std::to_string(i);
        barrier.arrive(hold, first + i);
        barrier.withdraw(hold, first + i);
    }
    EXPECT_EQ(outcome("a.1", first), "complete");
    EXPECT_EQ(outcome("a.x1", first + 1), "broken");
    EXPECT_EQ(barrier.hash()["o"].size(), 100U);
    barrier.arrive("a.y", first + 100);
    barrier.withdraw("a.y", first + 100);
    EXPECT_EQ(outcome("a.1", first), "gone");
    EXPECT_EQ(outcome("a.x1", first + 1), "broken");
    EXPECT_EQ(barrier.hash()["o"].size(), 100U);
}

TEST_F(barrier_script, numbers_its_generations_anew_after_it_was_gone_but_repeats_none) {
    auto const open = two_wait();
    barrier.arrive("c.1", open);
    barrier.commands.must({"DEL", barrier.key});
    EXPECT_EQ(outcome("a.1", open), "gone");
    EXPECT_EQ(barrier.arrive("a.2", open + 1).value, 0) << "there is none, so it has to say 0";
    EXPECT_GT(barrier.arrive("a.2", 0).value, open + 1);
    EXPECT_EQ(outcome("a.1", open), "gone");
}

TEST_F(barrier_script, needs_one_less_after_somebody_dropped_out) {
    auto const open = barrier.arrive("a.1", 0).value;
    auto const dropped = barrier.arrive("d.1", open, {.dropping = true});
    EXPECT_EQ(dropped.word, "waiting");
    EXPECT_EQ(dropped.arrived, 2);
    EXPECT_EQ(barrier.arrive("d.1", open, {.dropping = true}).arrived, 2) << "sent again";
    EXPECT_EQ(barrier.renew("d.1").word, "waiting") << "it does not wait, so it has no lease";
    EXPECT_EQ(barrier.arrive("b.1", open).word, "complete") << "it counts in this generation";
    EXPECT_THAT(barrier.told(), ElementsAre("a"));
    EXPECT_EQ(barrier.arrive("a.2", open + 1).word, "waiting");
    EXPECT_EQ(barrier.arrive("b.2", open + 1).word, "complete") << "two of two";
    EXPECT_EQ(barrier.arrive("a.3", open + 2, {.dropping = true}).word, "waiting");
    barrier.pass(10 * barrier.ttl);
    EXPECT_EQ(barrier.arrive("b.3", open + 2).word, "complete") << "nobody's death breaks it";
    EXPECT_EQ(barrier.arrive("b.4", open + 3).word, "complete") << "one of one";
}

TEST_F(barrier_script, looks_at_the_leases_of_those_who_wait_only) {
    auto const open = barrier.arrive("d.1", 0, {.dropping = true}).value;
    EXPECT_EQ(barrier.arrive("a.1", open).look_again, barrier.ttl);
    for (int i = 0; i < 5; ++i) {
        barrier.pass(barrier.ttl / 2);
        EXPECT_EQ(barrier.renew("a.1").word, "renewed");
    }
    EXPECT_EQ(barrier.arrive("b.1", open).word, "complete");
}

TEST_F(barrier_script, stands_by_a_drop_when_the_generation_breaks) {
    auto const open = two_wait();
    EXPECT_EQ(barrier.withdraw("a.1", open).word, "broken");
    barrier.arrive("d.2", open + 1, {.dropping = true});
    barrier.arrive("a.2", open + 1);
    EXPECT_EQ(barrier.withdraw("a.2", open + 1).word, "broken");
    barrier.arrive("a.3", open + 2);
    EXPECT_EQ(barrier.arrive("b.3", open + 2).word, "complete");
}

TEST_F(barrier_script, lets_the_last_one_run_the_step_also_when_it_drops_out) {
    auto const open = barrier.arrive("a.1", 0, with_completion).value;
    barrier.arrive("b.1", open, with_completion);
    EXPECT_EQ(barrier.arrive("d.1", open, {.completion = true, .dropping = true}).word, "run");
    EXPECT_EQ(barrier.renew("d.1").word, "renewed");
    EXPECT_EQ(barrier.finish("d.1", open).word, "complete");
    barrier.arrive("a.2", open + 1);
    EXPECT_EQ(barrier.arrive("b.2", open + 1).word, "complete");
}

TEST_F(barrier_script, refuses_arrivals_when_all_dropped_out) {
    auto const open = barrier.arrive("a.1", 0, {.parties = 1, .dropping = true}).value;
    EXPECT_EQ(outcome("a.1", open), "complete");
    EXPECT_THAT(barrier.arrive("a.2", open + 1, {.parties = 1}).word, StartsWith("LOCKSTEP_COUNT 0 "));
    EXPECT_EQ(barrier.arrive("a.1", 0, {.parties = 1, .dropping = true}).word, "complete");
}

TEST_F(barrier_script, works_for_two_thousand) {
    auto const first = barrier.arrive("a.1", 0, {.parties = 2000});
    for (int i = 2; i < 2000; ++i)
        ASSERT_EQ(barrier.arrive("x" + std::to_string(i) + ".1", first.value, {.parties = 2000}).arrived, i);
    barrier.pass(-barrier.hour);
    barrier.renew("a.1");
    barrier.pass(barrier.ttl);
    EXPECT_EQ(barrier.ask("a.1", first.value).word, "broken");
    EXPECT_THAT(barrier.told(), ElementsAre("a"));
    auto const second = barrier.arrive("a.2", first.value + 1, {.parties = 2000});
    for (int i = 2; i < 2000; ++i)
        barrier.arrive("x" + std::to_string(i) + ".2", second.value, {.parties = 2000, .ttl = barrier.hour});
    barrier.pass(-barrier.hour);  // all ends are too far away: the next look writes all of them
    barrier.renew("a.2", 1000);
    barrier.renew("a.2", barrier.hour);
    barrier.pass(1000);
    EXPECT_EQ(barrier.ask("a.2", second.value).word, "waiting");
    EXPECT_EQ(barrier.arrive("b.2", second.value, {.parties = 2000}).word, "complete");
    EXPECT_THAT(barrier.told(), ElementsAre("a"));
}

TEST_F(barrier_script, expires_when_nobody_uses_it_and_moves_that_seldom) {
    auto open = std::int64_t{0};
    for (int i = 1; i <= 100; ++i) {
        barrier.pass(barrier.retention / 10);
        open = barrier.arrive("a." + std::to_string(i), open, {.parties = 1}).value + 1;
        EXPECT_GE(barrier.expires_in(), barrier.retention - 1000);
    }
    EXPECT_LE(std::stoi(barrier.server.info("cmdstat_pexpire").substr(6)), 11);
    EXPECT_LE(barrier.expires_in(), 2 * barrier.retention);
    barrier.pass(2 * barrier.retention);
    EXPECT_TRUE(eventually([&] { return !barrier.exists(); }));
}

TEST_F(barrier_script, outlives_its_longest_lease) {
    auto const open = barrier.arrive("a.1", 0, {.ttl = 5 * barrier.retention}).value;
    EXPECT_GE(barrier.expires_in(), 6 * barrier.retention - 1000);
    barrier.pass(5 * barrier.retention - 1000);
    EXPECT_EQ(barrier.renew("a.1", 9 * barrier.retention).word, "renewed");
    EXPECT_GE(barrier.expires_in(), 10 * barrier.retention - 1000);
    EXPECT_EQ(outcome("a.1", open), "waiting");
}

TEST_F(barrier_script, refuses_another_format_or_type_and_writes_nothing) {
    auto const all = [&] {
        return std::vector{barrier.arrive("a.1", 0), barrier.ask("a.1", 1), barrier.renew("a.1"),
                           barrier.finish("a.1", 1), barrier.withdraw("a.1", 1)};
    };
    for (std::string const kind : {"latch 1", "barrier 2", "1", ""}) {
        barrier.commands.must({"DEL", barrier.key});
        barrier.commands.must({"HSET", barrier.key, kind.empty() ? "colour" : "v", kind, "g", "1", "ha.1", "1 1 1"});
        auto const before = barrier.hash();
        for (auto const& answer : all()) EXPECT_THAT(answer.word, StartsWith("LOCKSTEP_FORMAT")) << kind;
        EXPECT_EQ(barrier.hash(), before);
    }
    barrier.commands.must({"SET", barrier.key, "mine"});
    for (auto const& answer : all()) EXPECT_THAT(answer.word, StartsWith("WRONGTYPE"));
    EXPECT_EQ(barrier.commands.must({"GETDEL", barrier.key}).text, "mine");
}

TEST_F(barrier_script, refuses_bad_arguments_before_it_writes) {
    auto const open = std::to_string(two_wait());
    auto const before = barrier.hash();
    auto const refused = [&](scripts::script const& script, barrier_scripts::arguments const& good) {
        for (std::size_t at = 0; at < good.size(); ++at)
            for (std::string const bad : {"", "x y", ".1", "-1", "0.5", "nan", "1e3", "0x1", "99999999999999999"}) {
                if (at == 0 && bad == "0.5") continue;  // a hold may look like that
                auto given = good;
                given[at] = bad;
                EXPECT_THAT(barrier.call(script, given).word, StartsWith("LOCKSTEP_ARGUMENT"))
                    << script.name << at << bad;
            }
    };
    refused(scripts::barrier_arrive, {"c.1", open, "3", "1000", "9999999999999", "0", "0", barrier.rules});
    refused(scripts::barrier_ask, {"a.1", open, barrier.rules});
    refused(scripts::barrier_withdraw, {"a.1", open, barrier.rules});
    refused(scripts::barrier_finish, {"a.1", open, "1", barrier.rules});
    refused(scripts::barrier_renew, {"a.1", "1000", barrier.rules});
    EXPECT_THAT(barrier.arrive("c.1", 0, {.parties = 2001}).word, StartsWith("LOCKSTEP_ARGUMENT"));
    EXPECT_THAT(barrier.arrive("c.1", 0, {.parties = 0}).word, StartsWith("LOCKSTEP_ARGUMENT"));
    EXPECT_THAT(barrier.renew("a.1", 0).word, StartsWith("LOCKSTEP_ARGUMENT"));
    EXPECT_EQ(barrier.hash(), before);
}

TEST_F(barrier_script, takes_no_arrival_when_the_server_is_out_of_memory_but_keeps_and_ends_what_is_open) {
    auto open = two_wait();
    for (int i = 1; i <= 4; ++i) {  // so that ending a generation has something to forget
        barrier.withdraw("b." + std::to_string(i), open++);
        barrier.arrive("a." + std::to_string(i + 1), open);
        barrier.arrive("b." + std::to_string(i + 1), open);
    }
    barrier.told();
    auto const before = barrier.hash();
    barrier.server.must({"CONFIG", "SET", "maxmemory", "1"});
    EXPECT_THAT(barrier.arrive("c.1", open).word, StartsWith("OOM"));
    EXPECT_EQ(barrier.ask("a.5", open).word, "waiting") << "that writes nothing";
    EXPECT_EQ(barrier.hash(), before);
    EXPECT_THAT(barrier.told(), IsEmpty());
    EXPECT_EQ(barrier.renew("a.5").word, "renewed");
    EXPECT_EQ(barrier.withdraw("a.5", open).word, "broken");
    EXPECT_EQ(barrier.ask("b.5", open).word, "broken");
    barrier.server.must({"CONFIG", "SET", "maxmemory", "0"});
}

TEST_F(barrier_script, is_complete_although_the_channel_is_forbidden) {
    auto const open = two_wait();
    barrier.server.must({"ACL", "SETUSER", "default", "resetchannels"});
    EXPECT_EQ(barrier.arrive("c.1", open).word, "complete");
    EXPECT_EQ(outcome("a.1", open), "complete");
}

}  // namespace
