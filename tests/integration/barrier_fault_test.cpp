// A barrier when participants die, replies are lost and connections break; and on the other topologies.
#include <lockstep/barrier.hpp>

#include "gate_support.hpp"
#include "support/child_process.hpp"
#include "support/program_path.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <random>
#include <thread>
#include <vector>

namespace lockstep::test {
namespace {

std::string const key = "lockstep:{name}:barrier";

class barrier_faults : public testing::Test {
protected:
    child_process participant(std::string const& parties, std::string const& mode) {
        return child_process{{program_path("barrier_participant"), server.url(), "name", parties, "500", mode}};
    }
    std::string arrived() { return server.must({"HGET", key, "a"}).text; }
    bool have_arrived(int count) {
        return eventually([&] { return arrived() == std::to_string(count); });
    }

    redis_server server;
    fault_proxy proxy{server.address()};
    client near{server.url()};
    client far{proxy.url()};
    barrier here{near, "name", 2, {.ttl = 500ms}};
    barrier there{far, "name", 2, {.ttl = 500ms}};
};

TEST_F(barrier_faults, meets_other_programs) {
    auto other = participant("2", "wait");
    here.arrive_and_wait();
    EXPECT_EQ(other.read_line(), "passed");
}

TEST_F(barrier_faults, is_broken_within_the_ttl_of_a_participant_that_is_killed) {
    barrier three{near, "name", 3, {.ttl = 500ms}};
    auto other = participant("3", "wait");
    ASSERT_TRUE(have_arrived(1));
    begun one{as_true(three.async_arrive_and_wait())};
    ASSERT_TRUE(have_arrived(2));
    other.kill();
    auto const end = ending_of([&] { one.get(); });
    EXPECT_EQ(end.reason, errc::broken_barrier);
    EXPECT_LT(end.after, 2s);
    EXPECT_EQ(arrived(), "0");
}

TEST_F(barrier_faults, is_broken_when_the_one_that_runs_the_completion_function_is_killed) {
    begun one{as_true(here.async_arrive_and_wait())};
    ASSERT_TRUE(have_arrived(1));
    auto other = participant("2", "run");
    ASSERT_EQ(other.read_line(), "running");
    EXPECT_FALSE(one.done());
    other.kill();
    auto const end = ending_of([&] { one.get(); });
    EXPECT_EQ(end.reason, errc::broken_barrier);
    EXPECT_LT(end.after, 2s);
}

TEST_F(barrier_faults, an_arrival_whose_reply_is_lost_counts_once) {
    EXPECT_EQ(far.command<std::string>("PING"), "PONG");
    for (int round = 1; round <= 3; ++round) {
        proxy.drop_replies(1);
        begun one{as_true(there.async_arrive_and_wait())};
        ASSERT_TRUE(eventually([&] { return proxy.counters().struck == static_cast<std::uint64_t>(round) && arrived() == "1"; }));
        here.arrive_and_wait();
        EXPECT_TRUE(one.get());
        EXPECT_EQ(arrived(), "0");
    }
}

TEST_F(barrier_faults, the_last_arrival_whose_reply_is_lost_learns_that_it_completed) {
    EXPECT_EQ(far.command<std::string>("PING"), "PONG");
    begun one{as_true(here.async_arrive_and_wait())};
    ASSERT_TRUE(have_arrived(1));
    do {  // learns the generation, or breaks it; or its time is over before it has asked
        there.arrive_and_wait_for(1ms);
    } while (!eventually([&] { return one.done(); }, 100ms));
    begun again{as_true(here.async_arrive_and_wait())};
    ASSERT_TRUE(have_arrived(1));
    auto const struck = proxy.counters().struck;
    proxy.drop_replies(1);
    there.arrive_and_wait();
    EXPECT_EQ(proxy.counters().struck, struck + 1);
    EXPECT_TRUE(again.get());
    EXPECT_EQ(arrived(), "0");
    EXPECT_NE(ending_of([&] { one.get(); }).reason, errc::indeterminate);
}

TEST_F(barrier_faults, the_completion_function_runs_once_though_replies_are_lost) {
    std::atomic<int> runs{0};
    barrier with{far, "name", 2, [&] {
        ++runs;
        proxy.drop_replies(1);  // of the call that ends the generation
    }, {.ttl = 5s}};
    barrier calm{near, "name", 2, {.ttl = 5s}};
    EXPECT_EQ(far.command<std::string>("PING"), "PONG");
    begun one{as_true(calm.async_arrive_and_wait())};
    ASSERT_TRUE(have_arrived(1));
    with.arrive_and_wait();
    EXPECT_EQ(proxy.counters().struck, 1U);
    EXPECT_EQ(runs, 1);
    EXPECT_TRUE(one.get());
}

TEST_F(barrier_faults, a_participant_learns_what_happened_while_it_was_cut_off) {
    barrier patient{far, "name", 2, {.ttl = 10s}};
    begun one{as_true(patient.async_arrive_and_wait())};
    ASSERT_TRUE(have_arrived(1));
    proxy.refuse();
    proxy.cut();
    here.arrive_and_wait();
    EXPECT_FALSE(one.done());
    proxy.heal();
    EXPECT_TRUE(one.get());
}

// The push comes in the same read as the answer to the arrival, before the participant waits.
TEST_F(barrier_faults, a_participant_does_not_miss_what_it_was_told_before_it_began_to_wait) {
    barrier patient{far, "name", 2, {.ttl = 60s}};
    begun first{as_true(patient.async_arrive_and_wait())};
    ASSERT_TRUE(have_arrived(1));
    here.arrive_and_wait();
    EXPECT_TRUE(first.get());
    proxy.hold(direction::to_client);
    begun second{as_true(patient.async_arrive_and_wait())};
    ASSERT_TRUE(have_arrived(1));
    here.arrive_and_wait();
    proxy.heal();
    EXPECT_TRUE(second.get(5s));
}

TEST_F(barrier_faults, a_participant_whose_meeting_was_forgotten_while_it_was_cut_off_says_so) {
    barrier patient{far, "name", 2, {.ttl = 60s}};
    begun one{as_true(patient.async_arrive_and_wait())};
    ASSERT_TRUE(have_arrived(1));
    EXPECT_EQ(far.command<std::string>("PING"), "PONG");  // behind the answer: it knows that it has arrived
    server.must({"DEL", key});
    proxy.cut();
    EXPECT_EQ(ending_of([&] { static_cast<void>(one.get(5s)); }).reason, errc::indeterminate);
}

TEST_F(barrier_faults, a_participant_whose_time_is_over_asks_and_may_learn_that_all_met) {
    barrier patient{far, "name", 2, {.ttl = 10s}};
    begun one{patient.async_arrive_and_wait_for(300ms)};
    ASSERT_TRUE(have_arrived(1));
    proxy.hold(direction::to_client);
    here.arrive_and_wait();
    auto const until = now_ms() + 500;
    ASSERT_TRUE(eventually([&] { return now_ms() > until; }));
    EXPECT_FALSE(one.done());
    proxy.heal();
    EXPECT_TRUE(one.get()) << "its time was over, but the decision is one for all";
}

TEST_F(barrier_faults, a_participant_that_can_no_longer_ask_says_so) {
    client brief{{.url = proxy.url(), .command_timeout = 300ms}};
    barrier cut_off{brief, "name", 2, {.ttl = 200ms}};
    begun one{as_true(cut_off.async_arrive_and_wait())};
    ASSERT_TRUE(have_arrived(1));
    proxy.refuse();
    proxy.cut();
    auto const end = ending_of([&] { one.get(); });
    EXPECT_EQ(end.reason, errc::indeterminate);
    EXPECT_LT(end.after, 5s);
}

TEST_F(barrier_faults, an_arrival_that_was_cancelled_before_its_answer_came_is_taken_back) {
    EXPECT_EQ(far.command<std::string>("PING"), "PONG");
    barrier three{near, "name", 3, {.ttl = 60s}};
    barrier other{far, "name", 3, {.ttl = 60s}};
    begun first{as_true(three.async_arrive_and_wait())};
    ASSERT_TRUE(have_arrived(1));
    while (!first.done()) {
        begun known{other.async_arrive_and_wait_for(1ms)};  // breaks the first generation, or is late for it
        static_cast<void>(known.get());
    }
    EXPECT_NE(ending_of([&] { first.get(); }).reason, errc::indeterminate);
    begun one{as_true(three.async_arrive_and_wait())};
    ASSERT_TRUE(have_arrived(1));
    proxy.hold(direction::to_client);
    std::stop_source stop;
    begun cancelled{with_stop_token(as_true(other.async_arrive_and_wait()), stop.get_token())};
    ASSERT_TRUE(have_arrived(2));
    stop.request_stop();
    EXPECT_EQ(ending_of([&] { cancelled.get(); }).reason, errc::cancelled);
    proxy.heal();
    EXPECT_EQ(ending_of([&] { one.get(); }).reason, errc::broken_barrier);
    EXPECT_EQ(arrived(), "0");
}

TEST_F(barrier_faults, an_arrival_that_could_not_be_sent_says_that_it_did_not_arrive) {
    proxy.refuse();
    proxy.cut();
    client brief{{.url = proxy.url(), .command_timeout = 200ms}};
    barrier nowhere{brief, "name", 2};
    EXPECT_EQ(ending_of([&] { nowhere.arrive_and_wait(); }).reason, errc::unavailable);
}

TEST_F(barrier_faults, a_barrier_that_the_server_forgot_is_made_anew) {
    begun one{as_true(here.async_arrive_and_wait())};
    ASSERT_TRUE(have_arrived(1));
    there.arrive_and_wait();
    EXPECT_TRUE(one.get());
    server.must({"DEL", key});
    begun two{as_true(here.async_arrive_and_wait())};
    ASSERT_TRUE(have_arrived(1));
    there.arrive_and_wait();
    EXPECT_TRUE(two.get());
    begun three{as_true(here.async_arrive_and_wait())};
    ASSERT_TRUE(have_arrived(1));
    server.must({"DEL", key});
    EXPECT_EQ(ending_of([&] { three.get(); }).reason, errc::indeterminate) << "nobody knows what became of that meeting";
}

// The same participants meet again and again, so every meeting that is complete is passed by each of them: whatever breaks in between, all
// have passed the same number of times in the end.
TEST_F(barrier_faults, is_passed_by_all_or_by_none_while_connections_break_and_times_run_out) {
    constexpr int parties = 4;
    unsigned const seed = std::random_device{}();
    SCOPED_TRACE("seed " + std::to_string(seed));
    client third{proxy.url()};
    std::array<client*, parties> const clients{&near, &far, &far, &third};
    std::array<std::atomic<int>, parties> passed{};
    std::array<std::atomic<int>, parties> unknown{};
    std::atomic<int> broken{0};
    std::atomic<bool> stop{false};
    std::vector<std::thread> threads;
    for (unsigned i = 0; i < parties; ++i) {
        threads.emplace_back([&, i] {
            std::mt19937 chance{seed + i};
            barrier at{*clients[i], "name", parties, [] {}, {.ttl = 5s}};
            while (!stop) {
                auto const time = chance() % 4 == 0 ? 3ms : 300ms;
                auto const end = ending_of([&] { (at.arrive_and_wait_for(time) ? passed[i] : broken)++; });
                // A reply is lost, and until it can be asked for again the others break several meetings: that is forgotten.
                if (end.reason == errc::indeterminate) {
                    ++unknown[i];
                } else if (end.reason) {
                    EXPECT_EQ(*end.reason, errc::broken_barrier) << end.text;
                    ++broken;
                }
            }
        });
    }
    std::mt19937 chance{seed + parties};
    for (int cuts = 0; cuts < 25; ++cuts) {
        auto const until = now_ms() + static_cast<int>(chance() % 80);
        static_cast<void>(eventually([&] { return now_ms() >= until; }));
        if (chance() % 2 == 0) {
            proxy.cut();
        } else {
            proxy.drop_replies(1);
        }
    }
    stop = true;
    for (auto& one : threads) one.join();
    auto const meetings = std::max({passed[0].load(), passed[1].load(), passed[2].load(), passed[3].load()});
    EXPECT_GT(meetings, 0);
    for (unsigned i = 0; i < parties; ++i) {
        EXPECT_LE(meetings - passed[i], unknown[i]);
        EXPECT_LT(unknown[i], 10);
    }
    EXPECT_GT(broken, 0) << "nothing was broken, so nothing was tested";
    EXPECT_EQ(arrived(), "0");
}

TEST(barrier_on_a_cluster, works_between_clients_and_while_its_slot_moves) {
    cluster nodes{{.masters = 3, .replicas_per_master = 0}};
    client a{{.url = nodes.url(), .command_timeout = 40s}};
    client b{{.url = nodes.url(), .command_timeout = 40s}};
    barrier of_a{a, "name", 2};
    barrier of_b{b, "name", 2};
    auto const slot = slot_of(key);
    for (int round = 0; round < 3; ++round) {
        begun one{as_true(of_a.async_arrive_and_wait())};
        ASSERT_TRUE(eventually([&] { return nodes.node(nodes.owner_of(slot)).must({"HGET", key, "a"}).text == "1"; }));
        if (round == 1) nodes.migrate_slot(slot, (nodes.owner_of(slot) + 1) % 3);
        of_b.arrive_and_wait();
        EXPECT_TRUE(one.get());
    }
}

TEST(barrier_with_sentinel, completes_after_a_failover) {
    sentinel_group group{{.replicas = 1}};
    client a{{.url = group.sentinel_url(), .command_timeout = 40s}};
    client b{{.url = group.sentinel_url(), .command_timeout = 40s}};
    barrier of_a{a, "name", 2};
    barrier of_b{b, "name", 2};
    begun one{as_true(of_a.async_arrive_and_wait())};
    ASSERT_TRUE(eventually([&] { return group.server(0).must({"HGET", key, "a"}).text == "1"; }));
    ASSERT_TRUE(eventually([&] { return group.server(1).must({"HGET", key, "a"}).text == "1"; })) << "replicated";
    group.failover();
    EXPECT_TRUE(of_b.arrive_and_wait_for(40s));
    EXPECT_TRUE(one.get());
}

}  // namespace
}  // namespace lockstep::test
