// Consumers among killed processes, lost replies, cut connections and failovers: nothing acknowledged is lost.
#include "consumer_support.hpp"
#include "scripts/all.hpp"
#include "support/child_process.hpp"
#include "support/clock_file.hpp"
#include "support/cluster.hpp"
#include "support/fault_proxy.hpp"
#include "support/key_slot.hpp"
#include "support/log_lines.hpp"
#include "support/program_path.hpp"
#include "support/sentinel_group.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <set>

namespace lockstep::test {
namespace {

TEST_F(consumer_faults, entries_whose_delivery_is_lost_on_the_way_are_found_again_at_once) {
    consumer one{far, "name", noting(), {.group = "g", .idle_limit = 1h}};
    ASSERT_TRUE(eventually([&] { return is_at_rest(server); }));
    proxy.drop_replies(1);
    here.add_value(std::string{"lost"});
    ASSERT_TRUE(eventually([&] { return done.times("lost") == 1; }));
    EXPECT_EQ(proxy.counters().struck, 1U);
    EXPECT_EQ(deliveries, 1) << "nobody had it before";
    EXPECT_TRUE(all_is_acknowledged());
    EXPECT_EQ(one.statistics().recovered, 1U);
    here.add_value(std::string{"next"});
    EXPECT_TRUE(eventually([&] { return done.times("next") == 1; }));
    EXPECT_EQ(done.times("lost"), 1);
}

TEST_F(consumer_faults, an_acknowledgement_whose_reply_is_lost_is_repeated) {
    hold = true;
    consumer one{far, "name", noting(), {.group = "g", .idle_limit = 1h}};
    here.add_value(std::string{"x"});
    ASSERT_TRUE(eventually([&] { return one.statistics().running == 1 && is_at_rest(server); }));
    proxy.drop_replies(1);
    hold = false;
    EXPECT_TRUE(eventually([&] { return one.statistics().acknowledged == 1; }));
    EXPECT_EQ(proxy.counters().struck, 1U);
    EXPECT_TRUE(all_is_acknowledged());
    EXPECT_EQ(done.times("x"), 1);
}

TEST_F(consumer_faults, a_dead_letter_whose_reply_is_lost_is_there_once) {
    refuses = true;
    hold = true;
    consumer one{far, "name", noting(), {.group = "g", .idle_limit = 1h}};
    here.add_value(std::string{"x"});
    ASSERT_TRUE(eventually([&] { return one.statistics().running == 1 && is_at_rest(server); }));
    // The server knows the script, so that the lost reply is that of the move itself.
    server.must({"SCRIPT", "LOAD", std::string{scripts::stream_bury.text}});
    proxy.drop_replies(1);
    hold = false;
    EXPECT_TRUE(eventually([&] { return one.statistics().dead == 1; }));
    EXPECT_EQ(proxy.counters().struck, 1U);
    EXPECT_EQ(here.dead_letters().length(), 1);
    EXPECT_TRUE(all_is_acknowledged());
    EXPECT_EQ(done.times("x"), 1);
}

TEST_F(consumer_faults, what_is_given_up_here_but_is_anothers_by_now_is_no_dead_letter) {
    log_lines log;
    client by{server.url()};
    refuses = true;
    hold = true;
    consumer one{by, "name", noting(), {.group = "g", .idle_limit = 1h}};
    here.add_value(std::string{"x"});
    ASSERT_TRUE(eventually([&] { return one.statistics().running == 1; }));
    ASSERT_EQ(here.claim("g", "another", 0ms, {here.range().at(0).id}).size(), 1U);
    hold = false;
    one.stop();
    EXPECT_EQ(done.times("x"), 1);
    EXPECT_EQ(one.statistics().failed, 1U);
    EXPECT_EQ(one.statistics().dead, 0U);
    EXPECT_EQ(log.count("dead letters"), 0U) << log.text();
    EXPECT_EQ(here.dead_letters().length(), 0);
    EXPECT_EQ(here.pending_entries("g").at(0).consumer, "another");
}

TEST_F(consumer_faults, cuts_in_the_middle_of_batches_lose_nothing) {
    consumer one{far, "name", noting(), {.group = "g", .concurrency = 2, .batch = 20, .idle_limit = 1h}};
    for (int round = 0; round < 20; ++round) {
        std::vector<stream_fields> many;
        for (int i = 0; i < 100; ++i) many.push_back({{"data", std::to_string(round * 100 + i)}});
        here.add_all(many);
        ASSERT_TRUE(eventually([&] { return done.different() > static_cast<std::size_t>(round) * 100; }));
        proxy.cut();
    }
    EXPECT_TRUE(eventually([&] { return done.different() == 2000; }, 30s)) << done.different();
    EXPECT_TRUE(all_is_acknowledged());
}

TEST_F(consumer_faults, what_is_done_while_the_server_is_out_of_reach_is_acknowledged_later) {
    hold = true;
    consumer one{far, "name", noting(), {.group = "g", .idle_limit = 1h}};
    here.add_value(std::string{"x"});
    ASSERT_TRUE(eventually([&] { return one.statistics().running == 1; }));
    proxy.refuse();
    proxy.cut();
    hold = false;
    ASSERT_TRUE(eventually([&] { return done.times("x") == 1; }));
    EXPECT_EQ(pending_at(server), 1);
    proxy.heal();
    EXPECT_TRUE(all_is_acknowledged());
    EXPECT_EQ(done.times("x"), 1);
}

TEST_F(consumer_faults, a_restart_of_the_server_with_its_data_loses_nothing) {
    redis_server lasting{{.config = {"appendfsync always"}, .append_only = true}};
    client by{lasting.url()};
    stream of{by, "name"};
    consumer one{by, "name", noting(), {.group = "g", .concurrency = 2, .batch = 10, .idle_limit = 1h}};
    for (int round = 0; round < 3; ++round) {
        std::vector<stream_fields> many;
        for (int i = 0; i < 100; ++i) many.push_back({{"data", std::to_string(round * 100 + i)}});
        of.add_all(many);
        ASSERT_TRUE(eventually([&] { return done.different() > static_cast<std::size_t>(round) * 100; }));
        lasting.kill9();
        lasting.restart();
    }
    EXPECT_TRUE(eventually([&] { return done.different() == 300; })) << done.different();
    EXPECT_TRUE(eventually([&] { return pending_at(lasting) == 0; }));
}

TEST(consumer_and_clocks, entries_of_the_dead_are_taken_over_although_the_servers_clock_was_set_back) {
    ledger_of_work done;
    clock_file clock;
    redis_server server{{.clock = &clock}};
    client by{server.url()};
    stream from{by, "name"};
    from.create_group("g");
    from.add_value(std::string{"x"});
    EXPECT_EQ(from.read_group("g", "dead").size(), 1U);
    clock.step(-1h);
    consumer living{by, "name", [&](delivery const& what) { done.note(what.as<std::string>()); }, {.group = "g", .idle_limit = 300ms}};
    EXPECT_TRUE(eventually([&] { return done.times("x") == 1 && pending_at(server) == 0; }));
}

TEST(consumer_and_clocks, entries_that_were_given_back_are_taken_although_the_servers_clock_was_set_back) {
    ledger_of_work done;
    clock_file clock;
    redis_server server{{.clock = &clock}};
    client by{server.url()};
    std::atomic<bool> fails{true};
    auto const handle = [&](delivery const& what) {
        if (fails) throw std::runtime_error{"not now"};
        done.note(what.as<std::string>());
    };
    consumer const reading{by, "name", handle, {.group = "g", .idle_limit = 300ms, .retry_min = 2s}};
    stream{by, "name"}.add_value(std::string{"x"});
    ASSERT_TRUE(eventually([&] { return server.must({"ZCARD", stream_key + ":returned:g"}).integer == 1; }));
    clock.step(-1h);
    fails = false;
    EXPECT_TRUE(eventually([&] { return done.times("x") == 1 && pending_at(server) == 0; }));
}

TEST(slow_consumer, keeps_what_it_works_on_however_long_that_takes) {
    redis_server server;
    client a{server.url()};
    client b{server.url()};
    auto const limit = 1'500ms;
    std::atomic<int> begun_here{0};
    std::atomic<bool> hold{true};
    delivery_handler const work = [&](delivery const&) {
        ++begun_here;
        EXPECT_TRUE(eventually([&] { return !hold.load(); }, 30s));
    };
    stream{a, "name"}.add_value(1);
    consumer first{a, "name", work, {.group = "g", .idle_limit = limit}};
    consumer second{b, "name", work, {.group = "g", .idle_limit = limit}};
    ASSERT_TRUE(eventually([&] { return begun_here == 1; }));
    auto const until = now_ms() + 4 * limit.count();
    auto const looks = calls_of(server, "hrandfield");
    EXPECT_TRUE(eventually([&] { return now_ms() > until && calls_of(server, "hrandfield") >= looks + 4; }, 30s));
    EXPECT_EQ(begun_here, 1);
    EXPECT_EQ(server.must({"XPENDING", stream_key, "g", "-", "+", "1"}).elements.at(0).elements.at(3).integer, 1) << "delivered once";
    hold = false;
    EXPECT_TRUE(eventually([&] { return pending_at(server) == 0; }));
}

TEST(slow_consumer, nothing_is_lost_while_processes_are_killed_at_any_time) {
    redis_server server;
    client by{server.url()};
    stream of{by, "name"};
    std::multiset<std::string> did;
    auto const collect = [&](child_process& from) {
        while (auto const line = from.read_line(1ms)) {
            if (line->starts_with("did ")) did.insert(line->substr(4));
        }
    };
    auto const worker = [&] { return child_process{{program_path("stream_worker"), server.url(), "name", "g", "400", "never"}}; };
    std::vector<child_process> workers;
    for (int i = 0; i < 3; ++i) workers.push_back(worker());
    int added = 0;
    for (int round = 0; round < 12; ++round) {
        std::vector<stream_fields> many;
        for (int i = 0; i < 200; ++i) many.push_back({{"data", std::to_string(added++)}});
        of.add_all(many);
        ASSERT_TRUE(eventually([&] {
            for (auto& one : workers) collect(one);
            return !did.empty() && did.size() >= static_cast<std::size_t>(round) * 100;
        }));
        auto& victim = workers[static_cast<std::size_t>(round) % workers.size()];
        victim.kill();
        ASSERT_TRUE(victim.wait());
        collect(victim);
        victim = worker();
    }
    EXPECT_TRUE(eventually(
        [&] {
            for (auto& one : workers) collect(one);
            return std::set<std::string>(did.begin(), did.end()).size() == static_cast<std::size_t>(added) && pending_at(server) == 0;
        },
        40s))
        << std::set<std::string>(did.begin(), did.end()).size() << " of " << added << ", pending " << pending_at(server);
}

TEST(slow_consumer, follows_its_slot_in_a_cluster) {
    cluster nodes{{.masters = 3, .replicas_per_master = 0}};
    client by{{.url = nodes.url(), .command_timeout = 40s}};
    stream of{by, "name"};
    ledger_of_work done;
    consumer one{by, "name", [&](delivery const& what) { done.note(what.as<std::string>()); }, {.group = "g"}};
    of.add_value(std::string{"before"});
    ASSERT_TRUE(eventually([&] { return done.times("before") == 1; }));
    auto const slot = slot_of(stream_key);
    for (int i = 0; i < 2; ++i) {
        nodes.migrate_slot(slot, (nodes.owner_of(slot) + 1) % 3);
        of.add_value(std::to_string(i));
        EXPECT_TRUE(eventually([&] { return done.times(std::to_string(i)) == 1; }, 20s)) << i;
    }
    EXPECT_TRUE(eventually([&] { return pending_at(nodes.node(nodes.owner_of(slot))) == 0; }));
}

TEST(slow_consumer, goes_on_after_a_failover) {
    sentinel_group group{{.replicas = 1}};
    client by{{.url = group.sentinel_url(), .command_timeout = 40s}};
    stream of{by, "name"};
    ledger_of_work done;
    consumer one{by, "name", [&](delivery const& what) { done.note(what.as<std::string>()); }, {.group = "g"}};
    of.add_value(std::string{"before"});
    ASSERT_TRUE(eventually([&] { return done.times("before") >= 1; }));
    group.failover();
    for (int i = 0; i < 50; ++i) of.add_value(std::to_string(i));
    EXPECT_TRUE(eventually([&] { return done.different() == 51; }, 40s)) << done.different();
    EXPECT_TRUE(eventually([&] { return pending_at(group.master()) == 0; }));
}

}  // namespace
}  // namespace lockstep::test
