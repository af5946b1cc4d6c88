// Which objects there are: an index that clients keep, so that nobody who looks has to look through all keys of the server.
#include "support/contract.hpp"
#include "support/eventually.hpp"
#include "topology_support.hpp"

#include <lockstep/atomic_counter.hpp>
#include <lockstep/job_client.hpp>
#include <lockstep/latch.hpp>
#include <lockstep/leaderboard.hpp>
#include <lockstep/monitor.hpp>
#include <lockstep/mutex.hpp>
#include <lockstep/queue.hpp>
#include <lockstep/rate_limiter.hpp>
#include <lockstep/session_store.hpp>
#include <lockstep/shared_map.hpp>
#include <lockstep/shared_value.hpp>
#include <lockstep/stream.hpp>
#include <lockstep/work_stealing_queue.hpp>

#include <gmock/gmock.h>

#include <set>
#include <string>
#include <vector>

namespace lockstep::test {
namespace {

using testing::IsSupersetOf;

std::vector<std::string> kinds_of(snapshot const& seen) {
    std::vector<std::string> kinds;
    for (auto const& one : seen.objects) kinds.push_back(one.kind);
    return kinds;
}

class object_index_contract : public contract {
protected:
    snapshot look(snapshot_options what = {}) {
        return run(
            c, [&] { return eye.snapshot(what); }, [&] { return eye.async_snapshot(what); });
    }
    bool lists(std::string_view name) {
        auto const seen = look();
        return std::any_of(seen.objects.begin(), seen.objects.end(), [&](object_info const& one) { return one.name == name; });
    }

    client c{{.url = url(), .name = "looks"}};
    lockstep::monitor eye{c};
};
LOCKSTEP_CONTRACT(object_index_contract);

TEST_P(object_index_contract, lists_an_object_of_any_kind_soon_after_its_first_use) {
    auto const held = mutex(a, "a lock {1}").acquire();
    latch(a, "a latch", 2).count_down();
    shared_value<int>(a, "a value").set(1);
    shared_map<int>(a, "a map").set("field", 1);
    atomic_counter(a, "a counter").add(5);
    leaderboard(a, "a board", {.period = leaderboard_period::daily}).add("ada", 1);
    queue<std::string>(a, "a queue").enqueue("item");
    work_stealing_queue<std::string>(a, "lanes", "w1").push("item");
    stream(a, "a stream").add_value(std::string{"entry"});
    job_client(a, "some jobs").schedule("mail", std::string{"one"});
    session_store(a, "a store").create("ada");
    rate_limiter(a, "a limiter", {.limit = 2, .per = 1h}).try_acquire("ada");
    std::vector<std::string> const expected{"lock", "latch", "value", "map", "counter", "board", "queue", "lanes", "stream", "jobs", "sessions", "limiter"};
    EXPECT_TRUE(eventually([&] { return look().objects.size() == expected.size(); }, 12s));
    auto const seen = look();
    EXPECT_THAT(kinds_of(seen), testing::UnorderedElementsAreArray(expected));
    for (auto const& one : seen.objects) {
        bool const is_uncounted = one.kind == "sessions" || one.kind == "limiter";  // only a look through all keys counts them
        if (one.kind == "lock" || one.kind == "breaker") continue;
        EXPECT_EQ(one.count, is_uncounted ? -1 : one.kind == "counter" ? 5 : one.kind == "latch" ? 2 : 1) << one.kind;
        EXPECT_EQ(one.type, one.kind == "jobs" ? "mail" : "");
    }
    ASSERT_EQ(seen.holds.size(), 1U);
    EXPECT_EQ(seen.holds[0].name, "a lock {1}");
    EXPECT_EQ(look({.pattern = "a*"}).objects.size(), 10U);
    EXPECT_EQ(look({.pattern = "some jobs"}).objects.size(), 1U);
}

TEST_P(object_index_contract, does_not_list_what_is_gone_and_finds_what_is_there_at_once_by_its_name) {
    shared_value<int>(a, "name").set(1);
    EXPECT_EQ(look({.name = "name"}).objects.size(), 1U) << "its key is read";
    ASSERT_TRUE(eventually([&] { return lists("name"); }, 12s));
    server.must({"DEL", "lockstep:{name}:value"});
    EXPECT_FALSE(lists("name"));
    EXPECT_EQ(look({.name = "name"}).objects.size(), 0U);
}

TEST_P(object_index_contract, knows_what_a_client_used_that_was_closed_at_once) {
    {
        client brief{{.url = url()}};
        shared_value<int>(brief, "name").set(1);
    }
    EXPECT_TRUE(lists("name"));
}

TEST_P(object_index_contract, is_not_told_by_a_client_without_monitoring_whose_objects_a_scan_finds) {
    {
        client hidden{{.url = url(), .monitoring = false}};
        shared_value<int>(hidden, "name").set(1);
        session_store(hidden, "web").create("ada");
    }
    EXPECT_TRUE(look().objects.empty());
    EXPECT_THAT(kinds_of(look({.name = "name"})), testing::ElementsAre("value"));
    auto const seen = look({.scan = true});
    EXPECT_THAT(kinds_of(seen), testing::ElementsAre("value", "sessions"));
    EXPECT_EQ(seen.objects[1].count, 1);
}

TEST_P(object_index_contract, finds_a_store_and_a_limiter_by_their_names) {
    {
        client brief{{.url = url()}};
        session_store(brief, "web").create("ada");
        rate_limiter(brief, "web", {.limit = 2, .per = 1h}).try_acquire("ada");
    }
    EXPECT_THAT(kinds_of(look({.name = "web"})), testing::ElementsAre("limiter", "sessions"));
}

TEST_P(object_index_contract, shows_the_newest_period_of_a_board_that_is_still_there) {
    auto const add = [&](client& by) { leaderboard{by, "name", {.period = leaderboard_period::weekly}}.add("ada", 1); };
    {
        client brief{{.url = url()}};
        add(brief);
    }
    auto const only = [&] {
        auto const seen = look();
        return seen.objects.size() == 1 ? seen.objects[0] : object_info{};
    };
    EXPECT_EQ(only().count, 1);
    auto const now = server.must({"KEYS", "lockstep:{name}:board:week:*"}).elements;
    for (auto const& key : now) server.must({"DEL", key.text});
    EXPECT_TRUE(look().objects.empty());
}

/// On one server, where its keys and what it runs can be seen.
class object_index : public testing::Test {
protected:
    std::string key_of(std::string_view member_part) {
        for (auto const& key : server.must({"KEYS", "lockstep:{objects/*}:index"}).elements) {
            for (auto const& member : server.must({"ZRANGE", key.text, "0", "-1"}).elements) {
                if (member.text.find(member_part) != std::string::npos) return key.text;
            }
        }
        return {};
    }
    std::optional<double> score_of(std::string const& member) {
        auto const key = key_of(member);
        if (key.empty()) return std::nullopt;
        return std::stod(server.must({"ZSCORE", key, member}).text);
    }
    double time_ms() {
        auto const time = server.must({"TIME"}).elements;
        return std::stod(time[0].text) * 1'000 + std::stod(time[1].text) / 1'000;
    }

    redis_server server;
};

TEST_F(object_index, is_read_without_looking_through_other_keys) {
    server.must({"EVAL", "for i = 1, 20000 do redis.call('SET', 'other:' .. i, i) end return 1", "0"});
    {
        client brief{server.url()};
        shared_value<int>(brief, "name").set(1);
    }
    client by{server.url()};
    server.must({"CONFIG", "RESETSTAT"});
    EXPECT_EQ(lockstep::monitor(by).snapshot().objects.size(), 1U);
    EXPECT_EQ(calls_of(server, "scan"), 0);
    EXPECT_LE(calls_of(server, "zscan"), 16);
    EXPECT_LE(calls_of(server, "evalsha") + calls_of(server, "eval"), 2);
}

TEST_F(object_index, costs_no_call_for_an_object_that_is_used_often) {
    client by{server.url()};
    mutex lock{by, "name"};
    lock.acquire().release();
    ASSERT_TRUE(eventually([&] { return !key_of("{name}:lock").empty(); }));
    server.must({"CONFIG", "RESETSTAT"});
    for (int i = 0; i < 200; ++i) lock.acquire().release();
    EXPECT_EQ(calls_of(server, "zadd"), 0);
}

TEST_F(object_index, expires_much_later_than_what_is_in_it) {
    {
        client brief{server.url()};
        mutex(brief, "leased").acquire().release();
        shared_value<int>(brief, "kept").set(1);
    }
    auto const days = [&](std::string_view member) { return server.must({"PTTL", key_of(member)}).integer / 86'400'000; };
    EXPECT_GE(days("{leased}:lock"), 30);
    EXPECT_LE(days("{leased}:lock"), 31);
    EXPECT_GE(days("{kept}:value"), 365);
}

TEST_F(object_index, loses_what_is_gone_when_a_client_looks_after_it) {
    {
        client brief{server.url()};
        shared_value<int>(brief, "stays").set(1);
        shared_value<int>(brief, "goes").set(1);
        rate_limiter(brief, "past", {.limit = 2, .per = 1h}).try_acquire("ada");
    }
    server.must({"DEL", "lockstep:{goes}:value"});
    for (auto const* const member : {"{stays}:value", "{goes}:value", "{past}:limiter"}) {
        ASSERT_TRUE(score_of(member)) << member;
        EXPECT_GT(*score_of(member), time_ms() + 500'000);
        server.must({"ZADD", key_of(member), std::to_string(static_cast<long long>(time_ms()) - 1'000), member});
    }
    // A client tells of others in the same shards, and so looks after these.
    {
        client brief{server.url()};
        for (int i = 0; i < 200; ++i) atomic_counter(brief, "c" + std::to_string(i)).add();
    }
    client later{server.url()};
    for (int i = 200; i < 400; ++i) atomic_counter(later, "c" + std::to_string(i)).add();
    EXPECT_TRUE(eventually([&] { return !score_of("{goes}:value"); }, 20s));
    EXPECT_TRUE(eventually([&] { return score_of("{stays}:value").value_or(0) > time_ms() + 500'000; }, 20s));
    EXPECT_TRUE(eventually([&] { return !score_of("{past}:limiter"); }, 20s));
}

TEST_F(object_index, is_told_again_of_what_is_held_when_a_server_has_lost_it) {
    client by{server.url()};
    auto const held = mutex(by, "name", {.ttl = 1s}).acquire();
    ASSERT_TRUE(eventually([&] { return !key_of("{name}:lock").empty(); }));
    server.must({"DEL", key_of("{name}:lock")});
    for (auto const* const type : {"normal", "pubsub"}) server.must({"CLIENT", "KILL", "TYPE", type, "SKIPME", "yes"});
    EXPECT_TRUE(eventually([&] { return !key_of("{name}:lock").empty(); }, 20s)) << "its renewals tell";
    EXPECT_TRUE(held.valid());
}

TEST_F(object_index, is_told_of_many_objects_in_small_steps) {
    constexpr int names = 6'000;
    client by{server.url()};
    for (int i = 0; i < names; ++i) atomic_counter(by, "c" + std::to_string(i)).get();
    auto const count = [&] {
        int sum = 0;
        for (auto const& key : server.must({"KEYS", "lockstep:{objects/*}:index"}).elements) sum += static_cast<int>(server.must({"ZCARD", key.text}).integer);
        return sum;
    };
    EXPECT_TRUE(eventually([&] { return count() == names; }, 12s)) << count();
    EXPECT_GE(calls_of(server, "zadd"), names / 100) << "a hundred at a time";
}

}  // namespace
}  // namespace lockstep::test
