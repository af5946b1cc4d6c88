// What a monitor takes for a deadlock, and how much it reads of whom for one name.
#include "support/contract.hpp"
#include "support/eventually.hpp"
#include "topology_support.hpp"

#include <lockstep/barrier.hpp>
#include <lockstep/counting_semaphore.hpp>
#include <lockstep/election.hpp>
#include <lockstep/latch.hpp>
#include <lockstep/monitor.hpp>
#include <lockstep/mutex.hpp>

#include <algorithm>
#include <atomic>
#include <future>
#include <string>

namespace lockstep::test {
namespace {

class monitor_why_contract : public contract {
protected:
    explanation why(std::string_view name) {
        return run(
            c, [&] { return eye.why(name); }, [&] { return eye.async_why(name); });
    }
    snapshot look(std::string_view name) {
        return run(
            c, [&] { return eye.snapshot({.name = name}); }, [&] { return eye.async_snapshot({.name = name}); });
    }
    /// So many clients have said that they wait.
    bool are_known_to_wait(std::ptrdiff_t clients) {
        return eventually(
            [&] {
                auto const all = eye.clients();
                return std::count_if(all.begin(), all.end(), [](client_info const& one) { return one.waiting > 0; }) == clients;
            },
            20s);
    }

    client c{{.url = url(), .name = "looks"}};
    client d{{.url = url(), .name = "third"}};
    lockstep::monitor eye{c};
};
LOCKSTEP_CONTRACT(monitor_why_contract);

// A and C have the two permits. A waits for what B holds, and B for a permit: C lets go some time, and then B goes on.
TEST_P(monitor_why_contract, is_no_deadlock_while_somebody_outside_of_the_ring_has_a_permit) {
    auto permits = counting_semaphore::create(a, "permits", 2);
    auto const of_a = permits.acquire();
    auto of_third = counting_semaphore::create(d, "permits", 2).acquire();
    auto const of_b = mutex(b, "left").acquire();
    begun a_waits{mutex(a, "left").async_acquire()};
    begun b_waits{counting_semaphore::create(b, "permits", 2).async_acquire()};
    ASSERT_TRUE(eventually([&] { return why("left").chain.size() == 3; }, 20s)) << "A for B, and B for A and the third";
    EXPECT_TRUE(why("left").cycles.empty());
    EXPECT_EQ(why("left").text().find("Deadlock"), std::string::npos);

    // Now the third waits for B as well, and nobody is left who would go on.
    begun third_waits{mutex(d, "left").async_acquire()};
    EXPECT_TRUE(eventually([&] { return why("left").cycles.size() == 2; }, 20s));
}

TEST_P(monitor_why_contract, is_no_deadlock_when_a_leader_waits_for_a_candidate_in_line_behind_it) {
    election seat_of_a{a, "seat", {.id = "a"}};
    auto const leads = seat_of_a.campaign();
    auto const of_b = mutex(b, "left").acquire();
    election seat_of_b{b, "seat", {.id = "b"}};
    begun stands{seat_of_b.async_campaign()};
    begun a_waits{mutex(a, "left").async_acquire()};
    ASSERT_TRUE(eventually([&] { return why("left").waits.size() == 1 && look("seat").waits.size() == 1; }, 20s));
    ASSERT_TRUE(are_known_to_wait(2));
    for (auto const* const name : {"left", "seat"}) {
        EXPECT_TRUE(why(name).cycles.empty()) << name;
        for (auto const& one : why(name).chain) EXPECT_NE(one.kind, "election");
    }
}

TEST_P(monitor_why_contract, reads_of_one_name_only_the_clients_that_hold_it_or_wait_for_it) {
    auto const held = mutex(a, "name").acquire();
    begun waits{mutex(b, "name").async_acquire()};
    auto const another = mutex(d, "another").acquire();
    latch open_soon{d, "gate", 1};
    auto const waits_there = std::async(std::launch::async, [&] { open_soon.wait(); });
    barrier meeting{d, "meeting", 2};
    auto const arrived = std::async(std::launch::async, [&] { meeting.arrive_and_wait(); });
    ASSERT_TRUE(eventually([&] { return eye.clients().size() == 3; }, 20s));
    ASSERT_TRUE(eventually([&] { return look("name").clients.size() == 2; }, 20s));
    ASSERT_TRUE(eventually([&] { return look("gate").waits.size() == 1; }, 20s));
    EXPECT_EQ(look("gate").waits[0].who.name, "third");
    EXPECT_EQ(look("gate").clients.size(), 1U);
    ASSERT_TRUE(eventually([&] { return look("meeting").waits.size() == 1; }, 20s));
    EXPECT_EQ(look("meeting").waits[0].who.name, "third");
    open_soon.count_down();
    barrier(a, "meeting", 2).arrive_and_wait();
}

class monitor_of_a_fleet : public testing::Test {
protected:
    /// So many clients have said who they are; nobody of them hears anything.
    void add_clients(int count) {
        server.must({"EVAL",
                     "local now = redis.call('TIME')[1] * 1000 "
                     "for i = 1, ARGV[1] do "
                     "redis.call('HSET', 'lockstep:{clients}:other' .. i, 'name', 'other', 'said', now, 'held', 0, 'waiting', 0, 'holds', '', 'waits', '') "
                     "redis.call('ZADD', 'lockstep:{clients}:index', now, 'other' .. i) end return 1",
                     "0", std::to_string(count)});
    }

    redis_server server;
    client by{server.url()};
    client eyes{server.url()};
    lockstep::monitor eye{eyes};
};

TEST_F(monitor_of_a_fleet, asks_for_few_clients_where_there_are_many) {
    auto held = mutex(by, "name").acquire();
    ASSERT_TRUE(eventually([&] { return eye.clients().size() == 1; }));
    add_clients(500);
    ASSERT_EQ(eye.clients().size(), 501U);
    server.must({"CONFIG", "RESETSTAT"});
    EXPECT_EQ(eye.active("name").size(), 1U);
    EXPECT_EQ(eye.waiters("name").size(), 0U);
    EXPECT_EQ(eye.why("name").holds.size(), 1U);
    EXPECT_FALSE(eye.release(eye.active("name")[0], {.force = true}) == false);
    EXPECT_LE(calls_of(server, "hgetall"), 60) << "why() asks that one anew until it has answered";
    EXPECT_EQ(calls_of(server, "zrange"), 0);
}

TEST_F(monitor_of_a_fleet, makes_each_client_say_less_where_many_are_watched) {
    std::atomic<int> said{0};
    auto const news = eyes.subscribe("lockstep:news", [&](message const&) { ++said; });
    mutex busy{by, "busy"};
    busy.acquire().release();
    ASSERT_TRUE(eventually([&] { return eye.clients().size() == 1; }));
    auto const how_often = [&] {
        auto const watching = eye.watch([](snapshot const&) {}, {.at_most_every = 100ms, .at_least_every = 200ms});
        EXPECT_TRUE(eventually([&] {
            busy.acquire().release();
            return said > 0;
        }, 20s));
        said = 0;
        auto const until = now_ms() + 2'000;
        while (now_ms() < until) busy.acquire().release();
        return said.load();
    };
    EXPECT_GE(how_often(), 8) << "alone, ten times a second";
    add_clients(200);  // 50 registrations a second of all of them: one each 4 s
    EXPECT_LE(how_often(), 3);
}

}  // namespace
}  // namespace lockstep::test
