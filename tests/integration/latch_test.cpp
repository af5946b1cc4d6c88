// What a latch promises, in both forms on every topology; then under faults.
#include <lockstep/latch.hpp>

#include "gate_support.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace lockstep::test {
namespace {

std::string const key = "lockstep:{name}:latch";

class latch_contract : public contract {
protected:
    void count_down(client& by, latch& which, std::int64_t n = 1) {
        run(
            by, [&] { which.count_down(n); }, [&] { return which.async_count_down(n); });
    }
    bool try_wait(client& by, latch& which) {
        return run(
            by, [&] { return which.try_wait(); }, [&] { return which.async_try_wait(); });
    }
    void wait(client& by, latch& which, std::stop_token token = {}) {
        run(
            by, [&] { which.wait(token); }, [&] { return with_stop_token(which.async_wait(), token); });
    }
    bool wait_for(client& by, latch& which, std::chrono::milliseconds time) {
        return run(
            by, [&] { return which.wait_for(time); }, [&] { return which.async_wait_for(time); });
    }
    std::string left() { return server.must({"HGET", key, "l"}).text; }

    latch of_a{a, "name", 3};
    latch of_b{b, "name", 3};
};
LOCKSTEP_CONTRACT(latch_contract);

TEST_P(latch_contract, opens_when_it_is_counted_down_and_stays_open) {
    EXPECT_FALSE(try_wait(a, of_a));
    count_down(a, of_a);
    count_down(b, of_b);
    EXPECT_FALSE(wait_for(a, of_a, 20ms));
    EXPECT_FALSE(wait_for(b, of_b, 0ms));
    count_down(a, of_a);
    EXPECT_TRUE(try_wait(b, of_b));
    wait(a, of_a);
    EXPECT_TRUE(wait_for(b, of_b, 0ms));
    EXPECT_TRUE(of_b.wait_until(std::chrono::system_clock::now() + 5s));
    EXPECT_EQ(ending_of([&] { count_down(a, of_a); }).reason, errc::invalid_argument) << "nothing is left";
    latch open{a, "open from the start", 0};
    wait(a, open);
}

TEST_P(latch_contract, wakes_all_in_all_processes) {
    std::vector<begun<bool>> waiting;
    for (int i = 0; i < 50; ++i) {
        waiting.emplace_back(as_true(of_a.async_wait()));
        waiting.emplace_back(as_true(of_b.async_wait()));
    }
    ASSERT_TRUE(eventually([&] { return clients_waiting(server, key) == 2; }));
    count_down(a, of_a, 2);
    for (auto const& one : waiting) EXPECT_FALSE(one.done());
    count_down(b, of_b);
    for (auto const& one : waiting) EXPECT_TRUE(one.get());
    EXPECT_EQ(clients_waiting(server, key), 0);
}

TEST_P(latch_contract, can_be_arrived_at_and_waited_for_at_once) {
    begun first{as_true(of_a.async_arrive_and_wait())};
    ASSERT_TRUE(eventually([&] { return clients_waiting(server, key) == 1; }));
    EXPECT_EQ(left(), "2");
    run(
        b, [&] { of_b.arrive_and_wait(2); }, [&] { return of_b.async_arrive_and_wait(2); });
    EXPECT_TRUE(first.get());
}

TEST_P(latch_contract, counts_each_of_many_at_once) {
    latch large{a, "large", 500};
    std::vector<begun<bool>> counting;
    for (int i = 0; i < 500; ++i) counting.emplace_back(as_true(large.async_count_down()));
    for (auto const& one : counting) EXPECT_TRUE(one.get());
    EXPECT_TRUE(try_wait(a, large));
}

TEST_P(latch_contract, is_silent_while_many_wait) {
    EXPECT_FALSE(try_wait(a, of_a));
    std::vector<begun<bool>> waiting;
    sync_wait(in_turn_of(a, [&] {
        for (int i = 0; i < 1000; ++i) waiting.emplace_back(as_true(of_a.async_wait()));
        return true;
    }));
    ASSERT_TRUE(eventually([&] { return clients_waiting(server, key) == 1; }));
    EXPECT_TRUE(falls_silent(server));
    EXPECT_LE(scripts_run(server), 5) << "one question for all, and one when it is told that it will be told";
    count_down(a, of_a, 3);
    for (auto const& one : waiting) EXPECT_TRUE(one.get());
}

TEST_P(latch_contract, leaves_nothing_after_timeouts_and_cancellations) {
    EXPECT_FALSE(wait_for(a, of_a, 30ms));
    EXPECT_TRUE(eventually([&] { return clients_waiting(server, key) == 0; }));
    latch impatient{a, "name", 3, {.wait_limit = 30ms}};
    EXPECT_EQ(ending_of([&] { wait(a, impatient); }).reason, errc::timeout);
    std::stop_source stop;
    begun waiting{with_stop_token(as_true(of_a.async_wait()), stop.get_token())};
    ASSERT_TRUE(eventually([&] { return clients_waiting(server, key) == 1; }));
    stop.request_stop();
    EXPECT_EQ(ending_of([&] { waiting.get(); }).reason, errc::cancelled);
    EXPECT_EQ(ending_of([&] { wait(a, of_a, stop.get_token()); }).reason, errc::cancelled);
    EXPECT_TRUE(eventually([&] { return clients_waiting(server, key) == 0; }));
    EXPECT_EQ(left(), "3");
}

TEST_P(latch_contract, ends_waiting_when_the_client_closes_and_takes_its_registration_back) {
    begun waiting{as_true(of_a.async_wait())};
    ASSERT_TRUE(eventually([&] { return clients_waiting(server, key) == 1; }));
    a.close();
    EXPECT_EQ(clients_waiting(server, key), 0);
    EXPECT_EQ(ending_of([&] { waiting.get(); }).reason, errc::cancelled);
}

TEST_P(latch_contract, refuses_another_count_and_what_it_cannot_use) {
    count_down(a, of_a);
    latch other{b, "name", 4};
    EXPECT_EQ(ending_of([&] { count_down(b, other); }).reason, errc::count_mismatch);
    EXPECT_EQ(ending_of([&] { wait(b, other); }).reason, errc::count_mismatch);
    EXPECT_EQ(ending_of([&] { static_cast<void>(try_wait(b, other)); }).reason, errc::count_mismatch);
    EXPECT_EQ(ending_of([&] { count_down(a, of_a, 3); }).reason, errc::invalid_argument);
    EXPECT_EQ(ending_of([&] { count_down(a, of_a, 0); }).reason, errc::invalid_argument);
    EXPECT_EQ(left(), "2");
    EXPECT_EQ(ending_of([&] { latch{a, "x", -1}; }).reason, errc::invalid_argument);
    EXPECT_EQ(ending_of([&] { latch{a, "", 1}; }).reason, errc::invalid_argument);
    server_of("taken").must({"SET", "lockstep:{taken}:latch", "mine"});
    latch taken{a, "taken", 1};
    EXPECT_EQ(ending_of([&] { count_down(a, taken); }).reason, errc::server);
}

TEST_P(latch_contract, that_the_server_forgot_begins_anew) {
    count_down(a, of_a, 2);
    begun waiting{as_true(of_b.async_wait())};
    ASSERT_TRUE(eventually([&] { return clients_waiting(server, key) == 1; }));
    server.must({"DEL", key});
    count_down(a, of_a, 2);
    EXPECT_EQ(left(), "1");
    begun second{as_true(of_b.async_wait())};  // asks, for the first one too
    ASSERT_TRUE(eventually([&] { return clients_waiting(server, key) == 1; }));
    count_down(a, of_a);
    EXPECT_TRUE(waiting.get());
    EXPECT_TRUE(second.get());
}

class latch_faults : public testing::Test {
protected:
    redis_server server;
    fault_proxy proxy{server.address()};
    client near{server.url()};
    client far{proxy.url()};
    latch here{near, "name", 3};
    latch there{far, "name", 3};
};

TEST_F(latch_faults, a_count_whose_reply_is_lost_counts_once) {
    EXPECT_FALSE(there.try_wait());
    for (int i = 1; i <= 2; ++i) {
        proxy.drop_replies(1);
        there.count_down();
        EXPECT_EQ(proxy.counters().struck, static_cast<std::uint64_t>(i));
        EXPECT_EQ(server.must({"HGET", key, "l"}).text, std::to_string(3 - i));
    }
    proxy.drop_replies(1);
    there.arrive_and_wait();
    EXPECT_TRUE(here.try_wait());
}

TEST_F(latch_faults, each_of_thousands_of_counts_counts_once_though_all_replies_are_lost) {
    latch large{far, "large", 4000};
    EXPECT_FALSE(large.try_wait());
    here.count_down();  // the server knows the script
    auto const left = [&] { return server.must({"HGET", "lockstep:{large}:latch", "l"}).text; };
    proxy.hold(direction::to_client);
    std::vector<begun<bool>> counting;
    for (int i = 0; i < 3000; ++i) counting.emplace_back(as_true(large.async_count_down()));
    ASSERT_TRUE(eventually([&] { return left() == "1000"; }));
    auto const before = scripts_run(server);
    proxy.cut();
    proxy.heal();
    for (auto const& one : counting) EXPECT_TRUE(one.get());
    EXPECT_GE(scripts_run(server), before + 3000) << "all were sent again";
    EXPECT_EQ(left(), "1000");
}

TEST_F(latch_faults, a_count_that_is_given_up_says_that_it_may_have_counted_and_counts_no_later_than_it_says) {
    client brief{{.url = proxy.url(), .command_timeout = 300ms}};
    latch through{brief, "name", 3};
    through.count_down();  // the server knows the script
    auto const left = [&] { return server.must({"HGET", key, "l"}).text; };
    proxy.hold(direction::to_client);
    EXPECT_EQ(ending_of([&] { through.count_down(); }).reason, errc::indeterminate);
    EXPECT_EQ(left(), "1");
    proxy.heal();
    EXPECT_FALSE(through.try_wait());
    EXPECT_EQ(left(), "1") << "and not again";
    // One that reaches the server after its time does not count.
    proxy.hold(direction::to_server);
    EXPECT_EQ(ending_of([&] { through.count_down(); }).reason, errc::indeterminate);
    auto const until = now_ms() + 50;
    EXPECT_TRUE(eventually([&] { return now_ms() > until; }));
    proxy.heal();
    EXPECT_FALSE(through.try_wait());
    EXPECT_EQ(left(), "1");
}

TEST_F(latch_faults, a_waiter_is_woken_by_what_happened_while_it_was_cut_off) {
    begun waiting{as_true(there.async_wait())};
    ASSERT_TRUE(eventually([&] { return clients_waiting(server, key) == 1; }));
    proxy.refuse();
    proxy.cut();
    here.count_down(3);
    EXPECT_FALSE(waiting.done());
    proxy.heal();
    EXPECT_TRUE(waiting.get());
}

TEST_F(latch_faults, a_waiter_whose_first_answer_is_lost_asks_again) {
    EXPECT_FALSE(there.try_wait());
    proxy.drop_replies(1);
    begun waiting{as_true(there.async_wait())};
    ASSERT_TRUE(eventually([&] { return proxy.counters().struck == 1 && clients_waiting(server, key) == 1; }));
    here.count_down(3);
    EXPECT_TRUE(waiting.get());
}

TEST_F(latch_faults, without_a_server_the_time_ends_as_unavailable) {
    proxy.refuse();
    proxy.cut();
    auto const end = ending_of([&] { static_cast<void>(there.wait_for(100ms)); });
    EXPECT_EQ(end.reason, errc::unavailable);
    EXPECT_LT(end.after, 5s);
}

TEST(latch_on_a_cluster, works_between_clients) {
    cluster nodes{{.masters = 3, .replicas_per_master = 0}};
    client a{{.url = nodes.url(), .command_timeout = 40s}};
    client b{{.url = nodes.url(), .command_timeout = 40s}};
    latch of_a{a, "name", 2};
    latch of_b{b, "name", 2};
    begun waiting{as_true(of_a.async_arrive_and_wait())};
    auto const slot = slot_of(key);
    ASSERT_TRUE(eventually([&] { return clients_waiting(nodes.node(nodes.owner_of(slot)), key) == 1; }));
    nodes.migrate_slot(slot, (nodes.owner_of(slot) + 1) % 3);
    of_b.count_down();
    EXPECT_TRUE(waiting.get());
}

TEST(latch_with_sentinel, opens_after_a_failover) {
    sentinel_group group{{.replicas = 1}};
    client a{{.url = group.sentinel_url(), .command_timeout = 40s}};
    client b{{.url = group.sentinel_url(), .command_timeout = 40s}};
    latch of_a{a, "name", 2};
    latch of_b{b, "name", 2};
    begun waiting{as_true(of_a.async_arrive_and_wait())};
    ASSERT_TRUE(eventually([&] { return clients_waiting(group.server(1), key) == 1; })) << "also at the replica";
    group.failover();
    of_b.count_down();
    EXPECT_TRUE(waiting.get());
}

}  // namespace
}  // namespace lockstep::test
