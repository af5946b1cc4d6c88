// What follows from a schedule that is due: which jobs, and when it is due again.
#include "jobs/cron_text.hpp"

#include <lockstep/error.hpp>

#include <gtest/gtest.h>

namespace lockstep::detail {
namespace {

using namespace std::chrono_literals;

system_time at(std::chrono::milliseconds time) { return system_time{24h * 20'000 + time}; }

cron_turn turn(char const* expression, missed_runs missed, std::chrono::milliseconds due, std::chrono::milliseconds now, std::chrono::milliseconds late = 60s) {
    return reckon(cron_schedule{expression}, missed, late, at(due), at(now));
}

TEST(cron_reckon, runs_what_is_due_once) {
    for (auto const policy : {missed_runs::skip, missed_runs::once, missed_runs::all}) {
        auto const made = turn("0 * * * *", policy, 1h, 1h + 20ms);
        ASSERT_EQ(made.runs.size(), 1U);
        EXPECT_EQ(made.runs[0], at(1h));
        EXPECT_EQ(made.next, at(2h));
    }
}

TEST(cron_reckon, runs_all_that_are_late_but_not_missed) {
    auto const made = turn("* * * * * *", missed_runs::skip, 100s, 105s + 500ms);
    ASSERT_EQ(made.runs.size(), 6U);
    EXPECT_EQ(made.runs.front(), at(100s));
    EXPECT_EQ(made.runs.back(), at(105s));
    EXPECT_EQ(made.next, at(106s));
}

TEST(cron_reckon, leaves_out_what_was_missed) {
    auto const made = turn("0 * * * *", missed_runs::skip, 1h, 5h + 10min);
    EXPECT_TRUE(made.runs.empty());
    EXPECT_EQ(made.next, at(6h));
    auto const recent = turn("* * * * *", missed_runs::skip, 1h, 5h + 10s);
    ASSERT_EQ(recent.runs.size(), 1U) << "the last one was not missed, but is late";
    EXPECT_EQ(recent.runs[0], at(5h));
    auto const edge = turn("* * * * *", missed_runs::skip, 1h, 5h);
    EXPECT_EQ(edge.runs.size(), 2U) << "one that is just as old as may be is late";
}

TEST(cron_reckon, makes_up_once_for_all_that_was_missed) {
    auto const made = turn("0 * * * *", missed_runs::once, 1h, 5h + 10min);
    ASSERT_EQ(made.runs.size(), 1U);
    EXPECT_EQ(made.runs[0], at(1h));
    EXPECT_EQ(made.next, at(6h));
    EXPECT_EQ(turn("* * * * *", missed_runs::once, 1h, 5h + 10s).runs.size(), 1U) << "the one that is late does";
}

TEST(cron_reckon, makes_up_for_each_that_was_missed_up_to_a_thousand) {
    EXPECT_EQ(turn("0 * * * *", missed_runs::all, 1h, 5h + 10min).runs.size(), 5U);
    auto const many = turn("* * * * * *", missed_runs::all, 0s, 5h);
    EXPECT_EQ(many.runs.size(), 1000U);
    EXPECT_EQ(many.runs.front(), at(0s));
    EXPECT_EQ(many.next, at(5h - 60s)) << "the others are left out, but not those that are just late";
    auto const rest = turn("* * * * * *", missed_runs::all, 5h - 60s, 5h);
    EXPECT_EQ(rest.runs.size(), 61U);
    EXPECT_EQ(rest.next, at(5h + 1s));
}

TEST(cron_reckon, takes_several_turns_for_very_many_that_are_late) {
    auto const first = turn("* * * * * *", missed_runs::skip, 0s, 1999s, 1h);
    EXPECT_EQ(first.runs.size(), 1000U);
    EXPECT_EQ(first.next, at(1000s));
    auto const second = turn("* * * * * *", missed_runs::skip, 1000s, 1999s, 1h);
    EXPECT_EQ(second.runs.size(), 1000U);
    EXPECT_EQ(second.next, at(2000s));
}

TEST(cron_text, is_read_as_it_was_written) {
    cron_options const how{.expression = "0 2 * * MON", .zone = "Europe/Berlin", .missed = missed_runs::all, .late = 5s, .job = {.priority = -3, .key = "a key"}};
    auto const spec = "17 " + write_cron("nightly", "mail", "a\nb\n", how);
    auto const info = read_cron("nightly", 0, spec, "1000 5-1");
    EXPECT_EQ(info.expression, "0 2 * * MON");
    EXPECT_EQ(info.zone, "Europe/Berlin");
    EXPECT_EQ(info.missed, missed_runs::all);
    EXPECT_EQ(info.payload, "a\nb\n");
    EXPECT_EQ(info.last_job, "mail/5-1");
    EXPECT_EQ(*info.last, system_time{1s});
    EXPECT_FALSE(info.next);
    EXPECT_EQ(read_cron_head(spec.substr(0, spec.find('\n'))).version, 17);
    for (auto const* const bad : {"", "1", "1 mail", "x mail skip 1 0 0 0 UTC\t@daily", "1 mail never 1 0 0 0 UTC\t@daily", "1 mail skip 1 0 0 0 UTC"}) {
        EXPECT_THROW(read_cron_head(bad), protocol_error) << bad;
    }
}

}  // namespace
}  // namespace lockstep::detail
