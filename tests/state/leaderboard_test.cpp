// What a leaderboard promises, in both forms on every topology; then under faults and at midnight.
#include <lockstep/leaderboard.hpp>

#include "state/calendar.hpp"
#include "state_support.hpp"

#include <cmath>

namespace lockstep::test {
namespace {

using order = leaderboard_order;
using ties = leaderboard_ties;
using period = leaderboard_period;

/// "1 ada 30, 2 bob 20"
std::string text(std::vector<standing> const& all) {
    std::string made;
    for (auto const& one : all) {
        made += (made.empty() ? "" : ", ") + std::to_string(one.rank) + ' ' + one.member + ' ' + std::to_string(std::llround(one.score));
    }
    return made;
}

class leaderboard_contract : public contract {
protected:
    score_change add(leaderboard& board, std::string const& member, double score) {
        return run(
            a, [&] { return board.add(member, score); }, [&] { return board.async_add(member, score); });
    }
    score_change increment(leaderboard& board, std::string const& member, double by) {
        return run(
            a, [&] { return board.increment(member, by); }, [&] { return board.async_increment(member, by); });
    }
    score_change best_of(leaderboard& board, std::string const& member, double score) {
        return run(
            a, [&] { return board.best_of(member, score); }, [&] { return board.async_best_of(member, score); });
    }
    bool remove(leaderboard& board, std::string const& member) {
        return run(
            a, [&] { return board.remove(member); }, [&] { return board.async_remove(member); });
    }
    std::string top(leaderboard const& board, std::uint64_t count, std::uint64_t skip = 0) {
        return text(run(
            b, [&] { return board.top(count, skip); }, [&] { return board.async_top(count, skip); }));
    }
    std::string bottom(leaderboard const& board, std::uint64_t count) {
        return text(run(
            b, [&] { return board.bottom(count); }, [&] { return board.async_bottom(count); }));
    }
    std::string around(leaderboard const& board, std::string const& member, std::uint64_t count) {
        return text(run(
            b, [&] { return board.around(member, count); }, [&] { return board.async_around(member, count); }));
    }
    std::string range(leaderboard const& board, score_range which) {
        return text(run(
            b, [&] { return board.range(which); }, [&] { return board.async_range(which); }));
    }
    auto find(leaderboard const& board, std::string const& member) {
        return run(
            b, [&] { return board.find(member); }, [&] { return board.async_find(member); });
    }
    std::uint64_t size(leaderboard const& board) {
        return run(
            b, [&] { return board.size(); }, [&] { return board.async_size(); });
    }
};
LOCKSTEP_CONTRACT(leaderboard_contract);

TEST_P(leaderboard_contract, has_the_best_first) {
    leaderboard board{a, "name"};
    EXPECT_EQ(top(board, 10), "");
    EXPECT_EQ(add(board, "ada", 30).rank, 1U);
    EXPECT_EQ(add(board, "bob", 10).rank, 2U);
    EXPECT_EQ(add(board, "cyd", 20).rank, 2U);
    EXPECT_EQ(add(board, "dee", -5).rank, 4U);
    EXPECT_EQ(top(board, 2), "1 ada 30, 2 cyd 20");
    EXPECT_EQ(top(board, 2, 1), "2 cyd 20, 3 bob 10");
    EXPECT_EQ(top(board, 99), "1 ada 30, 2 cyd 20, 3 bob 10, 4 dee -5");
    EXPECT_EQ(top(board, 0), "");
    EXPECT_EQ(bottom(board, 2), "4 dee -5, 3 bob 10");
    EXPECT_EQ(bottom(board, 99), "4 dee -5, 3 bob 10, 2 cyd 20, 1 ada 30");
    EXPECT_EQ(around(board, "cyd", 1), "1 ada 30, 2 cyd 20, 3 bob 10");
    EXPECT_EQ(around(board, "ada", 1), "1 ada 30, 2 cyd 20");
    EXPECT_EQ(around(board, "eve", 1), "");
    EXPECT_EQ(range(board, {.lowest = 10, .highest = 20}), "2 cyd 20, 3 bob 10");
    EXPECT_EQ(range(board, {.lowest = 0}), "1 ada 30, 2 cyd 20, 3 bob 10");
    EXPECT_EQ(range(board, {.skip = 1, .count = 1}), "2 cyd 20");
    EXPECT_EQ(range(board, {.lowest = 99}), "");
    EXPECT_EQ(find(board, "bob")->rank, 3U);
    EXPECT_EQ(find(board, "bob")->score, 10);
    EXPECT_FALSE(find(board, "eve"));
    EXPECT_EQ(size(board), 4U);
    EXPECT_TRUE(remove(board, "ada"));
    EXPECT_FALSE(remove(board, "ada"));
    EXPECT_EQ(top(board, 1), "1 cyd 20");
}

TEST_P(leaderboard_contract, adds_increments_and_keeps_the_best) {
    leaderboard board{a, "name"};
    EXPECT_EQ(increment(board, "ada", 1.5).score, 1.5);
    EXPECT_EQ(increment(board, "ada", 2).score, 3.5);
    EXPECT_EQ(add(board, "ada", 1).score, 1);
    EXPECT_FALSE(add(board, "ada", 1).changed);
    auto const better = best_of(board, "ada", 7);
    EXPECT_TRUE(better.changed);
    auto const worse = best_of(board, "ada", 6);
    EXPECT_FALSE(worse.changed);
    EXPECT_EQ(worse.score, 7);
    EXPECT_EQ(worse.rank, 1U);
    EXPECT_TRUE(best_of(board, "bob", -1).changed) << "the first is the best";
    auto const large = std::ldexp(1.0, 53) - 1;
    EXPECT_EQ(add(board, "cyd", large - 1).score, large - 1);
    EXPECT_EQ(increment(board, "cyd", 1).score, large) << "whole numbers are exact to 2^53";
    EXPECT_EQ(add(board, "dee", 0.1).score, 0.1);
    EXPECT_EQ(find(board, "dee")->score, 0.1);
}

TEST_P(leaderboard_contract, can_have_the_lowest_first) {
    leaderboard board{a, "name", {.order = order::lowest_first}};
    add(board, "ada", 30);
    add(board, "bob", 10);
    EXPECT_FALSE(best_of(board, "bob", 11).changed);
    EXPECT_TRUE(best_of(board, "ada", 5).changed);
    EXPECT_EQ(top(board, 9), "1 ada 5, 2 bob 10");
    EXPECT_EQ(range(board, {.lowest = 6}), "2 bob 10");
}

TEST_P(leaderboard_contract, orders_equal_scores_by_member_or_by_who_came_first) {
    leaderboard plain{a, "name"};
    for (auto const* const one : {"cyd", "ada", "bob"}) add(plain, one, 5);
    EXPECT_EQ(top(plain, 9), "1 ada 5, 2 bob 5, 3 cyd 5");
    leaderboard timed{a, "timed", {.ties = ties::earlier_first}};
    for (auto const* const one : {"cyd", "ada", "bob"}) EXPECT_TRUE(add(timed, one, 5).changed);
    EXPECT_EQ(top(timed, 9), "1 cyd 5, 2 ada 5, 3 bob 5");
    EXPECT_EQ(find(timed, "bob")->rank, 3U);
    EXPECT_FALSE(add(timed, "cyd", 5).changed) << "and so it keeps its place";
    EXPECT_FALSE(best_of(timed, "cyd", 4).changed);
    EXPECT_EQ(top(timed, 1), "1 cyd 5");
    increment(timed, "cyd", 1);
    increment(timed, "cyd", -1);
    EXPECT_EQ(top(timed, 9), "1 ada 5, 2 bob 5, 3 cyd 5") << "it came to this score anew";
    EXPECT_EQ(around(timed, "bob", 1), "1 ada 5, 2 bob 5, 3 cyd 5");
    EXPECT_EQ(range(timed, {.lowest = 5, .highest = 5, .count = 2}), "1 ada 5, 2 bob 5");
    EXPECT_TRUE(remove(timed, "ada"));
    EXPECT_EQ(size(timed), 2U);
    add(timed, "ada", 5);
    EXPECT_EQ(bottom(timed, 1), "3 ada 5");
    leaderboard other{b, "timed"};
    EXPECT_EQ(ending_of([&] { static_cast<void>(other.add("x", 1)); }).reason, errc::server) << "all must agree on the options";
}

TEST_P(leaderboard_contract, has_a_board_for_each_period_which_ends_after_its_retention) {
    leaderboard board{a, "name", {.period = period::daily, .retention = 48h}};
    increment(board, "ada", 2);
    auto const before = std::chrono::system_clock::now();
    EXPECT_EQ(top(board.at(before), 9), top(board, 9)) << "unless it is midnight right now";
    auto const day = detail::span_of(period::daily, std::chrono::duration_cast<std::chrono::milliseconds>(before.time_since_epoch()).count());
    auto const key = "lockstep:{name}:board:" + day.label;
    for (auto const& one : {key, key + ":about"}) {
        auto const left = server.must({"PTTL", one}).integer;
        EXPECT_GT(left, 47LL * 3'600'000);
        EXPECT_LE(left, 72LL * 3'600'000);
    }
    auto const yesterday = detail::span_of(period::daily, day.from_ms - 1);
    EXPECT_EQ(size(board.previous()), 0U);
    server.must({"ZADD", "lockstep:{name}:board:" + yesterday.label, "-7", "bob"});
    server.must({"HSET", "lockstep:{name}:board:" + yesterday.label + ":about", "v", "board 1 member -1"});
    EXPECT_EQ(top(board.previous(), 9), "1 bob 7");
    EXPECT_EQ(top(board.at(before - 24h), 9), "1 bob 7");
    EXPECT_EQ(top(board, 9), "1 ada 2");
    auto old = board.previous();
    EXPECT_EQ(ending_of([&] { add(old, "x", 1); }).reason, errc::invalid_argument);
    leaderboard whole{a, "whole"};
    EXPECT_EQ(ending_of([&] { static_cast<void>(whole.previous()); }).reason, errc::invalid_argument);
}

TEST_P(leaderboard_contract, refuses_what_it_cannot_use) {
    leaderboard board{a, "name"};
    EXPECT_EQ(ending_of([&] { add(board, "", 1); }).reason, errc::invalid_argument);
    EXPECT_EQ(ending_of([&] { add(board, "x", std::nan("")); }).reason, errc::invalid_argument);
    EXPECT_EQ(ending_of([&] { add(board, "x", HUGE_VAL); }).reason, errc::invalid_argument);
    EXPECT_EQ(ending_of([&] { range(board, {.lowest = std::nan("")}); }).reason, errc::invalid_argument);
    EXPECT_EQ(ending_of([&] { leaderboard(a, "x", {.retention = 0ms}); }).reason, errc::invalid_argument);
    add(board, "x", 1e308);
    EXPECT_EQ(ending_of([&] { increment(board, "x", 1e308); }).reason, errc::invalid_argument);
    EXPECT_EQ(find(board, "x")->score, 1e308);
}

TEST(calendar, knows_hours_days_weeks_and_months_in_utc) {
    using detail::span_of;
    std::int64_t const at = 1'772'323'199'999;  // 2026-02-28 23:59:59.999, a Saturday
    EXPECT_EQ(span_of(period::hourly, at).label, "hour:2026-02-28T23");
    EXPECT_EQ(span_of(period::daily, at).label, "day:2026-02-28");
    EXPECT_EQ(span_of(period::weekly, at).label, "week:2026-02-23");
    EXPECT_EQ(span_of(period::monthly, at).label, "month:2026-02");
    for (auto const which : {period::hourly, period::daily, period::monthly}) {
        auto const span = span_of(which, at);
        EXPECT_LE(span.from_ms, at);
        EXPECT_EQ(span.until_ms, at + 1);
        EXPECT_EQ(span_of(which, at + 1).from_ms, span.until_ms);
    }
    EXPECT_EQ(span_of(period::monthly, at + 1).label, "month:2026-03");
    EXPECT_EQ(span_of(period::weekly, at).until_ms - at, 1 + 86'400'000);
    EXPECT_EQ(span_of(period::weekly, 1'771'804'800'000).label, "week:2026-02-23") << "a Monday at midnight";
    EXPECT_EQ(span_of(period::all_time, at).until_ms, 0);
}

TEST(leaderboard_faults, an_increment_whose_reply_is_lost_counts_once) {
    redis_server server;
    fault_proxy proxy{server.address()};
    client far{proxy.url()};
    for (auto const how : {ties::by_member, ties::earlier_first}) {
        leaderboard board{far, how == ties::by_member ? "plain" : "timed", {.ties = how, .period = period::weekly}};
        board.increment("ada", 1);
        for (int i = 0; i < 3; ++i) {
            proxy.drop_replies(1);
            auto const made = board.increment("ada", 1);
            EXPECT_EQ(made.score, i + 2);
            EXPECT_TRUE(made.changed);
        }
        EXPECT_EQ(board.size(), 1U);
    }
    EXPECT_EQ(proxy.counters().struck, 6U);
}

}  // namespace
}  // namespace lockstep::test
