// What a broadcast event promises, in both forms on every topology; then under faults.
#include <lockstep/broadcast_event.hpp>

#include "gate_support.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace lockstep::test {
namespace {

std::string const key = "lockstep:{name}:broadcast";

class broadcast_event_contract : public contract {
protected:
    void set(client& by, broadcast_event& which) {
        run(
            by, [&] { which.set(); }, [&] { return which.async_set(); });
    }
    void clear(client& by, broadcast_event& which) {
        run(
            by, [&] { which.clear(); }, [&] { return which.async_clear(); });
    }
    bool is_set(client& by, broadcast_event& which) {
        return run(
            by, [&] { return which.is_set(); }, [&] { return which.async_is_set(); });
    }
    void wait(client& by, broadcast_event& which, std::stop_token token = {}) {
        run(
            by, [&] { which.wait(token); }, [&] { return with_stop_token(which.async_wait(), token); });
    }
    bool wait_for(client& by, broadcast_event& which, std::chrono::milliseconds time) {
        return run(
            by, [&] { return which.wait_for(time); }, [&] { return which.async_wait_for(time); });
    }

    broadcast_event of_a{a, "name"};
    broadcast_event of_b{b, "name"};
};
LOCKSTEP_CONTRACT(broadcast_event_contract);

TEST_P(broadcast_event_contract, stays_set_until_it_is_cleared) {
    EXPECT_FALSE(is_set(a, of_a));
    set(a, of_a);
    EXPECT_TRUE(is_set(b, of_b));
    wait(a, of_a);
    wait(b, of_b);
    set(b, of_b);
    clear(b, of_b);
    EXPECT_FALSE(is_set(a, of_a));
    EXPECT_FALSE(wait_for(a, of_a, 20ms));
    EXPECT_FALSE(wait_for(a, of_a, 0ms));
    set(a, of_a);
    EXPECT_TRUE(wait_for(b, of_b, 0ms));
    EXPECT_TRUE(of_b.wait_until(std::chrono::system_clock::now() + 5s));
}

TEST_P(broadcast_event_contract, wakes_all_in_all_processes) {
    std::vector<begun<bool>> waiting;
    for (int i = 0; i < 50; ++i) {
        waiting.emplace_back(as_true(of_a.async_wait()));
        waiting.emplace_back(as_true(of_b.async_wait()));
    }
    ASSERT_TRUE(eventually([&] { return clients_waiting(server, key) == 2; }));
    for (auto const& one : waiting) EXPECT_FALSE(one.done());
    client c{url()};
    broadcast_event of_c{c, "name"};
    set(c, of_c);
    for (auto const& one : waiting) EXPECT_TRUE(one.get());
    EXPECT_EQ(clients_waiting(server, key), 0);
}

TEST_P(broadcast_event_contract, wakes_who_waited_when_it_was_set_though_it_was_cleared_at_once) {
    std::vector<begun<bool>> waiting;
    for (int i = 0; i < 5; ++i) waiting.emplace_back(as_true(of_a.async_wait()));
    ASSERT_TRUE(eventually([&] { return clients_waiting(server, key) == 1; }));
    catch_up(a);  // they know what they have seen
    // Both in one write, so that it is cleared when those who wait ask again.
    std::optional<begun<bool>> first;
    std::optional<begun<bool>> second;
    sync_wait(in_turn_of(b, [&] {
        first.emplace(as_true(of_b.async_set()));
        second.emplace(as_true(of_b.async_clear()));
        return true;
    }));
    EXPECT_TRUE(first->get() && second->get());
    for (auto const& one : waiting) EXPECT_TRUE(one.get());
    EXPECT_FALSE(wait_for(a, of_a, 20ms)) << "who comes after that waits";
}

TEST_P(broadcast_event_contract, asks_and_registers_once_for_all_who_wait_and_then_is_silent) {
    set(a, of_a);  // both connections are up and know the scripts
    clear(b, of_b);
    EXPECT_FALSE(wait_for(a, of_a, 5ms));
    ASSERT_TRUE(eventually([&] { return clients_waiting(server, key) == 0; }));
    catch_up(a);  // and it is subscribed
    auto const before = scripts_run(server);
    std::vector<begun<bool>> waiting;
    sync_wait(in_turn_of(a, [&] {
        for (int i = 0; i < 1000; ++i) waiting.emplace_back(as_true(of_a.async_wait()));
        return true;
    }));
    ASSERT_TRUE(eventually([&] { return clients_waiting(server, key) == 1; }));
    auto const until = now_ms() + 300;
    while (now_ms() < until) EXPECT_EQ(scripts_run(server), before + 1) << "nobody polls";
    set(b, of_b);
    for (auto const& one : waiting) EXPECT_TRUE(one.get());
    EXPECT_EQ(scripts_run(server), before + 3) << "set, and one question for all";
}

TEST_P(broadcast_event_contract, leaves_nothing_after_timeouts_and_cancellations) {
    EXPECT_FALSE(wait_for(a, of_a, 30ms));
    EXPECT_TRUE(eventually([&] { return clients_waiting(server, key) == 0; }));
    broadcast_event impatient{a, "name", {.wait_limit = 30ms}};
    EXPECT_EQ(ending_of([&] { wait(a, impatient); }).reason, errc::timeout);
    std::stop_source stop;
    begun waiting{with_stop_token(as_true(of_a.async_wait()), stop.get_token())};
    begun other{as_true(of_a.async_wait())};
    ASSERT_TRUE(eventually([&] { return clients_waiting(server, key) == 1; }));
    stop.request_stop();
    EXPECT_EQ(ending_of([&] { waiting.get(); }).reason, errc::cancelled);
    run_turn(a);
    EXPECT_EQ(clients_waiting(server, key), 1) << "another one still waits";
    set(b, of_b);
    EXPECT_TRUE(other.get());
    clear(b, of_b);
    EXPECT_EQ(ending_of([&] { wait(a, of_a, stop.get_token()); }).reason, errc::cancelled);
    EXPECT_TRUE(eventually([&] { return clients_waiting(server, key) == 0; }));
}

TEST_P(broadcast_event_contract, frees_the_place_of_a_coroutine_that_is_destroyed) {
    {
        auto work = of_a.async_wait();
        std::optional<task<bool>> frame{as_true(std::move(work))};
        std::coroutine_handle<> const started = detail::task_access::frame(*frame);
        sync_wait(in_turn_of(a, [&] {
            started.resume();
            return true;
        }));
        ASSERT_TRUE(eventually([&] { return clients_waiting(server, key) == 1; }));
        sync_wait(in_turn_of(a, [&] {
            frame.reset();  // there, where nobody can be resuming it
            return true;
        }));
    }
    EXPECT_TRUE(eventually([&] { return clients_waiting(server, key) == 0; }));
}

TEST_P(broadcast_event_contract, ends_waiting_when_the_client_closes_and_takes_its_registration_back) {
    begun waiting{as_true(of_a.async_wait())};
    ASSERT_TRUE(eventually([&] { return clients_waiting(server, key) == 1; }));
    a.close();
    EXPECT_EQ(clients_waiting(server, key), 0);
    EXPECT_EQ(ending_of([&] { waiting.get(); }).reason, errc::cancelled);
    EXPECT_EQ(ending_of([&] { wait(a, of_a); }).reason, errc::cancelled);
    EXPECT_EQ(ending_of([&] { set(a, of_a); }).reason, errc::cancelled);
}

TEST_P(broadcast_event_contract, refuses_what_it_cannot_use) {
    EXPECT_EQ(ending_of([&] { broadcast_event{a, ""}; }).reason, errc::invalid_argument);
    EXPECT_EQ(ending_of([&] { broadcast_event{a, "x", {.retention = 0ms}}; }).reason, errc::invalid_argument);
    server.must({"SET", key, "mine"});
    EXPECT_EQ(ending_of([&] { wait(a, of_a); }).reason, errc::server);
    EXPECT_EQ(ending_of([&] { set(a, of_a); }).reason, errc::server);
    EXPECT_EQ(server.must({"GET", key}).text, "mine");
}

class broadcast_event_faults : public testing::Test {
protected:
    redis_server server;
    fault_proxy proxy{server.address()};
    client near{server.url()};
    client far{proxy.url()};
    broadcast_event here{near, "name"};
    broadcast_event there{far, "name"};
};

TEST_F(broadcast_event_faults, a_set_whose_reply_is_lost_counts_once) {
    here.set();
    there.clear();
    proxy.drop_replies(1);
    there.set();
    EXPECT_EQ(proxy.counters().struck, 1U);
    EXPECT_TRUE(here.is_set());
    auto const generation = server.must({"HGET", key, "g"}).text;
    here.clear();
    proxy.drop_replies(1);
    there.clear();
    EXPECT_EQ(server.must({"HGET", key, "g"}).text, generation);
    here.set();
    EXPECT_TRUE(here.is_set()) << "the clear that was sent twice does not come after it";
}

TEST_F(broadcast_event_faults, a_waiter_is_woken_by_what_happened_while_it_was_cut_off) {
    begun waiting{as_true(there.async_wait())};
    ASSERT_TRUE(eventually([&] { return clients_waiting(server, key) == 1; }));
    EXPECT_EQ(far.command<std::string>("PING"), "PONG");  // behind the answer: it knows what it has seen
    proxy.refuse();
    proxy.cut();
    here.set();
    here.clear();
    EXPECT_FALSE(waiting.done());
    proxy.heal();
    EXPECT_TRUE(waiting.get()) << "it waited when it was set";
    EXPECT_TRUE(eventually([&] { return clients_waiting(server, key) == 0; }));
}

TEST_F(broadcast_event_faults, a_waiter_whose_first_answer_is_lost_asks_again) {
    there.clear();
    proxy.drop_replies(1);
    begun waiting{as_true(there.async_wait())};
    ASSERT_TRUE(eventually([&] { return proxy.counters().struck == 1 && clients_waiting(server, key) == 1; }));
    here.set();
    EXPECT_TRUE(waiting.get());
}

TEST_F(broadcast_event_faults, a_waiter_survives_a_cut_and_waits_on) {
    begun waiting{as_true(there.async_wait())};
    ASSERT_TRUE(eventually([&] { return clients_waiting(server, key) == 1; }));
    auto const connects = far.statistics().connects;
    proxy.cut();
    ASSERT_TRUE(eventually([&] { return far.statistics().connects > connects; }));
    server.must({"DEL", key});  // and the server forgets it
    proxy.cut();
    ASSERT_TRUE(
        eventually([&] { return far.statistics().connects > connects + 1 && clients_waiting(server, key) == 1; }));
    here.set();
    EXPECT_TRUE(waiting.get());
}

TEST_F(broadcast_event_faults, without_a_server_the_time_ends_as_unavailable) {
    proxy.refuse();
    proxy.cut();
    EXPECT_EQ(ending_of([&] { static_cast<void>(there.wait_for(100ms)); }).reason, errc::unavailable);
    client impatient{{.url = proxy.url(), .command_timeout = 200ms}};
    broadcast_event through{impatient, "name"};
    auto const end = ending_of([&] { through.set(); });
    EXPECT_EQ(end.reason, errc::unavailable);
}

TEST_F(broadcast_event_faults, scripts_that_the_server_forgot_are_sent_again) {
    here.set();
    server.must({"SCRIPT", "FLUSH"});
    EXPECT_TRUE(there.is_set());
    there.clear();
    EXPECT_FALSE(here.is_set());
}

// A wait that began after a clear must not end by the answer to a question that is older than the clear.
TEST_F(broadcast_event_faults, who_comes_after_a_clear_is_not_freed_by_an_older_answer) {
    begun early{as_true(there.async_wait())};
    ASSERT_TRUE(eventually([&] { return clients_waiting(server, key) == 1; }));
    here.set();
    EXPECT_TRUE(early.get());
    proxy.hold(direction::to_client);
    auto const before = scripts_run(server);
    begun middle{as_true(there.async_wait())};
    ASSERT_TRUE(eventually([&] { return scripts_run(server) == before + 1; }));  // answered: it is set
    here.clear();
    begun late{there.async_wait_for(700ms)};
    run_turn(far);
    proxy.heal();
    EXPECT_TRUE(middle.get());
    EXPECT_FALSE(late.get());
}

TEST(broadcast_event_on_a_cluster, works_between_clients_and_while_its_slot_moves) {
    cluster nodes{{.masters = 3, .replicas_per_master = 0}};
    client a{{.url = nodes.url(), .command_timeout = 40s}};
    client b{{.url = nodes.url(), .command_timeout = 40s}};
    broadcast_event of_a{a, "name"};
    broadcast_event of_b{b, "name"};
    auto const slot = slot_of(key);
    for (int round = 0; round < 2; ++round) {
        begun waiting{as_true(of_a.async_wait())};
        auto& owner = nodes.node(nodes.owner_of(slot));
        ASSERT_TRUE(eventually([&] { return clients_waiting(owner, key) == 1; }));
        of_b.set();
        EXPECT_TRUE(waiting.get());
        of_b.clear();
        begun moved{as_true(of_a.async_wait())};
        ASSERT_TRUE(eventually([&] { return clients_waiting(owner, key) == 1; }));
        nodes.migrate_slot(slot, (nodes.owner_of(slot) + 1) % 3);
        of_b.set();
        EXPECT_TRUE(moved.get());
        of_b.clear();
    }
    EXPECT_TRUE(eventually([&] { return clients_waiting(nodes.node(nodes.owner_of(slot)), key) == 0; }));
}

TEST(broadcast_event_with_sentinel, wakes_waiters_after_a_failover) {
    sentinel_group group{{.replicas = 1}};
    client a{{.url = group.sentinel_url(), .command_timeout = 40s}};
    client b{{.url = group.sentinel_url(), .command_timeout = 40s}};
    broadcast_event of_a{a, "name"};
    broadcast_event of_b{b, "name"};
    of_b.clear();
    begun waiting{as_true(of_a.async_wait())};
    ASSERT_TRUE(eventually([&] { return clients_waiting(group.server(1), key) == 1; })) << "also at the replica";
    group.failover();
    of_b.set();
    EXPECT_TRUE(waiting.get());
}

}  // namespace
}  // namespace lockstep::test
