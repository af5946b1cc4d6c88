// What a near cache promises, in both forms on every topology; then under faults.
#include <lockstep/near_cache.hpp>
#include <lockstep/shared_value.hpp>

#include "state_support.hpp"

#include <atomic>
#include <mutex>
#include <thread>
#include <utility>

namespace lockstep::test {
namespace {

using cache = near_cache<std::string>;
using text = shared_value<std::string>;

std::string const key = "lockstep:{name}:value";

std::string value_of(cache::result const& found) { return found ? found->value : "(none)"; }

class near_cache_contract : public contract {
protected:
    cache::result get(cache const& from, std::string const& name = "name") {
        return run(
            a, [&] { return from.get(name); }, [&] { return from.async_get(name); });
    }
    bool sees(cache const& from, std::string const& what) {
        return eventually([&] { return value_of(get(from)) == what; });
    }

    text value{b, "name"};
    cache near{a};
};
LOCKSTEP_CONTRACT(near_cache_contract);

TEST_P(near_cache_contract, asks_once_and_then_no_more) {
    auto const version = value.set("one");
    EXPECT_EQ(value_of(get(near)), "one");
    EXPECT_EQ(get(near)->version, version);
    server.must({"CONFIG", "RESETSTAT"});
    for (int i = 0; i < 1000; ++i) EXPECT_EQ(value_of(get(near)), "one");
    EXPECT_EQ(calls_of(server, "evalsha_ro") + calls_of(server, "eval_ro"), 0);
    EXPECT_EQ(near.statistics().misses, 1U);
    EXPECT_EQ(near.statistics().hits, 1001U);
    EXPECT_EQ(near.statistics().entries, 1U);
}

TEST_P(near_cache_contract, hears_of_every_kind_of_change) {
    value.set("one");
    EXPECT_EQ(value_of(get(near)), "one");
    value.set("two");
    EXPECT_TRUE(sees(near, "two"));
    value.compare_and_set(get(near)->version, "three");
    EXPECT_TRUE(sees(near, "three"));
    value.erase();
    EXPECT_TRUE(sees(near, "(none)"));
    value.set("four");
    EXPECT_TRUE(sees(near, "four"));
    server.must({"DEL", key});
    EXPECT_TRUE(sees(near, "(none)"));
    value.set("five");
    EXPECT_TRUE(sees(near, "five")) << "also when nothing was there at all";
    server.must({"FLUSHALL"});
    EXPECT_TRUE(sees(near, "(none)"));
    EXPECT_GE(near.statistics().invalidations, 5U);
}

TEST_P(near_cache_contract, looks_when_it_is_awaited_not_when_it_is_called) {
    value.set("one");
    EXPECT_EQ(value_of(get(near)), "one");
    auto reading = near.async_get(std::string{"name"});
    value.set("two");
    EXPECT_TRUE(sees(near, "two"));
    EXPECT_EQ(value_of(sync_wait(std::move(reading))), "two");
}

TEST_P(near_cache_contract, keeps_nothing_longer_than_its_ttl_or_the_largest_age) {
    value.set("brief", {.ttl = 1s});
    EXPECT_EQ(value_of(get(near)), "brief");
    EXPECT_TRUE(sees(near, "(none)"));
    cache aging{a, {.max_age = 30ms}};
    value.set("one");
    EXPECT_EQ(value_of(get(aging)), "one");
    EXPECT_TRUE(eventually([&] {
        static_cast<void>(get(aging));
        return aging.statistics().misses >= 3;
    }));
}

TEST_P(near_cache_contract, can_forget_and_is_bounded) {
    value.set("one");
    static_cast<void>(get(near));
    near.forget("name");
    static_cast<void>(get(near));
    EXPECT_EQ(near.statistics().misses, 2U);
    cache small{a, {.max_entries = 32}};
    for (int i = 0; i < 200; ++i) {
        auto const name = std::to_string(i);
        text{b, name}.set(name);
        EXPECT_EQ(value_of(get(small, name)), name);
    }
    EXPECT_LE(small.statistics().entries, 32U);
    EXPECT_GE(small.statistics().evictions, 100U);
    EXPECT_EQ(ending_of([&] { cache(a, {.max_entries = 15}); }).reason, errc::invalid_argument);
    EXPECT_EQ(ending_of([&] { cache(a, {.max_age = 0ms}); }).reason, errc::invalid_argument);
    EXPECT_EQ(ending_of([&] { static_cast<void>(get(small, "")); }).reason, errc::invalid_argument);
}

TEST_P(near_cache_contract, does_not_keep_what_changes_while_it_is_read) {
    // A writer at full speed: once it has stopped, what the cache has is what it wrote last.
    for (int round = 0; round < 5; ++round) {
        std::atomic<bool> done = false;
        std::thread reader{[&] {
            while (!done) static_cast<void>(near.get("name"));
        }};
        std::string last;
        for (int i = 0; i < 100; ++i) value.set(last = std::to_string(round) + '.' + std::to_string(i));
        done = true;
        reader.join();
        EXPECT_TRUE(sees(near, last));
        EXPECT_TRUE(eventually([&] {
            auto const misses = near.statistics().misses;
            EXPECT_EQ(value_of(get(near)), last);
            return near.statistics().misses == misses;
        })) << "and it is kept";
    }
}

TEST_P(near_cache_contract, serves_nothing_after_the_client_was_closed) {
    value.set("one");
    static_cast<void>(get(near));
    a.close();
    EXPECT_EQ(ending_of([&] { static_cast<void>(near.get("name")); }).reason, errc::cancelled);
}

TEST_P(near_cache_contract, answers_where_blocking_is_not_allowed_if_it_can) {
    value.set("one");
    EXPECT_EQ(ending_of([&] { sync_wait(in_turn_of(a, [&] { return near.get("name"); })); }).reason, errc::would_deadlock);
    static_cast<void>(get(near));
    EXPECT_EQ(value_of(sync_wait(in_turn_of(a, [&] { return near.get("name"); }))), "one");
}

class near_cache_faults : public testing::Test {
protected:
    redis_server server;
    fault_proxy proxy{server.address()};
    client writer{server.url()};
    client reader{proxy.url()};
    text value{writer, "name"};
    cache near{reader};
};

TEST_F(near_cache_faults, forgets_everything_when_the_connection_is_lost) {
    value.set("before");
    EXPECT_EQ(value_of(near.get("name")), "before");
    proxy.refuse();
    proxy.cut();
    value.set("meanwhile");
    EXPECT_TRUE(eventually([&] { return near.statistics().entries == 0; }));
    proxy.heal();
    EXPECT_EQ(value_of(near.get("name")), "meanwhile");
    value.set("after");
    EXPECT_TRUE(eventually([&] { return value_of(near.get("name")) == "after"; })) << "the new connection is tracked too";
}

TEST_F(near_cache_faults, a_reply_that_comes_after_the_word_of_a_change_is_not_kept) {
    value.set("old");
    EXPECT_EQ(value_of(near.get("name")), "old");
    near.forget("name");
    // The server answers "old" and then tells of the change; both arrive together, and what is kept must be neither older nor missing its word.
    proxy.hold(direction::to_client);
    begun reading{near.async_get("name")};
    ASSERT_TRUE(eventually([&] { return calls_of(server, "evalsha_ro") + calls_of(server, "eval_ro") >= 3; }));
    value.set("new");
    proxy.heal();
    static_cast<void>(reading.get());
    EXPECT_TRUE(eventually([&] { return value_of(near.get("name")) == "new"; }));
    EXPECT_EQ(value_of(near.get("name")), "new");
}

TEST_F(near_cache_faults, those_who_miss_the_same_value_at_the_same_time_ask_once) {
    value.set("one");
    EXPECT_EQ(value_of(near.get("name")), "one");  // and the script is known
    for (std::string const next : {"two", "three"}) {
        value.set(next);
        ASSERT_TRUE(eventually([&] { return near.statistics().entries == 0; }));
        auto const misses = near.statistics().misses;
        auto const before = calls_of(server, "evalsha_ro");
        proxy.hold(direction::to_client);
        std::stop_source stop;
        begun first{with_stop_token(near.async_get("name"), stop.get_token())};
        std::vector<begun<cache::result>> readers;
        for (int i = 0; i < 64; ++i) readers.emplace_back(near.async_get("name"));
        ASSERT_TRUE(eventually([&] { return calls_of(server, "evalsha_ro") > before; }));
        run_turn(reader);
        stop.request_stop();
        EXPECT_EQ(ending_of([&] { static_cast<void>(first.get()); }).reason, errc::cancelled) << "at once, although it was the one that asked";
        proxy.heal();
        for (auto& one : readers) EXPECT_EQ(value_of(one.get()), next);
        EXPECT_EQ(near.statistics().misses, misses + 1);
        EXPECT_EQ(calls_of(server, "evalsha_ro"), before + 1);
    }
}

TEST_F(near_cache_faults, who_misses_a_value_after_it_was_forgotten_does_not_wait_for_what_was_asked_before) {
    value.set("one");
    EXPECT_EQ(value_of(near.get("name")), "one");
    near.forget("name");
    proxy.hold(direction::to_client);
    auto const before = calls_of(server, "evalsha_ro");
    begun early{near.async_get("name")};
    ASSERT_TRUE(eventually([&] { return calls_of(server, "evalsha_ro") == before + 1; }));
    near.forget("name");
    begun late{near.async_get("name")};
    EXPECT_TRUE(eventually([&] { return calls_of(server, "evalsha_ro") == before + 2; }));
    proxy.heal();
    EXPECT_EQ(value_of(early.get()), "one");
    EXPECT_EQ(value_of(late.get()), "one");
}

TEST_F(near_cache_faults, all_who_wait_for_the_same_read_fail_as_it_does) {
    server.must({"SET", key, "of another type"});
    proxy.hold(direction::to_client);
    std::vector<begun<cache::result>> readers;
    for (int i = 0; i < 8; ++i) readers.emplace_back(near.async_get("name"));
    run_turn(reader);
    proxy.heal();
    for (auto& one : readers) EXPECT_EQ(ending_of([&] { static_cast<void>(one.get()); }).reason, errc::server);
    EXPECT_EQ(near.statistics().misses, 1U);
    server.must({"DEL", key});
    value.set("one");
    EXPECT_EQ(value_of(near.get("name")), "one");
}

TEST_F(near_cache_faults, says_that_the_user_may_not_track) {
    server.must({"ACL", "SETUSER", "limited", "on", ">secret", "~*", "&*", "+@all", "-client|tracking"});
    client limited{{.url = server.url(), .user = "limited", .password = "secret"}};
    cache refused{limited};
    auto const end = ending_of([&] { static_cast<void>(refused.get("name")); });
    EXPECT_EQ(end.reason, errc::unsuitable_server);
    EXPECT_EQ(end.text.find("secret"), std::string::npos);
}

TEST(near_cache_on_a_cluster, hears_of_changes_after_its_slot_has_moved) {
    cluster nodes{{.masters = 3, .replicas_per_master = 0}};
    client a{{.url = nodes.url(), .command_timeout = 40s}};
    client b{{.url = nodes.url(), .command_timeout = 40s}};
    text value{a, "name"};
    cache near{b};
    value.set("one");
    EXPECT_EQ(value_of(near.get("name")), "one");
    EXPECT_EQ(value_of(near.get("absent")), "(none)");
    auto const absent = slot_of("lockstep:{absent}:value");
    auto const slot = slot_of(key);
    nodes.migrate_slot(slot, (nodes.owner_of(slot) + 1) % 3);
    nodes.migrate_slot(absent, (nodes.owner_of(absent) + 1) % 3);
    value.set("two");
    text{a, "absent"}.set("here");
    EXPECT_TRUE(eventually([&] { return value_of(near.get("name")) == "two"; }));
    EXPECT_TRUE(eventually([&] { return value_of(near.get("absent")) == "here"; }));
    value.set("three");
    EXPECT_TRUE(eventually([&] { return value_of(near.get("name")) == "three"; }));
}

TEST(near_cache_on_a_cluster, keeps_what_it_has_when_the_map_is_read_again) {
    cluster nodes;  // with replicas, which are seeds here
    client a{{.url = nodes.url(), .command_timeout = 40s}};
    client b{{.url = nodes.url(), .command_timeout = 40s}};
    text value{a, "name"};
    text moving{a, "moving"};
    cache near{b};
    value.set("one");
    EXPECT_EQ(value_of(near.get("name")), "one");
    auto const slot = slot_of("lockstep:{moving}:value");
    auto const maps_read = [&] {
        long sum = 0;
        for (std::size_t i = 0; i < nodes.size(); ++i) sum += calls_of(nodes.node(i), "cluster|slots");
        return sum;
    };
    for (int round = 0; round < 3; ++round) {
        moving.set(std::to_string(round));
        EXPECT_TRUE(eventually([&] { return value_of(near.get("moving")) == std::to_string(round); }));
        nodes.migrate_slot(slot, (nodes.owner_of(slot) + 1) % 3);
        auto const before = maps_read();
        near.forget("moving");
        EXPECT_EQ(value_of(near.get("moving")), std::to_string(round)) << "it is sent on, and the map is read";
        EXPECT_TRUE(eventually([&] { return maps_read() > before; }));
    }
    auto const misses = near.statistics().misses;
    EXPECT_EQ(value_of(near.get("name")), "one");
    EXPECT_EQ(near.statistics().misses, misses) << "no node went that it was read from";
    value.set("two");
    EXPECT_TRUE(eventually([&] { return value_of(near.get("name")) == "two"; }));
}

TEST(near_cache_with_sentinel, hears_of_changes_after_a_failover) {
    sentinel_group group{{.replicas = 1}};
    client a{{.url = group.sentinel_url(), .command_timeout = 40s}};
    text value{a, "name"};
    cache near{a};
    value.set("one");
    EXPECT_EQ(value_of(near.get("name")), "one");
    ASSERT_TRUE(eventually([&] { return group.server(1).must({"HGET", key, "d"}).text == "one"; })) << "also at the replica";
    group.failover();
    value.set("two");
    EXPECT_TRUE(eventually([&] { return value_of(near.get("name")) == "two"; }));
}

TEST(near_cache_room, is_made_by_those_that_came_first_and_were_not_used) {
    redis_server server;
    client a{server.url()};
    cache near{a, {.max_entries = 640}};  // 40 in each of 16 parts
    auto const name_of = [](int i) { return "n" + std::to_string(i); };
    auto const read = [&](int from, int until) {
        auto const misses = near.statistics().misses;
        for (int i = from; i < until; ++i) static_cast<void>(near.get(name_of(i)));
        return near.statistics().misses - misses;
    };
    EXPECT_EQ(read(0, 2000), 2000U);
    EXPECT_EQ(near.statistics().entries, 640U);
    EXPECT_EQ(read(1960, 2000), 0U) << "the latest are all here, wherever they are kept";
    EXPECT_EQ(read(0, 100), 100U) << "and the first are not";
    // Those that are read again and again stay, however many others come.
    read(2000, 2030);
    for (int i = 3000; i < 4000; i += 10) {
        read(i, i + 10);
        EXPECT_EQ(read(2000, 2030), 0U);
    }
    // Also after some were forgotten and others came in their place.
    for (int i = 2000; i < 2030; i += 2) near.forget(name_of(i));
    near.forget(name_of(2000));
    EXPECT_EQ(read(2000, 2030), 15U);
    EXPECT_EQ(read(5000, 7000), 2000U);
    EXPECT_EQ(near.statistics().entries, 640U);
    EXPECT_EQ(read(6960, 7000), 0U);
    server.must({"FLUSHALL"});
    EXPECT_TRUE(eventually([&] { return near.statistics().entries == 0; }));
    EXPECT_EQ(read(0, 2000), 2000U);
    EXPECT_EQ(near.statistics().entries, 640U);
}

// A value that looks at its cache when it ends: that must not be while the cache is locked.
struct curious;
struct curious_codec {
    static std::string encode(curious const& value);
    static curious decode(std::string_view bytes);
};
struct {
    std::mutex mutex;
    near_cache<curious, curious_codec> const* cache = nullptr;
    int ended = 0;
} watched;

struct curious {
    curious() = default;
    curious(curious&& other) noexcept : is_whole(std::exchange(other.is_whole, false)) {}
    curious& operator=(curious&&) = delete;
    inline ~curious();
    bool is_whole = true;
};
std::string curious_codec::encode(curious const&) { return {}; }
curious curious_codec::decode(std::string_view) { return {}; }
curious::~curious() {
    std::lock_guard const guard{watched.mutex};
    if (!is_whole || watched.cache == nullptr) return;
    static_cast<void>(watched.cache->statistics());  // looks at all of it
    ++watched.ended;
}

TEST(near_cache_room, is_made_without_a_lock_around_the_end_of_a_value) {
    redis_server server;
    client a{server.url()};
    near_cache<curious, curious_codec> near{a, {.max_entries = 16, .max_age = 1ms}};
    auto const watch = [](auto const* which) {
        std::lock_guard const guard{watched.mutex};
        watched.cache = which;
        return watched.ended;
    };
    watch(&near);
    for (int i = 0; i < 100; ++i) {
        auto const name = std::to_string(i % 50);  // some are still here and too old, some had to go
        text{a, name}.set("x");
        static_cast<void>(near.get(name));
        auto const misses = near.statistics().misses;
        EXPECT_TRUE(eventually([&] {
            static_cast<void>(near.get(name));
            return near.statistics().misses > misses;
        }));
    }
    EXPECT_GT(near.statistics().evictions, 0U);
    EXPECT_TRUE(eventually([&] { return watch(&near) > 100; }));
    watch(static_cast<decltype(&near)>(nullptr));
}

TEST(near_cache_speed, a_hit_takes_well_under_a_microsecond) {
    redis_server server;
    client a{server.url()};
    text{a, "name"}.set("one");
    cache near{a};
    static_cast<void>(near.get("name"));
    // The best of some rounds: others use this machine too.
    auto best = std::chrono::nanoseconds::max();
    for (int round = 0; round < 20; ++round) {
        auto const begin = std::chrono::steady_clock::now();
        for (int i = 0; i < 10'000; ++i) static_cast<void>(near.get("name"));
        best = std::min(best, (std::chrono::steady_clock::now() - begin) / 10'000);
    }
    std::printf("a hit takes %ld ns\n", static_cast<long>(best.count()));
#if !defined(LOCKSTEP_SANITIZE)
    EXPECT_LT(best, 1us);
#endif
}

}  // namespace
}  // namespace lockstep::test
