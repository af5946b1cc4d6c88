// What a monitor shows of things that nobody holds: values, counters, boards, jobs, session stores, limiters and buses.
#include "support/contract.hpp"
#include "support/eventually.hpp"
#include "topology_support.hpp"

#include <lockstep/atomic_counter.hpp>
#include <lockstep/event_bus.hpp>
#include <lockstep/job_client.hpp>
#include <lockstep/job_worker.hpp>
#include <lockstep/leaderboard.hpp>
#include <lockstep/monitor.hpp>
#include <lockstep/mutex.hpp>
#include <lockstep/rate_limiter.hpp>
#include <lockstep/session_store.hpp>
#include <lockstep/shared_value.hpp>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <limits>

namespace lockstep::test {
namespace {

class monitor_things_contract : public contract {
protected:
    /// Through all keys, so that nobody waits until clients have told of what they use (object_index_test.cpp).
    snapshot look(snapshot_options what = {}) {
        what.scan = true;
        return run(
            c, [&] { return eye.snapshot(what); }, [&] { return eye.async_snapshot(what); });
    }
    /// The one of this kind; of jobs, of this type. One without a name: there is none, or there are several.
    object_info only(std::string_view kind, snapshot_options what = {}, std::string_view type = {}) {
        auto seen = look(what);
        std::erase_if(seen.objects, [&](object_info const& one) { return one.kind != kind || one.type != type; });
        return seen.objects.size() == 1 ? seen.objects[0] : object_info{};
    }

    client c{{.url = url(), .name = "looks"}};
    lockstep::monitor eye{c};
};
LOCKSTEP_CONTRACT(monitor_things_contract);

TEST_P(monitor_things_contract, shows_a_session_store_with_the_number_of_its_sessions_and_no_id) {
    session_store web{a, "web {1}", {.command_timeout = 10s}};
    for (int i = 0; i < 20; ++i) web.create("user-" + std::to_string(i % 7));
    auto const last = web.create("another }:lock");
    session_store(a, "phones", {.command_timeout = 10s}).create("me");
    auto const seen = look();
    ASSERT_EQ(seen.objects.size(), 2U) << "stores, not sessions or users";
    EXPECT_EQ(seen.objects[0].name, "phones");
    EXPECT_EQ(seen.objects[0].count, 1);
    EXPECT_EQ(seen.objects[1].name, "web {1}");
    EXPECT_EQ(seen.objects[1].kind, "sessions");
    EXPECT_EQ(seen.objects[1].count, 21);
    EXPECT_GT(seen.at.time_since_epoch(), 1'700'000'000s);
    web.destroy(last);
    EXPECT_EQ(only("sessions", {.pattern = "web*"}).count, 20);
    EXPECT_EQ(look({.limit = 1}).left_out, 1U);
}

TEST_P(monitor_things_contract, shows_a_limiter_with_the_number_of_its_keys) {
    std::int64_t keys = 0;
    for (auto const algorithm : {rate_algorithm::sliding_log, rate_algorithm::sliding_window, rate_algorithm::token_bucket}) {
        for (bool const together : {false, true}) {
            rate_limiter api{a, "api/%", {.limit = 2, .per = 1h, .algorithm = algorithm, .together = together, .command_timeout = 10s}};
            for (int i = 0; i < 5; ++i) api.try_acquire("user {" + std::to_string(i) + "}");
            api.try_acquire("user {0}");
            keys += 5;
            auto const seen = only("limiter");
            EXPECT_EQ(seen.name, "api/%");
            EXPECT_EQ(seen.count, keys);
        }
    }
    rate_limiter(a, "other", {.limit = 2, .per = 1h, .command_timeout = 10s}).try_acquire("api/%");
    EXPECT_EQ(look().objects.size(), 2U);
    EXPECT_EQ(only("limiter", {.pattern = "o*r"}).count, 1);
}

TEST_P(monitor_things_contract, shows_a_value_as_long_as_it_is_there) {
    shared_value<int> value{a, "name"};
    value.set(1, {.ttl = 1h});
    EXPECT_EQ(only("value").count, 1);
    value.set(2, {.ttl = 1ms});
    EXPECT_TRUE(eventually([&] { return only("value").count == 0; }));
    EXPECT_EQ(only("value").name, "name") << "its versions are still known";
    value.set(3);
    EXPECT_EQ(only("value").count, 1);
    value.erase();
    EXPECT_EQ(only("value").count, 0);
}

TEST_P(monitor_things_contract, shows_a_counter_with_all_64_bits_of_its_number) {
    atomic_counter counter{a, "name"};
    constexpr auto first = (std::int64_t{1} << 53) + 1;  // no double has it
    for (auto const number : {std::numeric_limits<std::int64_t>::max(), std::numeric_limits<std::int64_t>::min(), first, -first, std::int64_t{7}}) {
        counter.set(number);
        EXPECT_EQ(only("counter").count, number);
    }
}

TEST_P(monitor_things_contract, shows_a_counter_as_0_when_its_time_is_over) {
    atomic_counter{a, "name", {.ttl = 1h}}.set(7);
    EXPECT_EQ(only("counter").count, 7);
    atomic_counter counter{a, "name", {.ttl = 1ms}};
    counter.set(8);
    ASSERT_TRUE(eventually([&] { return counter.get() == 0; }));
    EXPECT_EQ(only("counter").name, "name") << "its last calls are still known";
    EXPECT_EQ(only("counter").count, 0);
    atomic_counter{a, "name"}.add(9);
    EXPECT_EQ(only("counter").count, 9);
}

TEST_P(monitor_things_contract, shows_a_board_of_periods_once_with_the_size_of_its_newest) {
    auto const add = [&](std::string_view name, leaderboard_period period, std::string const& earlier) {
        leaderboard{a, name, {.ties = leaderboard_ties::earlier_first, .period = period}}.add("ada", 1);
        auto const key = "lockstep:{" + std::string{name} + "}:board:" + earlier;
        a.command("ZADD", key, "1", "x", "2", "y", "3", "z");
        a.command("HSET", key + ":about", "v", "board 1 earlier -1");
    };
    add("1 hourly", leaderboard_period::hourly, "hour:2001-01-01T23");
    add("2 daily", leaderboard_period::daily, "day:2001-01-01");
    add("3 weekly", leaderboard_period::weekly, "week:2001-01-01");
    add("4 monthly", leaderboard_period::monthly, "month:2001-01");
    leaderboard{a, "5 of all time"}.add("ada", 1);
    auto const seen = look();
    ASSERT_EQ(seen.objects.size(), 5U);
    for (auto const& one : seen.objects) {
        EXPECT_EQ(one.kind, "board");
        EXPECT_EQ(one.count, 1) << one.name;
    }
    EXPECT_EQ(seen.objects[2].name, "3 weekly");
    EXPECT_EQ(seen.left_out, 0U);
    leaderboard{a, "3 weekly", {.ties = leaderboard_ties::earlier_first, .period = leaderboard_period::weekly}}.remove("ada");
    EXPECT_EQ(only("board", {.pattern = "*weekly"}).count, 3) << "the newest that there is";
}

TEST_P(monitor_things_contract, shows_a_bus_with_its_channels_and_their_subscribers) {
    event_bus of_a{a, "shop"};
    event_bus of_b{b, "shop"};
    EXPECT_TRUE(look().objects.empty()) << "nobody listens";
    auto const ignore = [](std::string const&) {};
    auto first = of_a.subscribe<std::string>("orders", ignore);
    auto const second = of_b.subscribe<std::string>("orders", ignore);
    auto const third = of_b.subscribe<std::string>("prices {eur}", ignore);
    event_bus plain{b, "plain", {.patterns = true}};
    auto const fourth = plain.subscribe<std::string>("orders", ignore);
    auto const seen = only("bus", {.pattern = "shop"});
    EXPECT_EQ(seen.name, "shop");
    EXPECT_EQ(seen.count, 2);
    EXPECT_EQ(seen.taken, 3);
    std::vector<group_info> const channels{{.name = "orders", .consumers = 2}, {.name = "prices {eur}", .consumers = 1}};
    EXPECT_EQ(seen.groups, channels);
    EXPECT_EQ(look().objects.size(), 2U);
    EXPECT_EQ(only("bus", {.name = "plain"}).taken, 1);
    first.end();
    EXPECT_TRUE(eventually([&] { return only("bus", {.name = "shop"}).taken == 2; }));
}

TEST_P(monitor_things_contract, shows_jobs_of_each_type_by_their_states) {
    job_client jobs{a, "shop"};
    for (int i = 0; i < 3; ++i) jobs.schedule("mail", std::string{"now"}, {.priority = i});
    jobs.schedule("mail", std::string{"later"}, {.delay = 1h});
    job_flow flow;
    flow.add("first", "map", std::string{}).add("then", "mail", std::string{}).after("then", "first");
    jobs.add_flow(flow);
    jobs.schedule("stream", std::string{"fails"}, {.attempts = 1});
    jobs.cron("nightly", "mail", std::string{}, {.expression = "30 2 1 1 *"});
    auto const check = [&](snapshot_options what) {
        auto const seen = look(what);
        ASSERT_EQ(seen.objects.size(), 3U) << "no row of a part of them";
        for (auto const& one : seen.objects) {
            EXPECT_EQ(one.name, "shop");
            EXPECT_EQ(one.kind, "jobs");
        }
        EXPECT_EQ(seen.objects[0].type, "mail");
        EXPECT_EQ(seen.objects[0].count, 4);
        EXPECT_EQ(seen.objects[0].delayed, 1);
        EXPECT_EQ(seen.objects[0].blocked, 1);
        EXPECT_EQ(seen.objects[0].taken, 0);
        EXPECT_EQ(seen.objects[1].type, "map");
        EXPECT_EQ(seen.objects[1].count, 1);
        EXPECT_EQ(seen.objects[2].type, "stream");
        EXPECT_EQ(seen.objects[2].count, 1);
    };
    check({});
    check({.name = "shop"});
    check({.pattern = "sh*"});

    std::atomic<bool> is_over{false};
    job_worker worker{b, "shop", {.fires_crons = false}};
    worker.handle<std::string>("map", [&](std::string const&) { is_over.wait(false); });
    worker.handle<std::string>("stream", [](std::string const&) { throw std::runtime_error("no"); });
    worker.start();
    EXPECT_TRUE(eventually([&] { return only("jobs", {}, "map").taken == 1; }));
    EXPECT_TRUE(eventually([&] { return only("jobs", {}, "stream").dead == 1; }));
    EXPECT_EQ(only("jobs", {}, "stream").count, 0);
    EXPECT_EQ(only("jobs", {}, "mail").blocked, 1);
    is_over = true;
    is_over.notify_all();
    EXPECT_TRUE(eventually([&] { return only("jobs", {}, "mail").blocked == 0; }));
    EXPECT_EQ(only("jobs", {}, "mail").count, 5);
    EXPECT_TRUE(eye.contention(1h).empty()) << "workers that wait for jobs are no contention";
}

TEST_P(monitor_things_contract, shows_jobs_that_ended_also_when_nobody_has_used_their_queue_for_long) {
    job_client jobs{a, "name"};
    jobs.cancel(jobs.schedule("mail", std::string{"one"}).id);
    server.must({"DEL", "lockstep:{name}:jobs:q:mail"});
    EXPECT_EQ(only("jobs", {}, "mail").name, "name");
}

TEST_P(monitor_things_contract, tells_a_watch_of_all_of_them) {
    std::mutex lock;
    snapshot last;
    auto const watching = eye.watch(
        [&](snapshot const& now) {
            std::lock_guard const guard{lock};
            last = now;
        },
        {.at_most_every = 20ms, .at_least_every = 50ms});
    session_store(a, "web", {.command_timeout = 10s}).create("me");
    rate_limiter(a, "api", {.limit = 2, .per = 1h, .command_timeout = 10s}).try_acquire("me");
    job_client(a, "shop").schedule("mail", std::string{}, {.delay = 1h});
    event_bus bus{a, "bus"};
    auto const listening = bus.subscribe<std::string>("channel", [](std::string const&) {});
    EXPECT_TRUE(eventually([&] {
        std::lock_guard const guard{lock};
        return last.objects.size() == 4;
    }, 20s));
}

class monitor_of_many : public testing::Test {
protected:
    redis_server server;
    client by{server.url()};
    lockstep::monitor eye{by};
};

TEST_F(monitor_of_many, sessions_and_keys_of_limiters_are_counted_in_small_steps_and_never_read) {
    server.must({"EVAL",
                 "for i = 1, 20000 do redis.call('HSET', 'lockstep:{web/' .. string.format('%03x', i % 1024) .. '}:session:' .. i, 'v', 'session 1') end "
                 "for i = 1, 20000 do redis.call('SET', 'lockstep:{user-' .. i .. '}:rate:api', i) end return 1",
                 "0"});
    server.must({"CONFIG", "RESETSTAT"});
    auto const seen = eye.snapshot({.scan = true});
    ASSERT_EQ(seen.objects.size(), 2U);
    EXPECT_EQ(seen.objects[0].count, 20'000);
    EXPECT_EQ(seen.objects[1].count, 20'000);
    EXPECT_GE(calls_of(server, "scan"), 80) << "500 at a time";
    EXPECT_LE(calls_of(server, "scan"), 200);
    EXPECT_EQ(calls_of(server, "evalsha_ro") + calls_of(server, "eval_ro"), 0);
    EXPECT_EQ(calls_of(server, "get") + calls_of(server, "hget") + calls_of(server, "hgetall"), 0);
}

TEST_F(monitor_of_many, jobs_are_read_a_few_at_a_time) {
    server.must({"EVAL", "for i = 1, 1500 do redis.call('RPUSH', 'lockstep:{n' .. i % 7 .. '}:jobs:q:t' .. i .. ':ready', 'x') end return 1", "0"});
    server.must({"CONFIG", "RESETSTAT"});
    EXPECT_EQ(eye.snapshot({.scan = true}).objects.size(), 1'500U);
    EXPECT_GE(calls_of(server, "evalsha_ro") + calls_of(server, "eval_ro"), 30) << "fifty at a time";
}

TEST_F(monitor_of_many, channels_are_counted_some_hundreds_at_a_time) {
    event_bus bus{by, "wide"};
    std::vector<bus_subscription> all;
    for (int i = 0; i < 1'200; ++i) all.push_back(bus.subscribe<std::string>("c" + std::to_string(i), [](std::string const&) {}));
    server.must({"CONFIG", "RESETSTAT"});
    auto const seen = eye.snapshot().objects.at(0);
    EXPECT_EQ(seen.count, 1'200);
    EXPECT_EQ(seen.taken, 1'200);
    EXPECT_EQ(seen.groups.size(), 100U);
    EXPECT_EQ(calls_of(server, "pubsub|channels"), 1);
    EXPECT_GE(calls_of(server, "pubsub|numsub"), 3);
}

TEST_F(monitor_of_many, channels_are_not_listed_where_there_are_so_many_that_it_would_keep_the_server) {
    auto others = server.connect();
    std::vector<std::string> words{"SUBSCRIBE"};
    for (int i = 0; i < 5'001; ++i) words.push_back("other" + std::to_string(i));
    others.send(words);
    event_bus bus{by, "bus"};
    auto const listening = bus.subscribe<std::string>("channel", [](std::string const&) {});
    auto const held = mutex(by, "lock").acquire();
    ASSERT_TRUE(eventually([&] { return server.must({"INFO", "stats"}).text.find("pubsub_channels:50") != std::string::npos; }));
    server.must({"CONFIG", "RESETSTAT"});
    auto const seen = eye.snapshot({.scan = true});
    ASSERT_EQ(seen.objects.size(), 1U);
    EXPECT_EQ(seen.objects[0].kind, "lock");
    EXPECT_EQ(seen.left_out, 1U);
    EXPECT_EQ(calls_of(server, "pubsub|channels"), 0);
}

TEST_F(monitor_of_many, who_may_not_list_channels_sees_all_but_buses) {
    server.must({"ACL", "SETUSER", "old", "on", ">secret", "~*", "&*", "+@all", "-pubsub|channels"});
    client old{{.url = server.url(), .user = "old", .password = "secret"}};
    event_bus bus{by, "bus"};
    auto const listening = bus.subscribe<std::string>("channel", [](std::string const&) {});
    auto const held = mutex(by, "lock").acquire();
    auto const seen = lockstep::monitor{old}.snapshot({.scan = true});
    ASSERT_EQ(seen.objects.size(), 1U);
    EXPECT_EQ(seen.objects[0].kind, "lock");
}

}  // namespace
}  // namespace lockstep::test
