// What a rate limiter promises, in both forms on every topology.
#include <lockstep/rate_limiter.hpp>

#include "integration/topology_support.hpp"
#include "support/contract.hpp"
#include "support/eventually.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <map>
#include <mutex>
#include <optional>

namespace lockstep::test {
namespace {

using enum rate_algorithm;
constexpr std::array all_algorithms{sliding_log, sliding_window, token_bucket};

std::string kind_of(rate_algorithm which) { return which == sliding_log ? "hits" : which == sliding_window ? "window" : "rate"; }

class rate_limiter_contract : public contract {
protected:
    rate_decision try_acquire(client& by, rate_limiter& which, std::string_view key = "name", std::int64_t cost = 1) {
        return run(
            by, [&] { return which.try_acquire(key, cost); }, [&] { return which.async_try_acquire(key, cost); });
    }
    rate_decision acquire(client& by, rate_limiter& which, std::int64_t cost = 1) {
        return run(
            by, [&] { return which.acquire("name", cost); }, [&] { return which.async_acquire("name", cost); });
    }
    rate_decision try_acquire_for(client& by, rate_limiter& which, std::chrono::milliseconds time, std::int64_t cost = 1) {
        return run(
            by, [&] { return which.try_acquire_for("name", time, cost); }, [&] { return which.async_try_acquire_for("name", time, cost); });
    }
    rate_decision peek(client& by, rate_limiter& which, std::int64_t cost = 1) {
        return run(
            by, [&] { return which.peek("name", cost); }, [&] { return which.async_peek("name", cost); });
    }
    void reset(client& by, rate_limiter& which) {
        run(
            by, [&] { which.reset("name"); }, [&] { return which.async_reset("name"); });
    }
    static rate_limit_options plan(rate_algorithm how, std::int64_t limit, std::chrono::microseconds per) {
        return {.limit = limit, .per = per, .algorithm = how, .block_cache = 0, .command_timeout = 10s};
    }
};
LOCKSTEP_CONTRACT(rate_limiter_contract);

TEST_P(rate_limiter_contract, admits_up_to_the_limit_of_all_and_says_what_is_left) {
    for (auto const how : all_algorithms) {
        SCOPED_TRACE(kind_of(how));
        rate_limiter of_a{a, "api", plan(how, 5, 1h)};
        rate_limiter of_b{b, "api", plan(how, 5, 1h)};
        for (int left = 4; left >= 1; left -= 2) {
            auto const first = try_acquire(a, of_a);
            EXPECT_TRUE(first.allowed);
            EXPECT_EQ(first.limit, 5);
            EXPECT_EQ(first.remaining, left);
            EXPECT_EQ(first.retry_after, 0us);
            EXPECT_GT(first.reset, 0us);
            EXPECT_EQ(try_acquire(b, of_b).remaining, left - 1);
        }
        EXPECT_TRUE(peek(b, of_b).allowed) << "and nothing is counted by that";
        EXPECT_FALSE(peek(b, of_b, 2).allowed);
        EXPECT_FALSE(try_acquire(b, of_b, "name", 2).allowed) << "one is left";
        EXPECT_TRUE(try_acquire(a, of_a).allowed);
        auto const last = try_acquire(b, of_b);
        EXPECT_FALSE(last.allowed);
        EXPECT_EQ(last.remaining, 0);
        EXPECT_GT(last.retry_after, 1min);
        EXPECT_LE(last.retry_after, 2h);
        EXPECT_GE(last.reset, last.retry_after);
        EXPECT_NEAR(std::chrono::duration<double>(last.at - std::chrono::system_clock::now()).count(), 0, 30);
        EXPECT_TRUE(try_acquire(a, of_a, "another key").allowed);
        reset(a, of_a);
        EXPECT_EQ(try_acquire(b, of_b).remaining, 4);
    }
}

TEST_P(rate_limiter_contract, counts_costs) {
    for (auto const how : all_algorithms) {
        SCOPED_TRACE(kind_of(how));
        rate_limiter of_a{a, "api", plan(how, 10, 1h)};
        EXPECT_EQ(try_acquire(a, of_a, "name", 7).remaining, 3);
        auto const refused = try_acquire(a, of_a, "name", 4);
        EXPECT_FALSE(refused.allowed);
        EXPECT_EQ(refused.remaining, 3);
        EXPECT_GT(refused.retry_after, 0us);
        EXPECT_EQ(try_acquire(a, of_a, "name", 3).remaining, 0);
        EXPECT_EQ(ending_of([&] { try_acquire(a, of_a, "name", 11); }).reason, errc::invalid_argument);
        EXPECT_EQ(ending_of([&] { try_acquire(a, of_a, "name", 0); }).reason, errc::invalid_argument);
        EXPECT_EQ(ending_of([&] { acquire(a, of_a, 11); }).reason, errc::invalid_argument) << "it would wait for ever";
    }
}

TEST_P(rate_limiter_contract, is_one_script_call_and_every_key_expires) {
    for (auto const how : all_algorithms) {
        SCOPED_TRACE(kind_of(how));
        rate_limiter of_a{a, "api", plan(how, 3, 2s)};
        try_acquire(a, of_a);
        server.must({"CONFIG", "RESETSTAT"});
        for (int i = 0; i < 5; ++i) try_acquire(a, of_a);
        EXPECT_EQ(calls_of(server, "evalsha") + calls_of(server, "eval"), 5);
        auto const ttl = server.must({"PTTL", "lockstep:{name}:" + kind_of(how) + ":api"}).integer;
        EXPECT_GT(ttl, 0);
        EXPECT_LE(ttl, 4'100);
        EXPECT_EQ(of_a.statistics().asked, 6U);
        EXPECT_EQ(of_a.statistics().allowed, 3U);
        EXPECT_EQ(of_a.statistics().refused, 3U);
    }
}

TEST_P(rate_limiter_contract, waits_for_its_turn_and_admits_again_when_time_has_passed) {
    for (auto const how : all_algorithms) {
        SCOPED_TRACE(kind_of(how));
        rate_limiter of_a{a, "api", plan(how, 4, 200ms)};
        auto const first = try_acquire(a, of_a, "name", 4);
        EXPECT_TRUE(first.allowed);
        auto const begin = now_ms();
        auto const second = acquire(a, of_a, 4);
        EXPECT_TRUE(second.allowed);
        EXPECT_EQ(second.retry_after, 0us);
        EXPECT_GE(now_ms() - begin, 150) << "200 ms after the first decision, whose answer took a moment";
        EXPECT_TRUE(try_acquire_for(a, of_a, 30s).allowed);
    }
}

TEST_P(rate_limiter_contract, says_at_once_that_a_turn_would_come_too_late) {
    for (auto const how : all_algorithms) {
        SCOPED_TRACE(kind_of(how));
        rate_limiter of_a{a, "api", plan(how, 2, 1h)};
        try_acquire(a, of_a, "name", 2);
        auto const begin = now_ms();
        auto const late = try_acquire_for(a, of_a, 50s, 2);
        EXPECT_FALSE(late.allowed);
        EXPECT_GT(late.retry_after, 1min);
        EXPECT_LT(now_ms() - begin, 30'000);
        auto brief = plan(how, 2, 1h);
        brief.wait_limit = 20ms;
        rate_limiter impatient{a, "api", brief};
        EXPECT_EQ(ending_of([&] { acquire(a, impatient); }).reason, errc::timeout);
        EXPECT_EQ(of_a.statistics().waiting, 0U);
    }
}

// The first in line knows when its turn comes, and nobody's behind it comes earlier.
TEST_P(rate_limiter_contract, says_at_once_behind_others_that_a_turn_would_come_too_late) {
    for (auto const how : all_algorithms) {
        SCOPED_TRACE(kind_of(how));
        rate_limiter of_a{a, "api", plan(how, 1, 1h)};
        try_acquire(a, of_a);
        std::vector<begun<rate_decision>> waiting;
        std::stop_source stop;
        auto const begin = now_ms();
        sync_wait(in_turn_of(a, [&] {
            waiting.emplace_back(with_stop_token(of_a.async_acquire("name"), stop.get_token()));
            waiting.emplace_back(of_a.async_try_acquire_for("name", 50s));  // before anything was said to the first
            return true;
        }));
        for (auto const& late : {waiting[1].get(), try_acquire_for(a, of_a, 50s)}) {
            EXPECT_FALSE(late.allowed);
            EXPECT_TRUE(late.local || how == token_bucket);
            EXPECT_EQ(late.limit, 1);
            EXPECT_GT(late.retry_after, 1min);
            EXPECT_LE(late.retry_after, 2h);
            EXPECT_GE(late.reset, late.retry_after);
            EXPECT_NEAR(std::chrono::duration<double>(late.at - std::chrono::system_clock::now()).count(), 0, 40);
        }
        EXPECT_LT(now_ms() - begin, 30'000);
        EXPECT_FALSE(waiting[0].done());
        EXPECT_EQ(of_a.statistics().waiting, 1U);
        EXPECT_EQ(of_a.statistics().refused, 2U);
        stop.request_stop();
        EXPECT_EQ(ending_of([&] { waiting[0].get(); }).reason, errc::cancelled);
        reset(a, of_a);
    }
}

TEST_P(rate_limiter_contract, wakes_those_who_wait_when_it_is_reset) {
    for (auto const how : all_algorithms) {
        SCOPED_TRACE(kind_of(how));
        rate_limiter of_a{a, "api", plan(how, 1, 24h)};
        try_acquire(a, of_a);
        begun first{of_a.async_acquire("name")};
        begun second{of_a.async_acquire("name")};
        EXPECT_TRUE(eventually([&] { return of_a.statistics().waiting == 2; }));
        static_cast<void>(of_a.peek("name"));  // its answer comes behind those to what they asked, if the second did: who asks after the reset would be the first
        reset(a, of_a);
        EXPECT_TRUE(first.get().allowed);
        EXPECT_FALSE(second.done());
        reset(a, of_a);
        EXPECT_TRUE(second.get().allowed);
        std::optional<begun<rate_decision>> third;
        auto const before = of_a.statistics().asked;
        auto const reset_behind_question = [&]() -> task<bool> {
            next_turn const turn{a};
            co_await turn;
            third.emplace(of_a.async_acquire("name"));
            while (of_a.statistics().asked == before) co_await turn;
            auto resetting = of_a.async_reset("name");
            co_await std::move(resetting);
            co_return true;
        };
        EXPECT_TRUE(sync_wait(reset_behind_question()));
        EXPECT_TRUE(third->get().allowed) << "also when it comes with the answer";
        reset(a, of_a);
    }
}

TEST_P(rate_limiter_contract, decides_nothing_before_it_is_awaited) {
    for (auto const how : all_algorithms) {
        SCOPED_TRACE(kind_of(how));
        auto cached = plan(how, 1, 1h);
        cached.block_cache = 10;
        cached.longest_block = 1h;
        rate_limiter of_a{a, "api", cached};
        std::array<std::string_view, 1> const names{"name"};
        auto early = of_a.async_try_acquire("name");
        try_acquire(a, of_a);
        EXPECT_FALSE(try_acquire(a, of_a).local);
        EXPECT_TRUE(sync_wait(std::move(early)).local) << "blocked since";
        auto blocked = of_a.async_try_acquire("name");
        auto all_blocked = of_a.async_try_acquire_all(names);
        reset(a, of_a);
        EXPECT_TRUE(sync_wait(std::move(blocked)).allowed) << "no longer";
        reset(a, of_a);
        EXPECT_TRUE(sync_wait(std::move(all_blocked)).front().allowed);
        reset(a, of_a);
    }
}

TEST_P(rate_limiter_contract, has_all_its_time_from_when_it_is_awaited) {
    client hasty{url()};
    auto together = plan(sliding_log, 1, 1h);
    together.together = true;
    together.command_timeout = 2s;
    rate_limiter of_hasty{hasty, "name", together};
    std::array<std::string_view, 2> const keys{"x", "y"};
    auto looking = of_hasty.async_peek("x");
    auto taking = of_hasty.async_try_acquire_all(keys);
    auto const begin = now_ms();
    EXPECT_TRUE(eventually([&] { return now_ms() - begin > 2'100; }));
    EXPECT_TRUE(sync_wait(std::move(looking)).allowed);
    EXPECT_TRUE(sync_wait(std::move(taking)).front().allowed);
}

TEST_P(rate_limiter_contract, ends_waiting_by_a_stop_token_and_when_the_client_closes) {
    for (auto const how : all_algorithms) {
        SCOPED_TRACE(kind_of(how));
        client brief{url()};
        rate_limiter of_a{brief, "api", plan(how, 1, 1h)};
        try_acquire(brief, of_a);
        std::stop_source stop;
        begun stopped{with_stop_token(of_a.async_acquire("name"), stop.get_token())};
        std::vector<begun<rate_decision>> waiting;
        for (int i = 0; i < 5; ++i) waiting.emplace_back(of_a.async_acquire("name"));
        EXPECT_TRUE(eventually([&] { return of_a.statistics().waiting == 6 && of_a.statistics().asked >= 2; }));
        stop.request_stop();
        EXPECT_EQ(ending_of([&] { stopped.get(); }).reason, errc::cancelled);
        EXPECT_TRUE(eventually([&] { return of_a.statistics().waiting == 5; }));
        brief.close();
        for (auto const& one : waiting) EXPECT_EQ(ending_of([&] { one.get(); }).reason, errc::cancelled);
        rate_limiter{a, "api", plan(how, 1, 1h)}.reset("name");
    }
}

TEST_P(rate_limiter_contract, lets_those_of_one_process_in_by_turns_without_hammering) {
    for (auto const how : all_algorithms) {
        SCOPED_TRACE(kind_of(how));
        rate_limiter of_a{a, "api", plan(how, 5, 50ms)};
        std::mutex mutex;
        std::vector<int> order;
        std::vector<begun<bool>> waiting;
        auto const wait = [&](int i) -> task<bool> {
            auto waits = of_a.async_acquire("name");
            co_await std::move(waits);
            std::lock_guard const guard{mutex};
            order.push_back(i);
            co_return true;
        };
        for (int i = 0; i < 40; ++i) waiting.emplace_back(wait(i));
        for (auto const& one : waiting) EXPECT_TRUE(one.get());
        EXPECT_EQ(of_a.statistics().allowed, 40U);
        if (how != token_bucket) {  // there each has its own time, and two may be due in the same turn
            EXPECT_TRUE(std::is_sorted(order.begin(), order.end())) << testing::PrintToString(order);
        }
        // All 40 may have asked before the first answer came; then each waits, and asks about once more.
        EXPECT_LE(of_a.statistics().asked, 40U + 2 * 40U);
    }
}

TEST_P(rate_limiter_contract, decides_for_many_keys_in_one_round_trip) {
    std::vector<std::string> names;
    for (int i = 0; i < 200; ++i) names.push_back("key " + std::to_string(i));
    std::vector<std::string_view> const keys(names.begin(), names.end());
    for (auto const how : all_algorithms) {
        SCOPED_TRACE(kind_of(how));
        rate_limiter of_a{a, "many", plan(how, 2, 1h)};
        auto const all = [&] {
            return run(
                a, [&] { return of_a.try_acquire_all(keys); }, [&] { return of_a.async_try_acquire_all(keys); });
        };
        try_acquire(a, of_a, "key 7", 2);
        auto const made = all();
        ASSERT_EQ(made.size(), 200U);
        for (std::size_t i = 0; i < made.size(); ++i) EXPECT_EQ(made[i].allowed, i != 7) << "each for itself";
    }
    rate_limiter of_a{a, "many", plan(sliding_log, 2, 1h)};
    EXPECT_EQ(ending_of([&] { static_cast<void>(of_a.try_acquire_all({})); }).reason, errc::invalid_argument);
    std::vector<std::string_view> const twice{"x", "x"};
    EXPECT_EQ(ending_of([&] { static_cast<void>(of_a.try_acquire_all(twice)); }).reason, errc::invalid_argument);
}

TEST_P(rate_limiter_contract, decides_each_of_many_who_ask_at_once_for_itself) {
    for (auto const how : all_algorithms) {
        SCOPED_TRACE(kind_of(how));
        auto together = plan(how, 3, 1h);
        together.together = true;  // all are at this server
        rate_limiter of_a{a, "name", together};
        auto const key_of = [&](std::string const& key) { return "lockstep:{name}:" + kind_of(how) + "_of:" + key; };
        auto const writing = how == sliding_log ? "SET" : "RPUSH";
        server.must({writing, key_of("another type"), "mine"});
        try_acquire(a, of_a, "empty", 3);
        server.must({"CONFIG", "RESETSTAT"});
        auto const before = of_a.statistics();
        std::map<std::string, int> allowed;
        int failed = 0;
        auto const ask = [&](std::string key, std::int64_t cost) -> task<void> {
            auto asking = of_a.async_try_acquire(key, cost);
            try {
                auto const made = co_await std::move(asking);
                allowed[key] += made.allowed ? static_cast<int>(cost) : 0;
                EXPECT_EQ(made.allowed, made.retry_after == 0us);
            } catch (server_error const& problem) {
                EXPECT_EQ(key, "another type") << problem.what();
                ++failed;
            }
        };
        auto const all = [&]() -> task<void> {
            auto turn = in_turn_of(a, [] { return true; });
            co_await std::move(turn);
            std::vector<task<void>> each;
            for (int i = 0; i < 20; ++i) {
                for (std::string const key : {"x", "another type", "empty"}) each.push_back(ask(key, 1));
                each.push_back(ask("y" + std::to_string(i), 1));
            }
            each.push_back(ask("twos", 2));
            each.push_back(ask("twos", 2));
            auto waiting = when_all(std::move(each));
            co_await std::move(waiting);
        };
        sync_wait(all());
        EXPECT_EQ(failed, 20) << "nobody else";
        EXPECT_EQ(allowed["x"], 3) << "however often it is in one call";
        EXPECT_EQ(allowed["empty"], 0);
        EXPECT_EQ(allowed["twos"], 2);
        for (int i = 0; i < 20; ++i) EXPECT_EQ(allowed["y" + std::to_string(i)], 1);
        EXPECT_EQ(of_a.statistics().asked, before.asked + 82);
        EXPECT_EQ(of_a.statistics().allowed, before.allowed + 24);
        if (GetParam().where != topology::cluster) {
            EXPECT_LE(calls_of(server, "evalsha") + calls_of(server, "eval"), 8) << "they share calls";
        }
    }
}

TEST_P(rate_limiter_contract, takes_from_all_or_from_none_when_keys_are_kept_together) {
    std::vector<std::string_view> const keys{"x", "y", "z"};
    for (auto const how : all_algorithms) {
        SCOPED_TRACE(kind_of(how));
        auto together = plan(how, 3, 1h);
        together.together = true;
        rate_limiter of_a{a, "name", together};
        auto const all = [&](std::int64_t cost) {
            return run(
                a, [&] { return of_a.try_acquire_all(keys, cost); }, [&] { return of_a.async_try_acquire_all(keys, cost); });
        };
        try_acquire(a, of_a, "y", 1);
        for (auto const& one : all(2)) EXPECT_TRUE(one.allowed);
        auto const refused = all(1);
        for (auto const& one : refused) EXPECT_FALSE(one.allowed);
        EXPECT_EQ(refused[0].retry_after, 0us);
        EXPECT_GT(refused[1].retry_after, 0us) << "this one is to blame";
        EXPECT_EQ(of_a.peek("x").remaining, 1) << "nothing was taken";
        EXPECT_EQ(of_a.peek("y").remaining, 0);
    }
}

TEST_P(rate_limiter_contract, refuses_blocked_keys_without_the_server) {
    for (auto const how : all_algorithms) {
        SCOPED_TRACE(kind_of(how));
        auto cached = plan(how, 2, 1h);
        cached.block_cache = 2;
        cached.longest_block = 1h;
        rate_limiter of_a{a, "api", cached};
        rate_limiter of_b{b, "api", cached};
        try_acquire(a, of_a, "name", 1);
        EXPECT_FALSE(try_acquire(a, of_a, "name", 2).allowed);
        EXPECT_TRUE(try_acquire(a, of_a, "name", 1).allowed) << "a smaller one may fit";
        rate_decision const told[] = {try_acquire(a, of_a), try_acquire(a, of_a, "name", 2)};
        EXPECT_FALSE(told[0].local);
        auto const before = of_a.statistics();
        for (int i = 0; i < 100; ++i) {
            auto const made = try_acquire(a, of_a, "name", 1 + i % 2);
            EXPECT_FALSE(made.allowed);
            EXPECT_TRUE(made.local);
            EXPECT_LE(made.retry_after, told[i % 2].retry_after);
            EXPECT_GT(made.retry_after, 0us);
        }
        EXPECT_EQ(of_a.statistics().asked, before.asked);
        EXPECT_EQ(of_a.statistics().refused_locally, before.refused_locally + 100);
        for (std::string_view const other : {"p", "q", "r"}) {
            try_acquire(a, of_a, other, 2);
            EXPECT_FALSE(try_acquire(a, of_a, other).allowed);
        }
        EXPECT_EQ(of_a.statistics().blocked_keys, 2U) << "no more than that";
        EXPECT_FALSE(try_acquire(a, of_a).allowed);
        reset(a, of_a);
        EXPECT_TRUE(try_acquire(a, of_a).allowed) << "one's own reset is known";
        EXPECT_FALSE(try_acquire(b, of_b, "name", 2).local) << "each object knows what it was told";
    }
}

TEST_P(rate_limiter_contract, asks_again_when_a_block_is_over) {
    auto cached = plan(sliding_log, 1, 1h);
    cached.block_cache = 10;
    cached.longest_block = 30ms;
    rate_limiter of_a{a, "api", cached};
    try_acquire(a, of_a);
    EXPECT_FALSE(try_acquire(a, of_a).allowed);
    rate_limiter of_b{b, "api", cached};
    reset(b, of_b);
    EXPECT_TRUE(eventually([&] { return try_acquire(a, of_a).allowed; })) << "a reset by somebody else is seen soon";
}

TEST_P(rate_limiter_contract, takes_the_longest_times_as_for_ever) {
    auto patient = plan(sliding_log, 1, 50ms);
    patient.wait_limit = std::chrono::milliseconds::max();
    rate_limiter of_a{a, "api", patient};
    try_acquire(a, of_a);
    EXPECT_TRUE(acquire(a, of_a).allowed);
    auto cached = plan(sliding_log, 1, 1h);
    cached.block_cache = 10;
    cached.longest_block = std::chrono::milliseconds::max();
    rate_limiter of_b{b, "another", cached};
    try_acquire(b, of_b, "name");
    EXPECT_FALSE(try_acquire(b, of_b, "name").local);
    EXPECT_TRUE(try_acquire(b, of_b, "name").local);
}

TEST_P(rate_limiter_contract, refuses_what_it_cannot_use) {
    auto const reason = [&](rate_limit_options const& how, std::string_view name = "api") {
        return ending_of([&] { rate_limiter{a, name, how}; }).reason;
    };
    EXPECT_EQ(reason({}), errc::invalid_argument) << "no limit was named";
    EXPECT_EQ(reason({.limit = 1, .per = 0s}), errc::invalid_argument);
    EXPECT_EQ(reason({.limit = 1, .per = 367 * 24h}), errc::invalid_argument);
    EXPECT_EQ(reason({.limit = 1'000'001, .per = 1s}), errc::invalid_argument);
    EXPECT_EQ(reason({.limit = 1'000'001, .per = 1h}), errc::invalid_argument) << "too much for a log";
    EXPECT_EQ(reason({.limit = 10, .burst = 5}), errc::invalid_argument) << "a log has no burst";
    EXPECT_EQ(reason({.limit = 1, .per = 366 * 24h, .algorithm = token_bucket, .burst = 11}), errc::invalid_argument);
    EXPECT_EQ(reason({.limit = 1}, ""), errc::invalid_argument);
    EXPECT_EQ(reason({.limit = 1, .command_timeout = 0ms}), errc::invalid_argument);
    EXPECT_EQ(reason({.limit = 1, .on_unavailable = static_cast<rate_policy>(4)}), errc::invalid_argument);
    rate_limiter of_a{a, "api", plan(sliding_log, 1, 1s)};
    EXPECT_EQ(ending_of([&] { try_acquire(a, of_a, ""); }).reason, errc::invalid_argument);
    EXPECT_EQ(ending_of([&] { try_acquire(a, of_a, std::string(513, 'x')); }).reason, errc::invalid_argument);
    server.must({"SET", "lockstep:{name}:hits:api", "mine"});
    EXPECT_EQ(ending_of([&] { try_acquire(a, of_a); }).reason, errc::server);
    EXPECT_EQ(server.must({"GET", "lockstep:{name}:hits:api"}).text, "mine");
    EXPECT_TRUE(try_acquire(a, of_a, "{x}:\n%").allowed) << "any bytes make a key";
}

}  // namespace
}  // namespace lockstep::test
