// Rate limiters under bursts, many processes, lost replies and clocks that are set back; each algorithm by its law.
#include <lockstep/rate_limiter.hpp>

#include "integration/topology_support.hpp"
#include "rate_checker.hpp"
#include "state/block_cache.hpp"
#include "support/child_process.hpp"
#include "support/clock_file.hpp"
#include "support/cluster.hpp"
#include "support/eventually.hpp"
#include "support/fault_proxy.hpp"
#include "support/forms.hpp"
#include "support/key_slot.hpp"
#include "support/program_path.hpp"
#include "support/redis_server.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>

namespace lockstep::test {
namespace {

using enum rate_algorithm;

std::int64_t us_of(rate_decision const& made) { return std::chrono::floor<std::chrono::microseconds>(made.at.time_since_epoch()).count(); }

TEST(rate_checker, finds_one_too_many) {
    EXPECT_FALSE(breaks_window({0, 1, 100, 101}, 2, 100));
    EXPECT_TRUE(breaks_window({0, 1, 99}, 2, 100));
    EXPECT_FALSE(breaks_bucket({0, 0, 50, 100}, 2, 100, 2));
    EXPECT_TRUE(breaks_bucket({0, 0, 49, 100}, 2, 100, 2));
    EXPECT_TRUE(breaks_bucket({0, 1000, 1001, 1002}, 2, 100, 2));
}

TEST(block_cache, takes_no_refusal_that_was_asked_for_before_something_was_removed) {
    detail::block_cache cache{10, 1h};
    auto const now = detail::block_cache::clock::now();
    rate_decision const refused{.retry_after = 1h};
    auto const asked = cache.removals();
    cache.remove("key");
    cache.add("key", 1, refused, now, asked);
    EXPECT_FALSE(cache.find("key", 1, now));
    cache.add("key", 1, refused, now, cache.removals());
    EXPECT_TRUE(cache.find("key", 1, now));
}

TEST(block_cache, tells_each_cost_what_it_was_told_and_no_other) {
    detail::block_cache cache{10, 1h};
    auto const now = detail::block_cache::clock::now();
    cache.add("key", 1, {.retry_after = 10s}, now, cache.removals());
    EXPECT_FALSE(cache.find("key", 2, now)) << "which may have to wait longer";
    cache.add("key", 2, {.retry_after = 20s}, now, cache.removals());
    EXPECT_EQ(cache.find("key", 1, now)->retry_after, 10s);
    EXPECT_EQ(cache.find("key", 2, now)->retry_after, 20s);
    EXPECT_FALSE(cache.find("key", 1, now + 10s));
    EXPECT_EQ(cache.find("key", 2, now + 10s)->retry_after, 10s);
    for (int cost = 3; cost < 100; ++cost) cache.add("key", cost, {.retry_after = 60s}, now + 10s, cache.removals());
    EXPECT_EQ(cache.find("key", 99, now + 10s)->retry_after, 60s) << "of many the later ones";
    EXPECT_FALSE(cache.find("key", 2, now + 10s)) << "and not more than some";
    EXPECT_EQ(cache.size(), 1U);
    EXPECT_FALSE(cache.find("key", 99, now + 70s));
    EXPECT_EQ(cache.size(), 0U);
}

class rate_algorithms : public testing::TestWithParam<rate_algorithm> {
protected:
    static rate_limit_options plan(std::int64_t limit, std::chrono::microseconds per) {
        return {.limit = limit, .per = per, .algorithm = GetParam(), .block_cache = 0, .command_timeout = 10s};
    }
};
std::string name_of(testing::TestParamInfo<rate_algorithm> const& of) {
    return of.param == sliding_log ? "log" : of.param == sliding_window ? "window" : "bucket";
}
INSTANTIATE_TEST_SUITE_P(each, rate_algorithms, testing::Values(sliding_log, sliding_window, token_bucket), name_of);

TEST_P(rate_algorithms, admit_no_more_than_the_limit_within_one_microsecond) {
    clock_file clock;
    redis_server server{{.clock = &clock}};
    client by{server.url()};
    clock.stop();
    rate_limiter limiter{by, "api", plan(100, 1s)};
    std::vector<begun<rate_decision>> asked;
    for (int i = 0; i < 1000; ++i) asked.emplace_back(limiter.async_try_acquire("burst"));
    int admitted = 0;
    for (auto const& one : asked) admitted += one.get().allowed ? 1 : 0;
    EXPECT_EQ(admitted, 100);
    clock.step(1s);
    EXPECT_EQ(limiter.peek("burst").remaining, GetParam() == sliding_window ? 0 : 100);
    clock.step(1s);
    EXPECT_EQ(limiter.peek("burst").remaining, 100);
}

TEST_P(rate_algorithms, tell_the_right_time_to_come_again) {
    clock_file clock;
    redis_server server{{.clock = &clock}};
    client by{server.url()};
    clock.stop();
    // 7 in 1 s does not come out even.
    rate_limiter limiter{by, "api", plan(7, 1s)};
    std::vector<std::int64_t> admitted;
    std::uint64_t seed = 12345;
    for (int i = 0; i < 400; ++i) {
        seed = seed * 6364136223846793005ULL + 1442695040888963407ULL;
        std::int64_t const cost = 1 + static_cast<std::int64_t>(seed >> 33) % 7;
        auto const made = limiter.try_acquire("key", cost);
        if (made.allowed) {
            for (int n = 0; n < cost; ++n) admitted.push_back(us_of(made));
            clock.step(std::chrono::microseconds{(seed >> 20) % 300'000});
            continue;
        }
        ASSERT_GT(made.retry_after, 0us);
        clock.step(made.retry_after - 1us);
        EXPECT_FALSE(limiter.peek("key", cost).allowed) << "a moment earlier";
        clock.step(1us);
        EXPECT_TRUE(limiter.peek("key", cost).allowed) << "and then";
    }
    if (GetParam() == sliding_log) {
        EXPECT_EQ(breaks_window(admitted, 7, 1'000'000), std::nullopt);
    }
    if (GetParam() == token_bucket) {
        EXPECT_EQ(breaks_bucket(admitted, 7, 1'000'000, 7), std::nullopt);
    }
    EXPECT_EQ(breaks_window(admitted, 14, 1'000'000), std::nullopt);
}

TEST_P(rate_algorithms, neither_admit_more_nor_block_for_long_when_the_servers_clock_is_set_back) {
    clock_file clock;
    redis_server server{{.clock = &clock}};
    client by{server.url()};
    clock.stop();
    rate_limiter limiter{by, "api", plan(10, 1s)};
    std::int64_t real_us = 0;  // as somebody sees it whose clock goes on
    std::vector<std::int64_t> admitted;
    auto const pass = [&](std::chrono::microseconds time) {
        clock.step(time);
        real_us += time.count();
    };
    auto const ask = [&](int times) {
        int count = 0;
        for (int i = 0; i < times; ++i) {
            if (!limiter.try_acquire("key").allowed) continue;
            ++count;
            admitted.push_back(real_us);
        }
        return count;
    };
    EXPECT_EQ(ask(20), 10);
    for (std::chrono::milliseconds const back : {500ms, 5000ms, std::chrono::milliseconds{48h}, 10ms}) {
        SCOPED_TRACE(back.count());
        pass(100ms);
        ask(20);
        clock.step(-back);
        EXPECT_LE(ask(20), 1) << "that the clock moves makes no room";
        std::int64_t waited = 0;
        while (ask(20) == 0 && waited < 60'000) {
            pass(50ms);
            waited += 50;
        }
        // A bucket stays empty for another second at most: what could have been reserved.
        EXPECT_LE(waited, 2'100);
        pass(3s);
        EXPECT_EQ(ask(20), 10) << "and then all is as before";
    }
    if (GetParam() == sliding_log) {
        EXPECT_EQ(breaks_window(admitted, 10, 1'000'000), std::nullopt);
    }
    if (GetParam() == token_bucket) {
        EXPECT_EQ(breaks_bucket(admitted, 10, 1'000'000, 10), std::nullopt);
    }
    EXPECT_EQ(breaks_window(admitted, 20, 1'000'000), std::nullopt);
}

TEST_P(rate_algorithms, count_a_decision_at_least_once_when_its_reply_is_lost) {
    redis_server server;
    fault_proxy proxy{server.address()};
    client near{server.url()};
    client far{proxy.url()};
    rate_limiter here{near, "api", plan(10, 1h)};
    rate_limiter there{far, "api", plan(10, 1h)};
    EXPECT_TRUE(there.try_acquire("key").allowed);
    std::int64_t known = 1;
    for (int i = 0; i < 3; ++i) {
        proxy.drop_replies(1);
        known += there.try_acquire("key").allowed ? 1 : 0;
    }
    EXPECT_EQ(proxy.counters().struck, 3U);
    auto const left = here.peek("key").remaining;
    EXPECT_LE(left, 10 - known);
    EXPECT_GE(left, 10 - known - 3) << "and once for each time it was sent";
}

TEST_P(rate_algorithms, forget_once_when_the_reply_to_a_reset_is_lost) {
    redis_server server;
    fault_proxy proxy{server.address()};
    client near{server.url()};
    client far{proxy.url()};
    rate_limiter here{near, "api", plan(3, 1h)};
    rate_limiter there{far, "api", plan(3, 1h)};
    for (int i = 0; i < 3; ++i) EXPECT_TRUE(there.try_acquire("key").allowed);
    proxy.hold(direction::to_client);
    begun resetting{as_true(there.async_reset("key"))};
    ASSERT_TRUE(eventually([&] { return here.peek("key").remaining == 3; }));
    EXPECT_TRUE(here.try_acquire("key").allowed);
    proxy.cut();
    proxy.heal();
    EXPECT_EQ(ending_of([&] { resetting.get(); }).reason, errc::indeterminate);
    EXPECT_EQ(there.try_acquire("key", 3).allowed, false) << "on the same connection as whatever was sent again";
    EXPECT_EQ(here.peek("key").remaining, 2);
}

TEST_P(rate_algorithms, tell_each_cost_its_own_time_to_come_again_when_they_refuse_here) {
    clock_file clock;
    redis_server server{{.clock = &clock}};
    client by{server.url()};
    clock.stop();
    auto how = plan(10, 1'000s);
    how.block_cache = 10;
    how.longest_block = 1h;
    rate_limiter limiter{by, "api", how};
    EXPECT_TRUE(limiter.try_acquire("key", 1).allowed);
    clock.step(50s);
    EXPECT_TRUE(limiter.try_acquire("key", 9).allowed);
    for (int round = 0; round < 2; ++round) {
        for (std::int64_t const cost : {1, 10}) {
            auto const refused = limiter.try_acquire("key", cost);
            ASSERT_FALSE(refused.allowed);
            EXPECT_EQ(refused.local, round == 1);
            auto const server_says = limiter.peek("key", cost).retry_after;
            EXPECT_LE(refused.retry_after, server_says);
            EXPECT_GT(refused.retry_after, server_says - 30s) << "for a cost of " << cost;  // the server's clock stands still, and this test takes less than that
        }
    }
}

TEST_P(rate_algorithms, do_not_refuse_here_what_was_reset_while_it_was_asked_for) {
    redis_server server;
    fault_proxy proxy{server.address()};
    client far{proxy.url()};
    auto how = plan(1, 1h);
    how.block_cache = 10;
    how.longest_block = 1h;
    rate_limiter there{far, "api", how};
    EXPECT_TRUE(there.try_acquire("key").allowed);
    proxy.hold(direction::to_client);
    auto const passed = proxy.counters().bytes_to_client;
    auto const asked = calls_of(server, "evalsha");
    begun trying{there.async_try_acquire("key")};
    ASSERT_TRUE(eventually([&] { return calls_of(server, "evalsha") > asked; }));
    begun resetting{as_true(there.async_reset("key"))};
    ASSERT_TRUE(eventually([&] { return calls_of(server, "unlink") > 0; }));
    begun large{far.async_command("ECHO", std::string(20'000, 'x'))};  // when its answer passes, those before it have
    ASSERT_TRUE(eventually([&] { return calls_of(server, "echo") > 0; }));
    // Both answers are there when the client reads, and who was reset goes on before who was refused.
    std::promise<void> both_came;
    begun busy{in_turn_of(far, [came = both_came.get_future().share()] { return came.wait(), true; })};
    proxy.heal();
    EXPECT_TRUE(eventually([&] { return proxy.counters().bytes_to_client > passed + 10'000; }));
    both_came.set_value();
    EXPECT_TRUE(busy.get());
    EXPECT_FALSE(trying.get().allowed);
    EXPECT_TRUE(resetting.get());
    EXPECT_TRUE(there.try_acquire("key").allowed);
}

TEST_P(rate_algorithms, fail_all_who_wait_in_line_when_the_server_is_away) {
    redis_server server;
    client by{server.url()};
    auto how = plan(1, 1h);
    how.command_timeout = 1s;
    rate_limiter limiter{by, "api", how};
    EXPECT_TRUE(limiter.try_acquire("another key").allowed);
    server.kill9();
    auto const begin = now_ms();
    std::vector<begun<rate_decision>> waiting;
    for (int i = 0; i < 100; ++i) waiting.emplace_back(limiter.async_acquire("key"));
    for (auto const& one : waiting) EXPECT_EQ(ending_of([&] { one.get(); }).reason, errc::unavailable);
    EXPECT_LT(now_ms() - begin, 30'000) << "not one after the other";
}

TEST_P(rate_algorithms, answer_whose_time_is_over_in_line_as_the_server_says) {
    redis_server server;
    client by{server.url()};
    rate_limiter limiter{by, "api", plan(1, 1h)};
    EXPECT_TRUE(limiter.try_acquire("another key").allowed);
    server.stop();
    begun first{limiter.async_acquire("key")};
    EXPECT_TRUE(eventually([&] { return limiter.statistics().asked == 2; }));
    begun second{limiter.async_try_acquire_for("key", 10ms)};
    EXPECT_TRUE(eventually([&] { return limiter.statistics().asked == 3; })) << "nobody has heard anything that it could be told";
    server.cont();
    EXPECT_TRUE(first.get().allowed);
    auto const made = second.get();
    EXPECT_FALSE(made.allowed);
    EXPECT_GT(made.retry_after, 1min);
    EXPECT_GE(made.reset, made.retry_after);
    EXPECT_GT(us_of(made), 0);
}

TEST_P(rate_algorithms, leave_no_keys_behind) {
    redis_server server;
    client by{server.url()};
    rate_limiter limiter{by, "api", plan(10, 20ms)};
    for (int i = 0; i < 100; ++i) {
        for (int n = 0; n < 12; ++n) static_cast<void>(limiter.try_acquire("key " + std::to_string(i)));
    }
    EXPECT_TRUE(eventually([&] {
        server.must({"EVAL", "for i = 0, 99 do for _, k in ipairs({'hits', 'window', 'rate'}) do redis.call('EXISTS', 'lockstep:{key ' .. i .. '}:' .. k .. ':api') end end", "0"});
        auto const keys = server.must({"KEYS", "lockstep:{key *"}).elements;
        return keys.empty();
    }));
}

TEST(rate_bucket, waits_that_are_given_up_give_their_place_back_if_it_is_the_last) {
    redis_server server;
    client by{server.url()};
    rate_limiter limiter{by, "api", {.limit = 10, .per = 50s, .algorithm = token_bucket, .burst = 2, .block_cache = 0, .command_timeout = 10s}};
    EXPECT_TRUE(limiter.try_acquire("key", 2).allowed);
    auto const reset_s = [&] { return std::chrono::duration<double>(limiter.peek("key").reset).count(); };
    EXPECT_NEAR(reset_s(), 10, 2);
    std::stop_source first_stop, second_stop;
    begun first{with_stop_token(limiter.async_acquire("key"), first_stop.get_token())};
    ASSERT_TRUE(eventually([&] { return reset_s() > 11; }));
    begun second{with_stop_token(limiter.async_acquire("key"), second_stop.get_token())};
    ASSERT_TRUE(eventually([&] { return reset_s() > 16; }));
    auto const before = limiter.statistics().asked;
    // Between others: whoever is behind has been told a time that counts on it.
    first_stop.request_stop();
    EXPECT_EQ(ending_of([&] { first.get(); }).reason, errc::cancelled);
    ASSERT_TRUE(eventually([&] { return calls_of(server, "evalsha") + calls_of(server, "eval") > 0 && limiter.statistics().waiting == 1; }));
    EXPECT_GT(reset_s(), 14);
    second_stop.request_stop();
    EXPECT_EQ(ending_of([&] { second.get(); }).reason, errc::cancelled);
    EXPECT_TRUE(eventually([&] { return reset_s() < 15.5; }));
    EXPECT_GT(reset_s(), 11) << "the first one's is gone";
    EXPECT_GE(limiter.statistics().asked, before);
}

TEST(rate_bucket, acquire_is_one_call_and_obeys_the_law) {
    redis_server server;
    client by{server.url()};
    rate_limiter limiter{by, "api", {.limit = 200, .per = 1s, .algorithm = token_bucket, .burst = 20, .block_cache = 0, .command_timeout = 10s}};
    std::vector<begun<rate_decision>> waiting;
    for (int i = 0; i < 30; ++i) waiting.emplace_back(limiter.async_acquire("key"));
    for (auto const& one : waiting) EXPECT_TRUE(one.get().allowed);
    EXPECT_EQ(limiter.statistics().asked, 30U) << "20 at once, 10 reserved";
    EXPECT_EQ(limiter.statistics().waiting, 0U);
}

TEST(rate_bucket, of_common_rates_takes_at_most_150_bytes) {
    redis_server server;
    client by{server.url()};
    rate_limiter limiter{by, "api", {.limit = 100, .per = 1h, .algorithm = token_bucket, .command_timeout = 10s}};
    auto const used = [&] { return std::stol(server.info("used_memory_dataset")); };
    for (int i = 0; i < 100; ++i) static_cast<void>(limiter.try_acquire("warm-" + std::to_string(i)));
    auto const before = used();
    std::vector<std::string> names;
    for (int i = 0; i < 20'000; ++i) names.push_back("user-" + std::to_string(i));
    for (std::size_t i = 0; i < names.size(); i += 1000) {
        std::vector<std::string_view> const some(names.begin() + static_cast<long>(i), names.begin() + static_cast<long>(i) + 1000);
        static_cast<void>(limiter.try_acquire_all(some));
    }
    EXPECT_LE((used() - before) / 20'000, 150);
}

TEST_P(rate_algorithms, decide_for_a_user_who_may_not_touch_all_keys) {
    redis_server server;
    server.must({"ACL", "SETUSER", "some", "on", "nopass", "+@all", "&*", "~*good*"});
    auto url = server.url();
    client by{url.insert(url.find("://") + 3, "some:any@")};
    rate_limiter limiter{by, "api", plan(10, 1h)};
    EXPECT_TRUE(limiter.try_acquire("good").allowed);
    std::vector<begun<rate_decision>> asked;
    sync_wait(in_turn_of(by, [&] {
        for (char const* const key : {"good", "bad", "as good"}) asked.emplace_back(limiter.async_try_acquire(key));
        return true;
    }));
    EXPECT_EQ(asked[0].get().remaining, 8) << "and it was counted once";
    EXPECT_EQ(ending_of([&] { asked[1].get(); }).reason, errc::server);
    EXPECT_EQ(asked[2].get().remaining, 9);
}

class slow_rate_fleet : public rate_algorithms {};
INSTANTIATE_TEST_SUITE_P(each, slow_rate_fleet, testing::Values(sliding_log, sliding_window, token_bucket), name_of);

class slow_rate_slots : public rate_algorithms {};
INSTANTIATE_TEST_SUITE_P(each, slow_rate_slots, testing::Values(sliding_log, sliding_window, token_bucket), name_of);

TEST_P(slow_rate_slots, decide_at_once_also_while_their_slot_moves) {
    cluster nodes{{.masters = 3, .replicas_per_master = 0}};
    client by{nodes.url()};
    auto together = plan(10, 1h);
    together.together = true;
    rate_limiter limiter{by, "name", together};
    EXPECT_TRUE(limiter.try_acquire("there").allowed);
    auto const slot = slot_of("{name}");
    nodes.begin_migration(slot, (nodes.owner_of(slot) + 1) % 3);
    std::vector<begun<rate_decision>> asked;
    sync_wait(in_turn_of(by, [&] {
        for (char const* const key : {"there", "new", "another"}) {
            for (int i = 0; i < 2; ++i) asked.emplace_back(limiter.async_try_acquire(key));
        }
        return true;
    }));
    for (auto const& one : asked) EXPECT_TRUE(one.get().allowed);
    nodes.move_keys(slot);
    nodes.finish_migration(slot);
    EXPECT_EQ(limiter.peek("there").remaining, 7);
    EXPECT_EQ(limiter.peek("new").remaining, 8);
}

TEST_P(slow_rate_fleet, never_admits_more_than_its_limit) {
    redis_server server;
    std::string const how = GetParam() == sliding_log ? "log" : GetParam() == sliding_window ? "window" : "bucket";
    std::vector<child_process> fleet;
    for (int i = 0; i < 64; ++i) {
        fleet.push_back(child_process{{program_path("limiter_user"), server.url(), how, "300", "500000", how == "bucket" ? "100" : "0", "160", "8"}});
    }
    for (auto& one : fleet) ASSERT_EQ(one.read_line(40s), "ready");
    for (auto& one : fleet) one.write_line("go");
    std::vector<std::int64_t> admitted;
    for (auto& one : fleet) {
        while (true) {
            auto const line = one.read_line(40s);
            ASSERT_TRUE(line.has_value());
            if (*line == "end") break;
            admitted.push_back(std::stoll(*line));
        }
    }
    EXPECT_GE(admitted.size(), 100U);
    EXPECT_LT(admitted.size(), 64U * 160U) << "some were refused, or nothing was tested";
    if (GetParam() == sliding_log) {
        EXPECT_EQ(breaks_window(admitted, 300, 500'000), std::nullopt);
    }
    if (GetParam() == token_bucket) {
        EXPECT_EQ(breaks_bucket(admitted, 300, 500'000, 100), std::nullopt);
    }
    EXPECT_EQ(breaks_window(admitted, 600, 500'000), std::nullopt);
}

}  // namespace
}  // namespace lockstep::test
