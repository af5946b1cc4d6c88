// For people: who a client is, what it holds and what it waits for.
#include "lease_support.hpp"

#include <lockstep/barrier.hpp>
#include <lockstep/broadcast_event.hpp>
#include <lockstep/counting_semaphore.hpp>
#include <lockstep/event.hpp>
#include <lockstep/latch.hpp>
#include <lockstep/multi_lock.hpp>
#include <lockstep/recursive_mutex.hpp>
#include <lockstep/shared_mutex.hpp>

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <regex>

namespace lockstep::test {
namespace {

std::int64_t wall_ms() {
    return std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::system_clock::now().time_since_epoch()).count();
}

// Only clients that are said to be named; each is registered a second after its first use.
class lease_registration : public testing::Test {
protected:
    std::vector<reply> ids() { return server.must({"ZRANGE", "lockstep:{clients}:index", "0", "-1"}).elements; }
    std::string key_of(std::string const& name) {
        for (auto const& id : ids()) {
            auto key = "lockstep:{clients}:" + id.text;
            if (server.must({"HGET", key, "name"}).text == name) return key;
        }
        return {};
    }
    // Of `waits` without how long they wait, which is in `waited`.
    std::string field(std::string const& name, std::string const& which) {
        auto const key = key_of(name);
        if (key.empty()) return "(not registered)";
        auto const text = server.must({"HGET", key, which}).text;
        static std::regex const line{R"(^(\w+ \w+ \d+ \d+) (\d+) )", std::regex::multiline};
        if (which != "waits") return text;
        waited = -1;
        if (std::smatch found; std::regex_search(text, found, line)) waited = std::stoll(found[2]);
        return std::regex_replace(text, line, "$1 ");
    }
    std::int64_t waited = -1;  // ms, in the first line of the `waits` that was read last
    // It is said a second after the first use, and every ten.
    bool soon(std::string const& name, std::string const& which, std::string const& value) {
        return eventually([&] { return field(name, which) == value; }, 15s);
    }
    client named(std::string const& name) { return client{{.url = server.url(), .name = name}}; }

    redis_server server;
};

TEST_F(lease_registration, says_who_a_client_is_and_what_it_holds_and_waits_for) {
    {
        auto a = named("billing");
        auto const held = mutex(a, "a name%").acquire();
        ASSERT_TRUE(soon("billing", "held", "1"));
        auto const key = key_of("billing");
        EXPECT_EQ(field("billing", "pid"), std::to_string(::getpid()));
        EXPECT_NE(field("billing", "host"), "");
        EXPECT_NE(field("billing", "version"), "");
        EXPECT_EQ(field("billing", "holds"), "lock owner 1 1 " + std::to_string(held.fence()) + " a name%25\n");
        EXPECT_EQ(field("billing", "waits"), "");
        EXPECT_EQ(field("billing", "waiting"), "0");
        EXPECT_EQ(field("billing", "holds_left_out"), "0");
        EXPECT_TRUE(held_at(server, "a name%25").starts_with(key.substr(key.rfind(':') + 1) + ".")) << "the hold's id names the client";
        auto const ttl = server.must({"PTTL", key}).integer;
        EXPECT_GT(ttl, 500'000);
        EXPECT_LE(ttl, 600'000);
        EXPECT_LE(server.must({"PTTL", "lockstep:{clients}:index"}).integer, 600'000);

        auto b = named("waits");
        begun next{mutex(b, "a name%").async_acquire()};
        ASSERT_TRUE(soon("waits", "waiting", "1"));
        EXPECT_EQ(field("waits", "waits"), "lock owner 1 1 a name%25\n");
        EXPECT_GE(waited, 900) << "it was said a second later";
        EXPECT_LT(waited, 30'000);
        b.close();
        EXPECT_EQ(ids().size(), 1U) << "it has taken its leave";
    }
    EXPECT_EQ(ids().size(), 0U);
    EXPECT_EQ(server.must({"DBSIZE"}).integer, 3) << "the lock's, what was counted, and the index of objects";
    EXPECT_EQ(server.must({"HGET", "lockstep:{statistics}:names", "lock"}).text.substr(0, 2), "1 ");
}

TEST_F(lease_registration, knows_since_when_a_client_is_there_and_not_since_when_it_holds_something) {
    auto const before = wall_ms();
    auto a = named("early");
    auto const made = wall_ms();
    ASSERT_TRUE(eventually([&] { return wall_ms() > made + 20; }));
    auto const held = mutex(a, "x").acquire();
    ASSERT_TRUE(soon("early", "held", "1"));
    EXPECT_GE(std::stoll(field("early", "since")), before);
    EXPECT_LE(std::stoll(field("early", "since")), made);
}

TEST_F(lease_registration, tells_readers_from_writers_and_counts_permits) {
    auto a = named("a");
    shared_mutex catalogue{a, "catalogue"};
    auto const first = catalogue.acquire_shared();
    auto const second = catalogue.acquire_shared();
    auto licences = counting_semaphore::create(a, "licences", 6);
    auto const two = licences.acquire(2);
    auto const three = licences.acquire(3);
    recursive_mutex account{a, "account"};
    auto const outer = account.as("me").acquire();
    auto const inner = account.as("me").acquire();
    auto const written = shared_mutex(a, "index").acquire();
    auto changed = shared_mutex(a, "changed").acquire();
    changed = shared_mutex(a, "changed").downgrade(std::move(changed));
    begun writer{catalogue.async_acquire()};
    begun more{licences.async_acquire(4)};
    begun attached{counting_semaphore::async_attach(a, "not yet", 30s)};

    ASSERT_TRUE(soon("a", "waiting", "3"));
    auto const number = [](std::uint64_t fence) { return std::to_string(fence); };
    EXPECT_EQ(field("a", "held"), "8");
    auto const holds = field("a", "holds");
    EXPECT_THAT(holds, testing::HasSubstr("shared reader 2 2 " + number(second.fence()) + " catalogue\n"));
    EXPECT_THAT(holds, testing::HasSubstr("semaphore permits 2 5 " + number(three.fence()) + " licences\n"));
    EXPECT_THAT(holds, testing::HasSubstr("recursive owner 2 2 " + number(outer.fence()) + " account\n"));
    EXPECT_THAT(holds, testing::HasSubstr("shared writer 1 1 " + number(written.fence()) + " index\n"));
    EXPECT_THAT(holds, testing::HasSubstr("shared reader 1 1 " + number(changed.fence()) + " changed\n"));
    auto const waits = field("a", "waits");
    EXPECT_THAT(waits, testing::HasSubstr("shared writer 1 1 catalogue\n"));
    EXPECT_THAT(waits, testing::HasSubstr("semaphore permits 1 4 licences\n"));
    EXPECT_THAT(waits, testing::HasSubstr("semaphore creation 1 0 not yet\n"));
    EXPECT_EQ(field("a", "holds_left_out"), "0");
    EXPECT_EQ(field("a", "waits_left_out"), "0");
}

task<bool> as_true(task<void> work) {
    co_await std::move(work);
    co_return true;
}

TEST_F(lease_registration, shows_those_who_wait_for_what_nobody_holds) {
    auto of_latch = named("latch");
    auto of_barrier = named("barrier");
    auto of_broadcast = named("broadcast");
    auto of_event = named("event");
    latch loaded{of_latch, "loaded", 2};
    barrier round{of_barrier, "round", 3};
    broadcast_event open{of_broadcast, "open"};
    event ready{of_event, "ready"};
    begun one{as_true(loaded.async_wait())};
    begun two{as_true(loaded.async_wait())};
    begun three{as_true(round.async_arrive_and_wait())};
    begun four{as_true(open.async_wait())};
    begun five{as_true(ready.async_wait())};
    EXPECT_TRUE(soon("latch", "waits", "latch open 2 2 loaded\n"));
    EXPECT_TRUE(soon("barrier", "waits", "barrier others 1 1 round\n"));
    EXPECT_TRUE(soon("broadcast", "waits", "broadcast set 1 1 open\n"));
    EXPECT_TRUE(soon("event", "waits", "event signal 1 1 ready\n"));
    EXPECT_EQ(field("latch", "waiting"), "2");
}

TEST_F(lease_registration, is_for_all_who_use_something_also_without_waiting) {
    auto of_latch = named("latch");
    auto of_broadcast = named("broadcast");
    auto of_semaphore = named("semaphore");
    latch(of_latch, "loaded", 2).count_down();
    broadcast_event(of_broadcast, "open").set();
    static_cast<void>(counting_semaphore::create(of_semaphore, "licences", 3));
    for (auto const* const name : {"latch", "broadcast", "semaphore"}) EXPECT_TRUE(soon(name, "held", "0")) << name;
}

// A cohort has one place in the server's queue, and each of its waiters counts.
TEST_F(lease_registration, counts_all_who_share_a_place_in_the_queue) {
    auto holder = named("holder");
    auto others = named("others");
    mutex kept{holder, "kept"};
    mutex wanted{others, "kept"};
    auto const held = kept.acquire();
    std::vector<std::unique_ptr<begun<lease>>> waiting;
    for (int i = 0; i < 5; ++i) waiting.push_back(std::make_unique<begun<lease>>(wanted.async_acquire()));
    // In the holder's own process they wait behind its hold, without a question.
    std::vector<std::unique_ptr<begun<lease>>> behind;
    for (int i = 0; i < 3; ++i) behind.push_back(std::make_unique<begun<lease>>(kept.async_acquire()));
    EXPECT_TRUE(soon("others", "waits", "lock owner 5 5 kept\n"));
    EXPECT_EQ(waiting_at(server, "kept"), 1);
    EXPECT_TRUE(soon("holder", "waits", "lock owner 3 3 kept\n"));
    EXPECT_EQ(field("holder", "held"), "1");
}

TEST_F(lease_registration, stays_small_and_says_how_much_it_leaves_out) {
    auto a = named("a");
    auto b = named("b");
    auto permits = counting_semaphore::create(a, "permits", 1);
    auto const taken = permits.acquire();
    std::vector<std::unique_ptr<begun<lease>>> waiting;
    auto same = counting_semaphore::create(b, "permits", 1);
    for (int i = 0; i < 3000; ++i) waiting.push_back(std::make_unique<begun<lease>>(same.async_acquire()));
    std::vector<std::string> names;
    for (int i = 0; i < 300; ++i) names.push_back("name-" + std::to_string(i));
    auto const held = try_acquire_all(b, names);
    std::vector<std::string> long_names;
    for (int i = 0; i < 150; ++i) long_names.push_back(std::to_string(i) + std::string(400, '%'));
    auto c = named("c");
    auto const with_long_names = try_acquire_all(c, long_names);

    ASSERT_TRUE(soon("b", "waits", "semaphore permits 3000 3000 permits\n"));
    ASSERT_TRUE(soon("b", "held", "300"));
    auto const holds = field("b", "holds");
    EXPECT_EQ(std::count(holds.begin(), holds.end(), '\n'), 200);
    EXPECT_EQ(field("b", "holds_left_out"), "100");
    ASSERT_TRUE(soon("c", "held", "150"));
    auto const few = field("c", "holds");
    auto const lines = std::count(few.begin(), few.end(), '\n');
    EXPECT_LE(few.size(), 32'768U);
    EXPECT_GT(lines, 20);
    EXPECT_EQ(field("c", "holds_left_out"), std::to_string(150 - lines));
    EXPECT_LT(server.must({"MEMORY", "USAGE", key_of("b")}).integer, 40'000);
}

TEST_F(lease_registration, costs_acquire_and_release_nothing) {
    auto a = named("a");
    mutex one{a, "one"};
    one.acquire().release();
    ASSERT_TRUE(soon("a", "held", "0"));
    auto const requests = [&] { return calls_of(server, "evalsha") + calls_of(server, "eval"); };
    auto const said = [&] { return calls_of(server, "zadd"); };  // only what is said of this client and of what it uses does that
    auto const before = requests();
    auto const said_before = said();
    auto const begin = now_ms();
    for (int i = 0; i < 1000; ++i) one.acquire().release();
    auto const registrations = said() - said_before;
    EXPECT_LE(registrations, 2 + 2 * (now_ms() - begin) / 8'000);
    EXPECT_EQ(requests() - before, 2000 + registrations);
}

}  // namespace
}  // namespace lockstep::test
