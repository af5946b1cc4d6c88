// Redlock while nodes die, hang, forget, and lose replies.
#include "redlock_support.hpp"

#include "scripts/all.hpp"
#include "support/monitor.hpp"

#include <gmock/gmock.h>

#include <algorithm>
#include <atomic>
#include <stop_token>
#include <thread>

namespace lockstep::test {
namespace {

using testing::HasSubstr;

class redlock_faults : public testing::Test {
protected:
    redlock_faults() {
        for (std::size_t i = 0; i != servers.size(); ++i) {
            proxies.push_back(std::make_unique<fault_proxy>(servers[i].address()));
            clients.emplace_back(proxies.back()->url());
        }
        std::vector<client*> pointers;
        for (auto& node : clients) pointers.push_back(&node);
        nodes.emplace(std::span<client* const>{pointers});
        connect(*nodes);
        // A majority is enough for that. What is delayed later must not be a log-in.
        EXPECT_TRUE(eventually([&] {
            auto const held = redlock{*nodes, "all", {.node_timeout = 10s}}.acquire();
            return eventually([&] { return servers.that_have("all") == 5; }, 1s);
        }));
        // The replies to its release are no replies of the test: a connection has them before those of what comes next.
        EXPECT_TRUE(eventually([&] { return servers.that_have("all") == 0; }));
        for (auto& node : clients) node.command("PING");
        connect(others);
    }

    server_set servers{5};
    std::vector<std::unique_ptr<fault_proxy>> proxies;
    std::vector<client> clients;              // through the proxies
    std::optional<redlock_nodes> nodes;       // these
    redlock_nodes others{servers.urls()};     // straight
    redlock_options brief{.ttl = 600ms, .retry_delay = 20ms, .retry_jitter = 10ms};                          // to be lost
    redlock_options steady{.ttl = 3s, .renew_every = 200ms, .retry_delay = 20ms, .retry_jitter = 10ms};  // to be kept, also by a busy machine
};

TEST_F(redlock_faults, goes_on_while_one_and_then_two_of_five_are_dead) {
    redlock lock{*nodes, "name", {.ttl = 2s}};
    redlock other{others, "name", {.ttl = 2s}};
    auto held = lock.acquire();
    for (std::size_t const victim : {0U, 3U}) {
        servers[victim].kill9();
        EXPECT_FALSE(other.try_acquire());
        EXPECT_TRUE(held.valid());
        held.release();
        held = lock.acquire();
        EXPECT_GE(servers.that_have("name", held.token()), 3U);
    }
    EXPECT_FALSE(other.try_acquire_for(3s)) << "more than its ttl";
    EXPECT_TRUE(held.valid());
}

TEST_F(redlock_faults, fails_cleanly_when_most_are_dead_and_recovers_when_they_return) {
    redlock lock{*nodes, "name", brief};
    redlock other{others, "name", brief};
    auto held = lock.acquire();
    std::atomic<std::int64_t> told = 0;
    std::stop_callback const hears{held.stop_token(), [&] { told = now_ms(); }};
    auto const risk = held.at_risk_token();
    for (std::size_t i = 0; i != 3; ++i) servers[i].kill9();
    auto const dead = now_ms();
    EXPECT_TRUE(eventually([&] { return told != 0; }));
    EXPECT_LE(told - dead, 600) << "what the dead had may be over, and somebody else have it";
    EXPECT_TRUE(eventually([&] { return risk.stop_requested(); }));
    EXPECT_FALSE(held.valid());
    EXPECT_EQ(ending_of([&] { held.release(); }).reason, errc::lease_lost);
    EXPECT_TRUE(eventually([&] { return servers.that_have("name") == 0; })) << "it is gone where they live";
    EXPECT_EQ(ending_of([&] { static_cast<void>(other.try_acquire()); }).reason, errc::unavailable);
    auto few = brief;
    few.attempts = 2;
    redlock twice{others, "name", few};
    auto const end = ending_of([&] { static_cast<void>(twice.acquire()); });
    EXPECT_EQ(end.reason, errc::unavailable);
    EXPECT_THAT(end.text, HasSubstr("majority of 5 nodes"));
    EXPECT_TRUE(eventually([&] { return servers.that_have("name") == 0; })) << "what was not obtained is left behind";

    begun<redlock_lease> waits{other.async_acquire()};
    for (std::size_t i = 0; i != 3; ++i) servers[i].restart();
    EXPECT_TRUE(waits.get().valid());
}

TEST_F(redlock_faults, does_not_wait_for_a_node_that_hangs) {
    redlock lock{*nodes, "name", {.ttl = 60s, .node_timeout = 30s}};
    proxies[2]->hold();
    auto const begin = now_ms();
    auto held = lock.acquire();
    EXPECT_TRUE(eventually([&] { return servers.that_have("name", held.token()) == 4; }));
    held.release();
    EXPECT_LT(now_ms() - begin, 15'000) << "half of the time it may take";
    proxies[2]->heal();
    EXPECT_TRUE(eventually([&] { return servers.that_have("name") == 0; })) << "the node that hung still has it";
}

TEST_F(redlock_faults, gives_up_on_slow_nodes_after_their_time) {
    redlock lock{*nodes, "name", {.ttl = 60s, .node_timeout = 50ms}};
    for (std::size_t i = 0; i != 3; ++i) proxies[i]->hold();
    auto const end = ending_of([&] { static_cast<void>(lock.try_acquire()); });
    EXPECT_EQ(end.reason, errc::unavailable);
    for (auto& one : proxies) one->heal();
    EXPECT_TRUE(eventually([&] { return servers.that_have("name") == 0; })) << "what ran late was not released";
    EXPECT_TRUE(lock.try_acquire_for(10s));
}

// Default times: a node has a second to answer, and the caller has less.
TEST_F(redlock_faults, says_that_no_majority_answered_also_when_its_time_is_over_first) {
    redlock lock{*nodes, "name"};
    redlock limited{*nodes, "name", {.wait_limit = 300ms}};
    for (std::size_t i = 0; i != 3; ++i) proxies[i]->hold();
    EXPECT_EQ(ending_of([&] { static_cast<void>(lock.try_acquire_for(300ms)); }).reason, errc::unavailable);
    EXPECT_EQ(ending_of([&] { static_cast<void>(limited.acquire()); }).reason, errc::unavailable);
    for (auto& one : proxies) one->heal();
    auto const held = lock.try_acquire_for(10s);
    ASSERT_TRUE(held);
    EXPECT_FALSE(lock.try_acquire_for(300ms)) << "taken, and nodes answer: that is no failure";
}

// Two of three nodes answer after the ttl: what they say then is worth nothing.
TEST_F(redlock_faults, is_not_obtained_when_the_answers_come_after_its_time) {
    redlock lock{*nodes, "name", {.ttl = 200ms, .renew = false, .node_timeout = 20s}};
    for (std::size_t i = 0; i != 3; ++i) proxies[i]->delay(400ms, direction::to_client);
    auto const end = ending_of([&] { static_cast<void>(lock.try_acquire()); });
    EXPECT_EQ(end.reason, errc::unavailable);
    EXPECT_THAT(end.text, HasSubstr("not valid any more"));
}

TEST_F(redlock_faults, counts_its_validity_from_before_the_nodes_were_asked) {
    redlock lock{*nodes, "name", {.ttl = 3s, .renew = false, .node_timeout = 20s}};
    for (auto& one : proxies) one->delay(500ms, direction::to_client);
    auto const held = lock.try_acquire();
    ASSERT_TRUE(held);
    EXPECT_LE(held->remaining(), 2'500ms) << "half a second has passed since the nodes began to count";
}

TEST_F(redlock_faults, delays_of_one_node_beyond_the_ttl_do_not_matter) {
    proxies[4]->delay(4s);
    redlock lock{*nodes, "name", steady};
    redlock other{others, "name", steady};
    for (int i = 0; i != 5; ++i) {
        auto held = lock.acquire();
        EXPECT_FALSE(other.try_acquire());
        held.release();
    }
    auto held = lock.acquire();
    EXPECT_FALSE(other.try_acquire_for(4s));
    EXPECT_TRUE(held.valid());
    held.release();
    EXPECT_TRUE(eventually([&] { return servers.that_have("name") == 0; }, 20s)) << "the slow node keeps what nobody holds";
}

TEST_F(redlock_faults, releases_where_the_reply_was_lost) {
    redlock lock{*nodes, "name", {.ttl = 60s}};
    for (std::size_t i = 0; i != 3; ++i) proxies[i]->drop_replies(1);  // they have it, and we do not know
    auto const end = ending_of([&] { static_cast<void>(lock.try_acquire()); });
    EXPECT_EQ(end.reason, errc::unavailable);
    for (std::size_t i = 0; i != 3; ++i) EXPECT_EQ(proxies[i]->counters().struck, 1U);
    EXPECT_TRUE(eventually([&] { return servers.that_have("name") == 0; })) << "it stays locked for a minute";
}

TEST_F(redlock_faults, is_held_although_replies_of_a_minority_were_lost) {
    redlock lock{*nodes, "name", steady};
    redlock other{others, "name", steady};
    for (std::size_t i = 0; i != 2; ++i) proxies[i]->drop_replies(1);
    auto held = lock.acquire();
    EXPECT_FALSE(other.try_acquire_for(4s));
    EXPECT_TRUE(held.valid());
    EXPECT_TRUE(eventually([&] { return servers.that_have("name", held.token()) == 5; })) << "no extension got there";
    for (auto& one : proxies) one->drop_replies(1);
    held.release();  // repeated: success
    EXPECT_TRUE(eventually([&] { return servers.that_have("name") == 0; }));
}

// Nodes have carried it out, and nobody heard of it.
TEST_F(redlock_faults, ends_as_early_as_an_extension_to_less_that_was_not_answered) {
    for (std::size_t i = 0; i != 5; ++i) servers[i].must({"SCRIPT", "LOAD", std::string{scripts::compare_and_extend.text}});
    redlock lock{*nodes, "name", {.ttl = 60s, .renew = false, .node_timeout = 200ms}};
    redlock other{others, "name"};
    auto held = lock.acquire();
    auto const stop = held.stop_token();
    EXPECT_TRUE(eventually([&] { return servers.that_have("name", held.token()) == 5; }));
    for (std::size_t i = 0; i != 3; ++i) proxies[i]->hold(direction::to_client);
    EXPECT_EQ(ending_of([&] { held.extend(2s); }).reason, errc::unavailable);
    EXPECT_LE(held.remaining(), 2s);
    auto const next = other.acquire();
    EXPECT_FALSE(held.valid()) << "two have it";
    EXPECT_TRUE(eventually([&] { return stop.stop_requested(); }));
}

TEST_F(redlock_faults, ends_as_early_as_an_extension_to_less_whose_answers_are_on_their_way) {
    redlock lock{*nodes, "name", {.ttl = 60s, .renew = false, .node_timeout = 20s}};
    redlock other{others, "name"};
    auto held = lock.acquire();
    EXPECT_TRUE(eventually([&] { return servers.that_have("name", held.token()) == 5; }));
    for (auto& one : proxies) one->delay(5s, direction::to_client);
    begun<bool> extends{as_true(held.async_extend(500ms))};
    auto const next = other.acquire();
    EXPECT_FALSE(held.valid()) << "two have it";
    EXPECT_EQ(ending_of([&] { static_cast<void>(extends.get()); }).reason, errc::lease_lost);
}

// A copy of what was sent on a connection that broke may run later. Nobody can tell, so the release is sent twice where that is possible.
TEST_F(redlock_faults, is_released_twice_where_something_may_run_late) {
    std::vector<std::unique_ptr<monitor>> watches;
    for (std::size_t i = 0; i != 5; ++i) {
        servers[i].must({"SCRIPT", "LOAD", std::string{scripts::compare_and_delete.text}});
        watches.push_back(std::make_unique<monitor>(servers[i]));
    }
    auto const releases = [&](std::size_t node, std::string const& token) {
        return watches[node]->times_of(scripts::compare_and_delete.sha1, token).size();
    };
    redlock lock{*nodes, "name", {.ttl = 60s, .renew = false}};
    proxies[0]->drop_replies(1);
    auto held = lock.acquire();
    auto const token = held.token();
    EXPECT_TRUE(eventually([&] { return servers.that_have("name", token) == 5; }));
    held.release();
    EXPECT_TRUE(eventually([&] { return releases(0, token) == 2; }));
    for (std::size_t i = 1; i != 5; ++i) EXPECT_EQ(releases(i, token), 1U) << "without need";

    redlock_nodes const alone{proxies[1]->url()};
    connect(alone);
    redlock fenced{alone, "name", {.ttl = 60s, .renew = false, .node_timeout = 10s, .fence = true}};
    proxies[1]->drop_replies(1);
    held = fenced.acquire();  // a script, which is sent again and answered
    auto const other = held.token();
    held.release();
    EXPECT_TRUE(eventually([&] { return releases(1, other) == 2; })) << "the first copy of a script may run late too";
}

// Its number is made of what a majority said, and meanwhile they know of a larger one.
TEST_F(redlock_faults, proposes_another_fence_when_a_majority_refuses_the_first) {
    redlock lock{*nodes, "name", {.ttl = 60s, .node_timeout = 30s, .fence = true}};
    for (auto& one : proxies) one->delay(2s, direction::to_client);
    begun<redlock_lease> waits{lock.async_acquire()};
    EXPECT_TRUE(eventually([&] { return servers.that_have("name") == 5; }));
    auto const larger = std::uint64_t{1} << 52;
    for (std::size_t i = 0; i != 3; ++i) servers[i].must({"SET", "lockstep:{name}:redlock-fence", std::to_string(larger)});
    auto const held = waits.get();
    EXPECT_EQ(held.fence(), larger + 1);
    EXPECT_GE(servers.that_have("lockstep:{name}:redlock-fence", std::to_string(larger + 1)), 3U);
}

// One node forgot it and one refuses to answer: they may be two of three that had it, or one of two.
TEST_F(redlock_faults, is_not_called_lost_when_too_few_answer_to_know) {
    redlock_nodes const three{proxies[0]->url(), proxies[1]->url(), proxies[2]->url()};
    connect(three);
    redlock lock{three, "name", {.ttl = 60s, .renew = false}};
    auto held = lock.acquire();
    EXPECT_TRUE(eventually([&] { return servers.that_have("name", held.token()) == 3; }));
    servers[1].must({"CONFIG", "SET", "min-replicas-to-write", "1"});
    servers[2].must({"DEL", "name"});
    EXPECT_EQ(ending_of([&] { held.release(); }).reason, errc::unavailable);
    servers[1].must({"CONFIG", "SET", "min-replicas-to-write", "0"});

    held = lock.acquire();  // by two: what was not released is still there
    EXPECT_TRUE(eventually([&] { return servers.that_have("name", held.token()) == 2; }));
    for (std::size_t i = 0; i != 3; ++i) servers[i].must({"DEL", "name"});
    EXPECT_EQ(ending_of([&] { held.release(); }).reason, errc::lease_lost);
}

TEST_F(redlock_faults, takes_a_node_again_that_restarted_empty) {
    redlock lock{*nodes, "name", steady};
    auto held = lock.acquire();
    auto const token = held.token();
    for (std::size_t i = 0; i != 5; ++i) {  // one after the other, more than a majority in the end
        servers[i].restart();
        EXPECT_TRUE(eventually([&] { return servers.that_have("name", token) == 5; })) << "the quorum erodes";
        EXPECT_TRUE(held.valid());
    }
}

// Somebody else may have had it meanwhile, and have released it.
TEST_F(redlock_faults, is_lost_when_a_majority_forgot_it_although_nobody_has_it) {
    redlock lock{*nodes, "name", {.ttl = 60s, .renew_every = 100ms}};
    auto held = lock.acquire();
    auto const stop = held.stop_token();
    EXPECT_TRUE(eventually([&] { return servers.that_have("name", held.token()) == 5; }));
    for (std::size_t i = 0; i != 3; ++i) servers[i].must({"DEL", "name"});
    EXPECT_TRUE(eventually([&] { return stop.stop_requested(); }));
    EXPECT_FALSE(held.valid());
    EXPECT_EQ(ending_of([&] { held.release(); }).reason, errc::lease_lost);
    EXPECT_TRUE(eventually([&] { return servers.that_have("name") == 0; }));
}

TEST_F(redlock_faults, is_lost_when_the_only_node_forgot_it) {
    redlock_nodes const alone{proxies[0]->url()};
    for (bool const fenced : {false, true}) {
        redlock lock{alone, "name", {.ttl = 60s, .renew_every = 100ms, .fence = fenced}};
        auto held = lock.acquire();
        auto const stop = held.stop_token();
        servers[0].must({"DEL", "name"});
        EXPECT_TRUE(eventually([&] { return stop.stop_requested(); }));
        EXPECT_FALSE(held.valid());
        EXPECT_EQ(ending_of([&] { held.extend(60s); }).reason, errc::lease_lost);
        EXPECT_EQ(servers.that_have("name"), 0U) << "it was made again";
    }
}

// Two of five are silent, and one forgot. That one has it again, and without it there is no majority that shows that nobody else had it.
TEST_F(redlock_faults, does_not_count_a_node_that_was_taken_again_without_a_majority_beside_it) {
    redlock lock{*nodes, "name", {.ttl = 3s, .renew_every = 100ms}};
    auto held = lock.acquire();
    EXPECT_TRUE(eventually([&] { return servers.that_have("name", held.token()) == 5; }));
    proxies[3]->hold();
    proxies[4]->hold();
    servers[0].must({"DEL", "name"});
    EXPECT_TRUE(eventually([&] { return servers[0].must({"GET", "name"}).text == held.token(); })) << "it is not taken again";
    EXPECT_TRUE(eventually([&] { return !held.valid(); }));
}

// Had somebody else had it, a larger fence would be known there.
TEST_F(redlock_faults, counts_a_node_that_was_taken_again_with_a_fence) {
    auto how = steady;
    how.fence = true;
    redlock lock{*nodes, "name", how};
    auto held = lock.acquire();
    EXPECT_TRUE(eventually([&] { return servers.that_have("name", held.token()) == 5; }));
    proxies[3]->hold();
    proxies[4]->hold();
    servers[0].must({"DEL", "name", "lockstep:{name}:redlock-fence"});
    EXPECT_FALSE(eventually([&] { return !held.valid(); }, 4s)) << "more than its ttl";
    EXPECT_EQ(servers[0].must({"GET", "lockstep:{name}:redlock-fence"}).text, std::to_string(held.fence()));
    servers[1].must({"DEL", "name"});
    servers[1].must({"SET", "lockstep:{name}:redlock-fence", std::to_string(held.fence() + 1)});
    EXPECT_TRUE(eventually([&] { return !held.valid(); })) << "there somebody else had it";
    for (auto& one : proxies) one->heal();
}

// Nothing of ours can be there, so nothing is owed when it comes back.
TEST_F(redlock_faults, releases_nothing_where_nothing_was_ever_sent) {
    redlock_nodes const late{servers.urls()};
    servers[4].kill9();
    connect(late);
    redlock lock{late, "name", {.ttl = 60s, .renew = false}};
    redlock taken{late, "taken", {.ttl = 60s}};
    auto const holder = redlock{others, "taken", {.ttl = 60s}}.acquire();
    for (int i = 0; i != 50; ++i) {
        lock.acquire().release();
        EXPECT_FALSE(taken.try_acquire());
    }
    servers[4].restart();
    EXPECT_TRUE(eventually([&] {
        auto const held = lock.acquire();
        return eventually([&] { return servers[4].must({"GET", "name"}).text == held.token(); }, 100ms);
    }));
    EXPECT_TRUE(eventually([&] { return servers.that_have("name") == 0; }));
    EXPECT_LT(calls_of(servers[4], "evalsha") + calls_of(servers[4], "eval"), 25) << "of a hundred";
}

TEST_F(redlock_faults, does_not_take_a_node_again_where_it_is_somebody_elses) {
    redlock lock{*nodes, "name", steady};
    auto held = lock.acquire();
    EXPECT_TRUE(eventually([&] { return servers.that_have("name", held.token()) == 5; }));
    servers[1].must({"SET", "name", "foreign", "PX", "60000"});
    EXPECT_TRUE(eventually([&] { return calls_of(servers[1], "evalsha") + calls_of(servers[1], "eval") > 6; }));
    EXPECT_TRUE(held.valid());
    EXPECT_EQ(servers.that_have("name", "foreign"), 1U);
    held.release();
    EXPECT_TRUE(eventually([&] { return servers.that_have("name") == 1; }));
    EXPECT_EQ(servers.that_have("name", "foreign"), 1U) << "somebody else's was released";
}

TEST_F(redlock_faults, loses_at_once_what_a_majority_gave_to_others) {
    redlock lock{*nodes, "name", {.ttl = 60s, .renew_every = 100ms}};
    auto held = lock.acquire();
    auto const stop = held.stop_token();
    for (std::size_t i = 0; i != 3; ++i) servers[i].must({"SET", "name", "foreign", "PX", "60000"});
    EXPECT_TRUE(eventually([&] { return stop.stop_requested(); }));
    EXPECT_FALSE(held.valid());
    EXPECT_TRUE(eventually([&] { return servers.that_have("name") == 3; })) << "it keeps what is of no use to it";
    EXPECT_EQ(servers.that_have("name", "foreign"), 3U);
}

TEST_F(redlock_faults, tells_most_nodes_refusal_from_a_lock_that_is_taken) {
    for (std::size_t i = 0; i != 3; ++i) servers[i].must({"CONFIG", "SET", "min-replicas-to-write", "1"});
    redlock lock{*nodes, "name", brief};
    auto const end = ending_of([&] { static_cast<void>(lock.acquire()); });
    EXPECT_EQ(end.reason, errc::server);
    EXPECT_THAT(end.text, HasSubstr("NOREPLICAS"));
}

TEST_F(redlock_faults, trips_the_token_while_the_io_thread_hangs) {
    redlock lock{*nodes, "name", brief};
    auto held = lock.acquire();
    auto const stop = held.stop_token();
    std::atomic<bool> go_on = false;
    begun<redlock_lease> blocks{[](redlock by, std::atomic<bool>& until) -> task<redlock_lease> {
        auto got = co_await by.async_acquire();
        while (!until) std::this_thread::yield();  // on the I/O thread, which must not
        co_return got;
    }(redlock{*nodes, "another"}, go_on)};
    EXPECT_TRUE(eventually([&] { return stop.stop_requested(); }));
    EXPECT_FALSE(held.valid());
    go_on = true;
    static_cast<void>(blocks.get());
}

// Their answers take a while. One after the other, the last would be asked after four of these.
TEST_F(redlock_faults, asks_all_nodes_at_once) {
    std::vector<std::unique_ptr<monitor>> watches;
    for (std::size_t i = 0; i != 5; ++i) watches.push_back(std::make_unique<monitor>(servers[i]));
    for (auto& one : proxies) one->delay(1s, direction::to_client);
    redlock lock{*nodes, "name", {.ttl = 60s, .node_timeout = 30s}};
    auto const held = lock.acquire();
    std::vector<std::chrono::microseconds> asked;
    for (auto& one : watches) {
        auto const times = one->times_of("SET", "name");
        ASSERT_EQ(times.size(), 1U);
        asked.push_back(times.front());
    }
    EXPECT_LT(*std::max_element(asked.begin(), asked.end()) - *std::min_element(asked.begin(), asked.end()), 1s);
}

TEST_F(redlock_faults, one_round_trip_per_node_and_operation) {
    redlock lock{*nodes, "name"};
    // On all nodes, also on those that are not waited for.
    auto const take_and_release = [&] {
        auto held = lock.acquire();
        EXPECT_TRUE(eventually([&] { return servers.that_have("name", held.token()) == 5; }));
        held.release();
        EXPECT_TRUE(eventually([&] { return servers.that_have("name") == 0; }));
    };
    for (std::size_t i = 0; i != 5; ++i) servers[i].must({"SCRIPT", "LOAD", std::string{scripts::compare_and_delete.text}});
    take_and_release();  // nothing from before is on its way
    for (std::size_t i = 0; i != 5; ++i) servers[i].must({"CONFIG", "RESETSTAT"});
    for (int i = 0; i != 10; ++i) take_and_release();
    for (std::size_t i = 0; i != 5; ++i) {
        EXPECT_EQ(calls_of(servers[i], "set"), 10);
        EXPECT_EQ(calls_of(servers[i], "evalsha"), 10);
        EXPECT_EQ(calls_of(servers[i], "eval"), 0);
    }
}

}  // namespace
}  // namespace lockstep::test
