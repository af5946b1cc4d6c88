// What nobody holds and nobody waits for is there for as long as a client has an object that uses it, and goes when that client dies.
#include <lockstep/broadcast_event.hpp>
#include <lockstep/counting_semaphore.hpp>
#include <lockstep/event.hpp>
#include <lockstep/latch.hpp>

#include "lease_support.hpp"
#include "support/child_process.hpp"
#include "support/eventually.hpp"
#include "support/fault_proxy.hpp"
#include "support/program_path.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <thread>
#include <vector>

namespace lockstep::test {
namespace {

class key_keepalive : public testing::Test {
protected:
    bool exists(std::string const& kind) { return server.must({"EXISTS", "lockstep:{name}:" + kind}).integer == 1; }
    bool vanishes(std::string const& kind) {
        return eventually([&] { return !exists(kind); });
    }
    long expiries_set() {
        auto const text = server.info("cmdstat_pexpire");
        return text.empty() ? 0 : std::stol(text.substr(text.find("calls=") + 6));
    }

    redis_server server;
    client a{server.url()};
};

TEST_F(key_keepalive, a_semaphore_outlives_its_lease_ttl_in_an_idle_process_and_not_one_that_is_killed) {
    child_process other{{program_path("puppet"), server.url(), "other"}, {.capture_stderr = false}};
    other.write_line("semaphore name 3 1000");
    ASSERT_EQ(other.read_line(20s), "ok");
    auto const made_at = now_ms();
    std::this_thread::sleep_for(3s);
    EXPECT_TRUE(exists("semaphore"));
    other.kill();
    ASSERT_TRUE(other.wait());
    EXPECT_LE(server.must({"PTTL", "lockstep:{name}:semaphore"}).integer, 2'000);
    EXPECT_TRUE(vanishes("semaphore"));
    EXPECT_GT(now_ms() - made_at, 3'000);
}

TEST_F(key_keepalive, a_semaphore_is_not_made_again) {
    auto const made = counting_semaphore::create(a, "name", 3, {.lease_ttl = 1s});
    server.must({"FLUSHALL"});
    std::this_thread::sleep_for(1s);
    EXPECT_FALSE(exists("semaphore"));
    EXPECT_EQ(counting_semaphore::create(a, "name", 5, {.lease_ttl = 1s}).count(), 5) << "by whoever creates it";
    std::this_thread::sleep_for(3s);
    EXPECT_EQ(made.count(), 5) << "and then it is kept as before";
}

TEST_F(key_keepalive, a_semaphore_survives_an_interruption_of_the_connection) {
    fault_proxy proxy{server.address()};
    client far{proxy.url()};
    auto const made = counting_semaphore::create(far, "name", 3, {.lease_ttl = 3s});
    proxy.hold();
    std::this_thread::sleep_for(2s);
    proxy.heal();
    std::this_thread::sleep_for(5s);
    EXPECT_TRUE(exists("semaphore"));
}

TEST_F(key_keepalive, a_semaphore_stays_for_the_longest_lease_ttl_of_its_objects) {
    auto const brief = counting_semaphore::create(a, "name", 3, {.lease_ttl = 1s});
    auto const lasting = counting_semaphore::attach(a, "name", 1s, {.lease_ttl = 20s});
    server.must({"PEXPIRE", "lockstep:{name}:semaphore", "9000"});
    EXPECT_TRUE(eventually([&] { return server.must({"PTTL", "lockstep:{name}:semaphore"}).integer > 30'000; }));
}

TEST_F(key_keepalive, what_was_set_and_nobody_waits_for_stays) {
    std::optional of_one{event{a, "name", {.retention = 1s}}};
    std::optional of_all{broadcast_event{a, "name", {.retention = 1s}}};
    std::optional opened{latch{a, "name", 2, {.retention = 1s}}};
    of_one->set();
    of_all->set();
    opened->count_down();
    std::this_thread::sleep_for(4s);
    EXPECT_TRUE(of_one->is_set());
    EXPECT_TRUE(of_all->is_set());
    opened->count_down();
    EXPECT_TRUE(opened->try_wait()) << "it had not forgotten the first";
    of_one.reset();
    of_all.reset();
    opened.reset();
    for (auto const* const kind : {"event", "broadcast", "latch"}) EXPECT_TRUE(vanishes(kind)) << kind;
}

// With a third of their lease_ttl it would be 100 a second. What is kept at that rate still lives, and those without an object cost nothing.
TEST_F(key_keepalive, two_hundred_semaphores_cost_fifty_commands_a_second) {
    constexpr int number = 200;
    std::vector<counting_semaphore> made;
    for (int i = 0; i < number; ++i) made.push_back(counting_semaphore::create(a, std::to_string(i), 1, {.lease_ttl = 6s}));
    auto const before = expiries_set();
    auto const begin = now_ms();
    std::this_thread::sleep_for(9s);
    auto const sent = expiries_set() - before;
    auto const seconds = static_cast<double>(now_ms() - begin) / 1000;
    EXPECT_LE(static_cast<double>(sent), 50 * seconds + 50);
    EXPECT_GE(sent, number);
    std::int64_t shortest = 1 << 30;
    for (int i = 0; i < number; ++i) {
        shortest = std::min(shortest, server.must({"PTTL", "lockstep:{" + std::to_string(i) + "}:semaphore"}).integer);
    }
    EXPECT_GT(shortest, 5'000) << "of at most 12 s";
    made.clear();
    auto const after = expiries_set();
    std::this_thread::sleep_for(3s);
    EXPECT_LE(expiries_set() - after, 3);
    std::cout << sent << " commands in " << seconds << " s, shortest expiry " << shortest << " ms\n";
}

// Nothing is sent for each acquisition, and nothing for those of which there are few before a part of their lease_ttl is over.
TEST_F(key_keepalive, a_lock_call_does_not_pay_for_it) {
    auto made = counting_semaphore::create(a, "name", 1);
    made.acquire().release();
    auto const before = expiries_set();
    for (int i = 0; i < 200; ++i) made.acquire().release();
    EXPECT_LE(expiries_set() - before, 3) << "the client says who it is, perhaps";
}

}  // namespace
}  // namespace lockstep::test
