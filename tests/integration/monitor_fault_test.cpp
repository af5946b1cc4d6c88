// What a monitor makes of the dead, the sleeping and those who say nothing.
#include "lease_fault_support.hpp"

#include <lockstep/counting_semaphore.hpp>
#include <lockstep/monitor.hpp>
#include <lockstep/mutex.hpp>

#include <algorithm>

namespace lockstep::test {
namespace {

class monitor_of_the_dead : public testing::Test {
protected:
    std::optional<hold_info> seen() {
        auto const holds = eye.active("name");
        if (holds.empty()) return std::nullopt;
        return holds[0];
    }
    bool is_known() {
        auto const now = seen();
        return now && !now->owner.name.empty();
    }

    redis_server server;
    client by{server.url()};
    lockstep::monitor eye{by};
};

TEST_F(monitor_of_the_dead, a_hold_is_stale_when_its_process_was_killed_and_can_be_released_without_force) {
    holder_process holder{kind::mutex, server.url(), 60'000ms};
    auto const fence = holder.acquire();
    ASSERT_TRUE(eventually([&] { return is_known(); }, 20s));
    EXPECT_FALSE(seen()->stale);
    EXPECT_THROW(eye.release(*seen()), invalid_argument_error);
    ASSERT_TRUE(eventually([&] { return eye.active().size() == 1; }, 12s)) << "the server was told of it";
    holder.process.kill();
    ASSERT_TRUE(eventually([&] { return seen() && seen()->stale; }, 40s));
    EXPECT_FALSE(seen()->owner.connected);
    auto const stale = eye.stale();
    ASSERT_EQ(stale.size(), 1U);
    EXPECT_TRUE(eye.release(stale[0]));
    auto const next = mutex(by, "name").try_acquire();
    ASSERT_TRUE(next);
    EXPECT_GT(next->fence(), fence);
    EXPECT_EQ(eye.audit().at(0).action, "release");
}

TEST_F(monitor_of_the_dead, a_hold_is_not_stale_while_its_process_only_sleeps_for_a_moment_or_reconnects) {
    holder_process holder{kind::mutex, server.url(), 60'000ms};
    holder.acquire();
    ASSERT_TRUE(eventually([&] { return is_known(); }, 20s));
    server.must({"CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"});
    server.must({"CLIENT", "KILL", "TYPE", "pubsub"});
    for (int i = 0; i < 20; ++i) EXPECT_FALSE(seen()->stale);
    holder.process.stop();
    for (int i = 0; i < 20; ++i) EXPECT_FALSE(seen()->stale);
    holder.process.cont();
}

TEST_F(monitor_of_the_dead, nobody_is_taken_for_dead_who_never_said_that_he_lived) {
    client silent{{.url = server.url(), .monitoring = false}};
    auto const held = mutex(silent, "name", {.ttl = 2s, .renew = false}).acquire();
    while (auto const now = seen()) {
        EXPECT_EQ(now->owner.name, "");
        EXPECT_FALSE(now->stale) << now->remaining.count() << " ms are left";
    }
    EXPECT_EQ(server.must({"EXISTS", "lockstep:{clients}:index"}).integer, 0) << "nobody else has used anything";
}

TEST_F(monitor_of_the_dead, a_stale_hold_that_is_renewed_meanwhile_is_left_alone) {
    holder_process holder{kind::mutex, server.url(), 60'000ms};
    holder.acquire();
    ASSERT_TRUE(eventually([&] { return is_known(); }, 20s));
    auto const seen_before = *seen();
    holder.process.kill();
    ASSERT_TRUE(eventually([&] { return seen() && seen()->stale; }, 40s));
    auto const key = "lockstep:{name}:lock";
    // As if it had reached the server once more: for the script, the end is not the one that was seen.
    auto const script = std::string{scripts::lock_evict.text};
    auto const refused = server.must({"EVAL", script, "1", key, seen_before.id, "500 3600000 lockstep:wake:", "12345"});
    EXPECT_EQ(refused.elements.at(0).text, "renewed");
    EXPECT_TRUE(seen()) << "it is still held";
}

TEST_F(monitor_of_the_dead, a_watch_says_what_is_wrong_while_the_server_is_away_and_goes_on_afterwards) {
    std::mutex lock;
    std::string trouble = "?";
    auto const last = [&] {
        std::lock_guard const guard{lock};
        return trouble;
    };
    client looking{{.url = server.url(), .command_timeout = 300ms}};
    lockstep::monitor watcher{looking};
    auto const watching = watcher.watch([&](snapshot const& now) {
        std::lock_guard const guard{lock};
        trouble = now.trouble;
    });
    ASSERT_TRUE(eventually([&] { return last().empty(); }));
    server.stop();
    EXPECT_TRUE(eventually([&] { return !last().empty() && last() != "?"; }, 20s));
    server.cont();
    EXPECT_TRUE(eventually([&] { return last().empty(); }, 20s));
}

TEST_F(monitor_of_the_dead, a_watch_ends_with_its_client_and_can_be_stopped_in_its_own_handler) {
    std::atomic<int> calls{0};
    lockstep::watch watching;
    {
        client looking{server.url()};
        lockstep::monitor watcher{looking};
        std::mutex lock;
        std::unique_lock begun{lock};
        watching = watcher.watch([&](snapshot const&) {
            ++calls;
            std::lock_guard const guard{lock};
            watching.stop();
        });
        begun.unlock();
        ASSERT_TRUE(eventually([&] { return calls == 1; }));
        auto const held = mutex(by, "name").acquire();
        EXPECT_EQ(eye.active("name").size(), 1U);
        EXPECT_EQ(calls, 1);
        watching = watcher.watch([&](snapshot const&) { ++calls; });
    }
    watching.stop();
}

TEST_F(monitor_of_the_dead, reading_takes_small_steps) {
    // In one go, so many holds and waiters would keep the server for a while.
    std::vector<std::string> words{"EVAL",
                                   "for i = 1, 5000 do redis.call('HSET', 'lockstep:{n' .. i .. '}:lock', 'v', 1, 'o', 'c.' .. i, 'f', ARGV[1], 't', 60000) end "
                                   "return 1",
                                   "0", std::to_string(std::chrono::duration_cast<std::chrono::microseconds>(
                                                           std::chrono::system_clock::now().time_since_epoch()).count())};
    server.must(words);
    server.must({"EVAL", "for i = 1, 5000 do redis.call('ZADD', 'lockstep:{objects/0}:index', 1e13, '{n' .. i .. '}:lock') end return 1", "0"});
    auto many = counting_semaphore::create(by, "many", 4'000);
    std::vector<task<lease>> asked;
    for (int i = 0; i < 1'500; ++i) asked.push_back(many.async_acquire());
    auto const held = sync_wait(when_all(std::move(asked)));
    ASSERT_TRUE(eventually([&] { return eye.active().size() == 6'500; }));
    server.must({"CONFIG", "RESETSTAT"});
    EXPECT_EQ(eye.active().size(), 6'500U);
    // No script may read more than a hundred objects, or 150 holds. (How long that takes, bench_monitor says.)
    auto const counted = server.must({"INFO", "commandstats"}).text;
    auto const calls = counted.find("cmdstat_evalsha_ro:calls=");
    ASSERT_NE(calls, std::string::npos);
    EXPECT_GE(std::stoi(counted.substr(calls + 25)), 50 + 9);
}

}  // namespace
}  // namespace lockstep::test
