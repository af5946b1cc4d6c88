// What a counter promises, in both forms on every topology; then under faults.
#include <lockstep/atomic_counter.hpp>

#include "state_support.hpp"

#include <limits>

namespace lockstep::test {
namespace {

std::string const key = "lockstep:{name}:counter";

class atomic_counter_contract : public contract {
protected:
    std::int64_t get(client& by, atomic_counter& which) {
        return run(
            by, [&] { return which.get(); }, [&] { return which.async_get(); });
    }
    std::int64_t add(client& by, atomic_counter& which, std::int64_t n = 1) {
        return run(
            by, [&] { return which.add(n); }, [&] { return which.async_add(n); });
    }
    std::int64_t fetch_add(client& by, atomic_counter& which, std::int64_t n = 1) {
        return run(
            by, [&] { return which.fetch_add(n); }, [&] { return which.async_fetch_add(n); });
    }
    std::int64_t set(client& by, atomic_counter& which, std::int64_t n) {
        return run(
            by, [&] { return which.set(n); }, [&] { return which.async_set(n); });
    }
    atomic_counter of_a{a, "name"};
    atomic_counter of_b{b, "name"};
};
LOCKSTEP_CONTRACT(atomic_counter_contract);

TEST_P(atomic_counter_contract, counts_for_all) {
    EXPECT_EQ(get(a, of_a), 0);
    EXPECT_EQ(add(a, of_a), 1);
    EXPECT_EQ(add(b, of_b, 41), 42);
    EXPECT_EQ(fetch_add(a, of_a, -2), 42);
    EXPECT_EQ(set(b, of_b, 7), 40);
    EXPECT_EQ(get(a, of_a), 7);
    EXPECT_EQ(server.must({"PTTL", key}).integer, -1);
}

TEST_P(atomic_counter_contract, is_exchanged_only_when_it_is_as_expected) {
    std::int64_t expected = 3;
    EXPECT_FALSE(of_a.compare_exchange(expected, 9));
    EXPECT_EQ(expected, 0);
    EXPECT_TRUE(of_a.compare_exchange(expected, 9));
    EXPECT_EQ(sync_wait(of_b.async_compare_exchange(9, 10)), 9);
    EXPECT_EQ(sync_wait(of_b.async_compare_exchange(9, 11)), 10);
    EXPECT_EQ(get(a, of_a), 10);
}

TEST_P(atomic_counter_contract, is_exact_to_64_bits_and_does_not_wrap) {
    auto const largest = std::numeric_limits<std::int64_t>::max();
    auto const smallest = std::numeric_limits<std::int64_t>::min();
    set(a, of_a, largest - 1);
    EXPECT_EQ(add(a, of_a), largest);
    EXPECT_EQ(ending_of([&] { add(b, of_b); }).reason, errc::invalid_argument);
    EXPECT_EQ(get(a, of_a), largest);
    set(a, of_a, smallest);
    EXPECT_EQ(ending_of([&] { add(b, of_b, -1); }).reason, errc::invalid_argument);
    EXPECT_EQ(fetch_add(b, of_b, largest), smallest);
    EXPECT_EQ(get(a, of_a), -1);
}

TEST_P(atomic_counter_contract, counts_each_of_many_at_once) {
    std::vector<begun<std::int64_t>> adding;
    for (int i = 0; i < 500; ++i) adding.emplace_back((i % 2 == 0 ? of_a : of_b).async_add());
    std::vector<std::int64_t> seen;
    for (auto& one : adding) seen.push_back(one.get());
    std::sort(seen.begin(), seen.end());
    for (int i = 0; i < 500; ++i) EXPECT_EQ(seen[static_cast<std::size_t>(i)], i + 1) << "each number once";
}

TEST_P(atomic_counter_contract, is_gone_when_its_ttl_was_not_used) {
    atomic_counter brief{a, "name", {.ttl = 1h}};
    add(a, brief);
    EXPECT_GT(server.must({"PTTL", key}).integer, 3'500'000);
    add(b, of_b);
    EXPECT_EQ(server.must({"PTTL", key}).integer, -1);
    EXPECT_EQ(ending_of([&] { atomic_counter(a, "x", {.ttl = -1ms}); }).reason, errc::invalid_argument);
    server.must({"DEL", key});
    server.must({"SET", key, "mine"});
    EXPECT_EQ(ending_of([&] { add(a, of_a); }).reason, errc::server);
    EXPECT_EQ(ending_of([&] { get(a, of_a); }).reason, errc::server);
}

TEST(atomic_counter_faults, each_of_thousands_of_adds_counts_once_though_all_replies_are_lost) {
    redis_server server;
    fault_proxy proxy{server.address()};
    client far{proxy.url()};
    client near{server.url()};
    atomic_counter there{far, "name"};
    atomic_counter here{near, "name"};
    here.add();  // the server knows the script
    proxy.drop_replies(1);
    EXPECT_EQ(there.add(), 2) << "and it is told what it was told before";
    EXPECT_EQ(proxy.counters().struck, 1U);
    proxy.hold(direction::to_client);
    std::vector<begun<std::int64_t>> adding;
    for (int i = 0; i < 3000; ++i) adding.emplace_back(there.async_add());
    ASSERT_TRUE(eventually([&] { return here.get() == 3002; }));
    proxy.cut();
    proxy.heal();
    for (auto& one : adding) EXPECT_GT(one.get(), 2);
    EXPECT_EQ(here.get(), 3002);
}

}  // namespace
}  // namespace lockstep::test
