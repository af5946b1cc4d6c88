// Leases of all kinds and events at once on servers that fail over, and on a slot that moves while they are held, waited for and handed on.
#include "cluster_support.hpp"
#include "event_load.hpp"
#include "lease_fault_support.hpp"
#include "lease_load.hpp"
#include "support/sentinel_group.hpp"

#include <algorithm>
#include <array>
#include <list>

namespace lockstep::test {
namespace {

constexpr std::array all_kinds{kind::mutex, kind::recursive_mutex, kind::writer, kind::permits};
int const slot = slot_of("{name}");  // of all of them

class loads {
public:
    loads(std::string const& url, lease_load::options const& how)
        : by_{{.url = url, .command_timeout = 40s}}, events_{url, {.counts = how.exclusive, .lease = how.lease}} {
        for (auto const one : all_kinds) loads_.emplace_back(one, url, how);
    }
    bool wait_for_more(std::uint64_t grants = 30) {
        return std::ranges::all_of(loads_, [&](auto& one) { return one.wait_for_more(grants); }) &&
               events_.wait_for_more(grants);
    }
    std::vector<std::string> finish() {
        auto wrong = events_.finish(by_);
        for (auto& one : loads_) std::ranges::copy(one.finish(), std::back_inserter(wrong));
        return wrong;
    }
    std::uint64_t losses() {
        std::uint64_t sum = 0;
        for (auto const& one : loads_) sum += one.losses();
        return sum;
    }

private:
    client by_;
    event_load events_;
    std::list<lease_load> loads_;
};

constexpr lease_load::options not_promised{.clients = 2, .exclusive = false, .lease = {.ttl = 2s}};

TEST(slow_lease_failover, by_sentinel_is_survived_with_growing_fences) {
    sentinel_group group;
    loads load{group.sentinel_url(), not_promised};
    ASSERT_TRUE(load.wait_for_more()) << testing::PrintToString(load.finish());
    // What is not there yet may be lost, and a semaphore that is lost has to be created again.
    for (std::size_t i = 0; i < group.servers(); ++i) {
        ASSERT_TRUE(eventually([&] {
            return group.server(i).must({"HEXISTS", key_of(kind::permits, "name"), "c"}).integer == 1;
        }));
    }
    group.failover();
    ASSERT_TRUE(load.wait_for_more()) << testing::PrintToString(load.finish());
    auto const old = group.master_address();
    auto& killed = group.kill_master();
    ASSERT_TRUE(group.wait_until_master_is_not(old));
    ASSERT_TRUE(load.wait_for_more()) << testing::PrintToString(load.finish());
    killed.restart();
    ASSERT_TRUE(load.wait_for_more()) << testing::PrintToString(load.finish());
    EXPECT_THAT(load.finish(), testing::IsEmpty());
}

TEST(slow_lease_failover, in_a_cluster_is_survived_with_growing_fences) {
    cluster nodes;
    loads load{nodes.url(), not_promised};
    ASSERT_TRUE(load.wait_for_more()) << testing::PrintToString(load.finish());
    auto const shard = nodes.owner_of(slot) % nodes.shards();
    nodes.failover(shard);
    ASSERT_TRUE(load.wait_for_more()) << testing::PrintToString(load.finish());
    auto const killed = nodes.kill_master(shard);
    ASSERT_TRUE(load.wait_for_more()) << testing::PrintToString(load.finish());
    nodes.node(killed).restart();
    EXPECT_TRUE(nodes.wait_until_ok());
    ASSERT_TRUE(load.wait_for_more()) << testing::PrintToString(load.finish());
    EXPECT_THAT(load.finish(), testing::IsEmpty());
}

// Nothing is lost when a slot moves, so there is no excuse: one holder at a time, no lease lost.
TEST(slow_lease_resharding, goes_unnoticed_by_those_who_hold_and_wait) {
    cluster nodes{{.replicas_per_master = 0}};
    loads load{nodes.url(), {.clients = 2}};
    ASSERT_TRUE(load.wait_for_more()) << testing::PrintToString(load.finish());
    for (int i = 0; i < 12; ++i) {
        auto const to = (nodes.owner_of(slot) + 1) % 3;
        nodes.begin_migration(slot, to);
        EXPECT_TRUE(load.wait_for_more(10)) << "between the nodes";
        nodes.move_keys(slot);
        EXPECT_TRUE(load.wait_for_more(10)) << "on the new one, which does not own it yet";
        nodes.finish_migration(slot);
        ASSERT_TRUE(nodes.wait_until_ok()) << "moved again before the nodes agree, a slot can end up with none of them";
        EXPECT_TRUE(load.wait_for_more(10));
    }
    EXPECT_THAT(load.finish(), testing::IsEmpty());
    EXPECT_EQ(load.losses(), 0U);
}

// A waiter that is told on the node where the thing is now, though it began to listen on another.
TEST(slow_lease_resharding, does_not_leave_a_waiter_behind) {
    cluster nodes{{.replicas_per_master = 0}};
    client a{nodes.url()};
    client b{nodes.url()};
    struct pair {
        kind what;
        holdable of_a, of_b;
        lease held;
        std::optional<begun<lease>> waiting{};
    };
    std::list<pair> pairs;
    for (auto const one : all_kinds) {
        pairs.push_back({one, {one, a, "name", {.ttl = 60s}}, {one, b, "name", {.ttl = 60s}}, {}});
        pairs.back().held = pairs.back().of_a.acquire();
    }
    for (int i = 0; i < 4; ++i) {
        auto const from = nodes.owner_of(slot);
        for (auto& one : pairs) {
            one.waiting.emplace((i % 2 == 0 ? one.of_b : one.of_a).async_acquire());
            ASSERT_TRUE(eventually([&] { return record(nodes.node(from), key_of(one.what, "name")).waiting() == 1; }));
        }
        nodes.migrate_slot(slot, (from + 1) % 3);
        ASSERT_TRUE(nodes.wait_until_ok());
        for (auto& one : pairs) {
            SCOPED_TRACE(name_of(one.what));
            auto const fence = one.held.fence();
            one.held.release();
            one.held = one.waiting->get(15s);
            EXPECT_GT(one.held.fence(), fence);
        }
    }
}

}  // namespace
}  // namespace lockstep::test
