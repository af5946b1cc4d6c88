// What is due when, by hand. Against a slow reference: cron_reference_test.cpp.
#include "jobs/cron.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <lockstep/error.hpp>

#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <string>
#include <vector>

namespace lockstep::detail {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAreArray;
using testing::HasSubstr;
using time_point = std::chrono::system_clock::time_point;

// "2024-03-31 01:00" or with seconds, in UTC.
time_point utc(std::string const& text) {
    std::tm parts{};
    EXPECT_GE(std::sscanf(text.c_str(), "%d-%d-%d %d:%d:%d", &parts.tm_year, &parts.tm_mon, &parts.tm_mday, &parts.tm_hour, &parts.tm_min, &parts.tm_sec), 5);
    parts.tm_year -= 1900;
    parts.tm_mon -= 1;
    return std::chrono::system_clock::from_time_t(::timegm(&parts));
}

std::string text_of(time_point time) {
    auto const seconds = std::chrono::system_clock::to_time_t(time);
    std::tm parts{};
    ::gmtime_r(&seconds, &parts);
    std::string text(32, '\0');
    text.resize(std::strftime(text.data(), text.size(), parts.tm_sec == 0 ? "%Y-%m-%d %H:%M" : "%Y-%m-%d %H:%M:%S", &parts));
    return text;
}

struct due_times {
    char const* expression;
    char const* zone;
    char const* after;
    std::vector<std::string> due;  // in UTC
};

void expect_due(std::vector<due_times> const& all) {
    for (auto const& [expression, zone, after, due] : all) {
        cron_schedule const schedule{expression, zone};
        std::vector<std::string> found;
        for (auto time = utc(after); found.size() != due.size(); found.push_back(text_of(time))) time = schedule.next(time);
        EXPECT_THAT(found, ElementsAreArray(due)) << schedule.label() << " after " << after;
    }
}

TEST(cron, finds_due_times_field_by_field) {
    expect_due({
        {"* * * * *", "UTC", "2024-01-01 00:00", {"2024-01-01 00:01", "2024-01-01 00:02"}},
        {"*/5 * * * *", "UTC", "2024-01-01 00:52", {"2024-01-01 00:55", "2024-01-01 01:00"}},
        {"10-40/10 * * * *", "UTC", "2024-01-01 00:25", {"2024-01-01 00:30", "2024-01-01 00:40", "2024-01-01 01:10"}},
        {"5/15 * * * *", "UTC", "2024-01-01 00:05", {"2024-01-01 00:20", "2024-01-01 00:35", "2024-01-01 00:50", "2024-01-01 01:05"}},
        {"0,30 8-9,17 * * *", "UTC", "2024-01-01 08:59", {"2024-01-01 09:00", "2024-01-01 09:30", "2024-01-01 17:00", "2024-01-01 17:30", "2024-01-02 08:00"}},
        {"*/60 */24 * * *", "UTC", "2024-01-01 00:00", {"2024-01-02 00:00"}},
        {"*/20 * * * * *", "UTC", "2024-01-01 00:00:30", {"2024-01-01 00:00:40", "2024-01-01 00:01"}},
        {"30 59 23 31 12 *", "UTC", "2023-12-31 23:59:30", {"2024-12-31 23:59:30"}},
        {"\t15  14 1\t* * ", "UTC", "2024-01-01 14:15", {"2024-02-01 14:15"}},
        {"0 0 1 jan,Jul ?", "UTC", "2024-01-01 00:00", {"2024-07-01 00:00", "2025-01-01 00:00"}},
        {"0 0 ? MAR-APR mon", "UTC", "2024-03-20 00:00", {"2024-03-25 00:00", "2024-04-01 00:00"}},
    });
}

TEST(cron, knows_the_calendar) {
    expect_due({
        {"0 0 * * *", "UTC", "2024-12-31 12:00", {"2025-01-01 00:00"}},
        {"0 0 29 2 *", "UTC", "2024-02-29 00:00", {"2028-02-29 00:00"}},
        {"0 0 29 2 *", "UTC", "2096-02-29 00:00", {"2104-02-29 00:00"}},
        {"0 0 L * *", "UTC", "2023-01-31 12:00", {"2023-02-28 00:00", "2023-03-31 00:00", "2023-04-30 00:00"}},
        {"0 0 15,l 2 *", "UTC", "2024-01-31 12:00", {"2024-02-15 00:00", "2024-02-29 00:00", "2025-02-15 00:00", "2025-02-28 00:00"}},
        {"0 0 31 * *", "UTC", "2024-01-31 00:00", {"2024-03-31 00:00", "2024-05-31 00:00", "2024-07-31 00:00", "2024-08-31 00:00"}},
        {"0 0 28-31 2 *", "UTC", "2023-02-01 00:00", {"2023-02-28 00:00", "2024-02-28 00:00", "2024-02-29 00:00"}},
        {"0 9 * * MON-FRI", "UTC", "2024-01-04 09:00", {"2024-01-05 09:00", "2024-01-08 09:00"}},
        {"0 0 * * 0", "UTC", "2024-01-01 00:00", {"2024-01-07 00:00"}},
        {"0 0 * * 7", "UTC", "2024-01-01 00:00", {"2024-01-07 00:00"}},
        {"0 0 * * SAT-SUN", "UTC", "2024-01-01 00:00", {"2024-01-06 00:00", "2024-01-07 00:00", "2024-01-13 00:00"}},
        {"0 0 * * 5-7", "UTC", "2024-01-01 00:00", {"2024-01-05 00:00", "2024-01-06 00:00", "2024-01-07 00:00", "2024-01-12 00:00"}},
        {"0 0 * * 7-1", "UTC", "2024-01-01 00:00", {"2024-01-07 00:00", "2024-01-08 00:00", "2024-01-14 00:00"}},
    });
}

TEST(cron, takes_either_day_where_both_are_restricted) {
    expect_due({
        {"0 12 13 * FRI", "UTC", "2024-09-28 00:00", {"2024-10-04 12:00", "2024-10-11 12:00", "2024-10-13 12:00", "2024-10-18 12:00"}},
        {"0 0 L * MON", "UTC", "2024-02-20 00:00", {"2024-02-26 00:00", "2024-02-29 00:00", "2024-03-04 00:00"}},
        {"0 0 30 2 MON", "UTC", "2024-02-20 00:00", {"2024-02-26 00:00", "2025-02-03 00:00"}},
        // A step on a star restricts nothing, as in crontabs: both must match.
        {"0 0 */2 * MON", "UTC", "2024-01-01 00:00", {"2024-01-15 00:00", "2024-01-29 00:00", "2024-02-05 00:00"}},
        {"0 0 29 2 */7", "UTC", "2024-01-01 00:00", {"2032-02-29 00:00"}},
    });
}

TEST(cron, knows_what_the_words_stand_for) {
    expect_due({
        {"@hourly", "UTC", "2024-02-10 11:30", {"2024-02-10 12:00"}},
        {"@daily", "UTC", "2024-02-10 11:30", {"2024-02-11 00:00"}},
        {"@midnight", "Asia/Kolkata", "2024-02-10 11:30", {"2024-02-10 18:30"}},
        {"@weekly", "UTC", "2024-02-10 11:30", {"2024-02-11 00:00", "2024-02-18 00:00"}},
        {"@monthly", "UTC", "2024-02-10 11:30", {"2024-03-01 00:00"}},
        {"@yearly", "UTC", "2024-02-10 11:30", {"2025-01-01 00:00"}},
        {"@Annually", "UTC", "2024-02-10 11:30", {"2025-01-01 00:00"}},
    });
}

TEST(cron, is_due_strictly_later_and_on_whole_seconds) {
    cron_schedule const schedule{"*/5 * * * *"};
    auto const five = utc("2024-01-01 00:05");
    EXPECT_EQ(schedule.next(five - 1ns), five);
    EXPECT_EQ(schedule.next(five), five + 5min);
    EXPECT_EQ(schedule.next(five + 1ns), five + 5min);
    EXPECT_EQ(cron_schedule{"* * * * * *"}.next(time_point{} - 500ms), time_point{});
    EXPECT_EQ(cron_schedule{"* * * * * *"}.next(time_point{} - 1500ms), time_point{} - 1s);
}

TEST(cron, follows_the_clock_of_its_zone) {
    expect_due({
        {"0 9 * * *", "Europe/Berlin", "2024-01-15 12:00", {"2024-01-16 08:00"}},
        {"0 9 * * *", "Europe/Berlin", "2024-07-15 12:00", {"2024-07-16 07:00"}},
        {"0 9 * * *", "Europe/Berlin", "2050-07-15 12:00", {"2050-07-16 07:00"}},
        {"0 9 * * MON", "America/New_York", "2024-01-15 14:00", {"2024-01-22 14:00"}},
        {"0 20 31 * *", "America/New_York", "2024-01-15 00:00", {"2024-02-01 01:00", "2024-04-01 00:00"}},
        {"0 9 * * *", "Asia/Kolkata", "2024-01-15 12:00", {"2024-01-16 03:30"}},
        {"*/15 * * * *", "Asia/Kolkata", "2024-01-15 12:05", {"2024-01-15 12:15", "2024-01-15 12:30"}},
        {"0 9 * * *", "Australia/Lord_Howe", "2024-07-15 00:00", {"2024-07-15 22:30"}},
        {"0 9 * * *", "Australia/Lord_Howe", "2024-01-15 00:00", {"2024-01-15 22:00"}},
        {"0 0 1 1 *", "Pacific/Kiritimati", "2024-06-01 00:00", {"2024-12-31 10:00"}},
    });
}

TEST(cron, fires_once_at_the_change_what_clocks_skip) {
    expect_due({
        {"30 2 * * *", "Europe/Berlin", "2024-03-30 00:00", {"2024-03-30 01:30", "2024-03-31 01:00", "2024-04-01 00:30"}},
        {"30 2 * * *", "Europe/Berlin", "2024-03-31 00:59:59", {"2024-03-31 01:00", "2024-04-01 00:30"}},
        {"30 2 * * *", "Europe/Berlin", "2050-03-26 12:00", {"2050-03-27 01:00", "2050-03-28 00:30"}},
        {"0,15,45 2 * * *", "Europe/Berlin", "2024-03-31 00:00", {"2024-03-31 01:00", "2024-04-01 00:00"}},
        {"*/20 2 * * *", "Europe/Berlin", "2024-03-31 00:00", {"2024-03-31 01:00", "2024-04-01 00:00"}},
        {"0 2,3 * * *", "Europe/Berlin", "2024-03-31 00:00", {"2024-03-31 01:00", "2024-04-01 00:00"}},  // that moment is three o'clock, too
        {"30 1-3 * * *", "Europe/Berlin", "2024-03-31 00:00", {"2024-03-31 00:30", "2024-03-31 01:00", "2024-03-31 01:30"}},
        {"30 2 * * *", "America/New_York", "2024-03-10 00:00", {"2024-03-10 07:00", "2024-03-11 06:30"}},
        {"15 2 * * *", "Australia/Lord_Howe", "2024-10-05 00:00", {"2024-10-05 15:30", "2024-10-06 15:15"}},
        {"45 2 * * *", "Australia/Lord_Howe", "2024-10-05 00:00", {"2024-10-05 15:45", "2024-10-06 15:45"}},
        {"@daily", "Africa/Cairo", "2024-04-25 00:00", {"2024-04-25 22:00", "2024-04-26 21:00"}},
        {"0 12 * * *", "Pacific/Apia", "2011-12-29 12:00", {"2011-12-29 22:00", "2011-12-30 10:00", "2011-12-30 22:00"}},  // no 30th of December
    });
}

TEST(cron, fires_the_first_time_what_clocks_repeat) {
    expect_due({
        {"30 2 * * *", "Europe/Berlin", "2024-10-26 12:00", {"2024-10-27 00:30", "2024-10-28 01:30"}},
        {"30 2 * * *", "Europe/Berlin", "2024-10-27 00:30", {"2024-10-28 01:30"}},
        {"30 2 * * *", "Europe/Berlin", "2024-10-27 01:10", {"2024-10-28 01:30"}},
        {"0 */2 * * *", "Europe/Berlin", "2024-10-26 22:00", {"2024-10-27 00:00", "2024-10-27 03:00"}},
        {"59 2,3 * * *", "Europe/Berlin", "2024-10-27 01:59:30", {"2024-10-27 02:59"}},
        {"30 1 * * *", "America/New_York", "2024-11-02 12:00", {"2024-11-03 05:30", "2024-11-04 06:30"}},
        {"45 1 * * *", "Australia/Lord_Howe", "2024-04-06 00:00", {"2024-04-06 14:45", "2024-04-07 15:15"}},
    });
}

TEST(cron, fires_as_real_time_passes_where_every_hour_is_due) {
    expect_due({
        {"*/30 * * * *", "Europe/Berlin", "2024-10-27 00:00", {"2024-10-27 00:30", "2024-10-27 01:00", "2024-10-27 01:30", "2024-10-27 02:00"}},
        {"15 * * * *", "Europe/Berlin", "2024-10-27 00:00", {"2024-10-27 00:15", "2024-10-27 01:15", "2024-10-27 02:15"}},
        {"15 0-23 * * *", "Europe/Berlin", "2024-03-31 00:00", {"2024-03-31 00:15", "2024-03-31 01:15", "2024-03-31 02:15"}},
        {"0,30 * * * *", "Australia/Lord_Howe", "2024-04-06 14:00", {"2024-04-06 14:30", "2024-04-06 15:00", "2024-04-06 15:30"}},
        {"15 * * * *", "Australia/Lord_Howe", "2024-10-05 14:00", {"2024-10-05 14:45", "2024-10-05 16:15"}},
        // An interval within some hours: goes on through the repeated one.
        {"*/20 2 * * *", "Europe/Berlin", "2024-10-27 00:10",
         {"2024-10-27 00:20", "2024-10-27 00:40", "2024-10-27 01:00", "2024-10-27 01:20", "2024-10-27 01:40", "2024-10-28 01:00"}},
    });
}

std::string refusal(std::string const& text, std::string const& zone = "UTC") {
    try {
        cron_schedule const schedule{text, zone};
    } catch (invalid_argument_error const& problem) {
        return problem.what();
    }
    return "accepted";
}

TEST(cron, says_what_is_wrong_and_what_is_allowed) {
    auto const expect = [](std::string const& text, std::string const& why) { EXPECT_EQ(refusal(text), "cron '" + text + "': " + why); };
    expect("61 * * * *", "minute is 0 to 59, not 61");
    expect("60 * * * * *", "second is 0 to 59, not 60");
    expect("* 24 * * *", "hour is 0 to 23, not 24");
    expect("* * 0 * *", "day-of-month is 1 to 31 or L, not 0");
    expect("* * 1-32 * *", "day-of-month is 1 to 31 or L, not 32");
    expect("* * L-3 * *", "day-of-month is 1 to 31 or L, not L-3");
    expect("* * * 13 *", "month is 1 to 12 or JAN to DEC, not 13");
    expect("* * * JANUARY *", "month is 1 to 12 or JAN to DEC, not JANUARY");
    expect("* * * * 8", "day-of-week is 0 to 7 or SUN to SAT, not 8");
    expect("* * * * 5L", "day-of-week is 0 to 7 or SUN to SAT, not 5L");
    expect("x * * * *", "minute is 0 to 59, not x");
    expect("-5 * * * *", "minute is 0 to 59, not -5");
    expect("5- * * * *", "minute is 0 to 59, not 5-");
    expect("+5 * * * *", "minute is 0 to 59, not +5");
    expect("1.5 * * * *", "minute is 0 to 59, not 1.5");
    expect("1-2-3 * * * *", "minute is 0 to 59, not 2-3");
    expect("99999999999999999999 * * * *", "minute is 0 to 59, not 99999999999999999999");
    expect("1,,2 * * * *", "minute is 0 to 59, not 1,,2");
    expect("1, * * * *", "minute is 0 to 59, not 1,");
    expect("MON * * * *", "minute is 0 to 59, not MON");
    expect("? * * * *", "minute is 0 to 59, not ?");
    expect("** * * * *", "minute is 0 to 59, not **");
    expect("*/0 * * * *", "a step of minute is 1 to 60, not 0");
    expect("*/90 * * * *", "a step of minute is 1 to 60, not 90");
    expect("*/ * * * *", "a step of minute is 1 to 60, not nothing");
    expect("1/2/3 * * * *", "a step of minute is 1 to 60, not 2/3");
    expect("/5 * * * *", "minute is 0 to 59, not /5");
    expect("* 22-2 * * *", "a range of hour goes up, not 22-2; write 22-23,0-2");
    expect("* * * * FRI-MON", "a range of day-of-week goes up, not FRI-MON; write 5-6,0-1");
    auto const fields = "there are 5 fields (minute hour day-of-month month day-of-week) or 6 (second first), not ";
    expect("", fields + std::string{"0"});
    expect("* * * *", fields + std::string{"4"});
    expect("* * * * * * 2024", fields + std::string{"7"});
    expect("@reboot", "there are @yearly, @annually, @monthly, @weekly, @daily, @midnight and @hourly, not @reboot");
    EXPECT_EQ(refusal(std::string(300, '*')), "cron: an expression has at most 256 characters, not 300");
}

TEST(cron, refuses_what_would_never_fire) {
    for (auto const* const text : {"0 0 30 2 *", "0 0 31 2,4,6,9,11 *", "0 0 30-31 FEB ?", "0 0 31 4 */2"})
        EXPECT_EQ(refusal(text), "cron '" + std::string{text} + "': it would never fire, for none of its months has such a day");
    for (auto const* const text : {"0 0 29 2 *", "0 0 31 2,3 *", "0 0 31,L 2 *", "0 0 30 2 MON"}) EXPECT_EQ(refusal(text), "accepted");
}

TEST(cron, names_a_zone_that_it_does_not_know) {
    EXPECT_EQ(refusal("* * * * *", "Europe/Berlim"), "time zone 'Europe/Berlim' is not known; names are IANA's, such as Europe/Berlin, in that spelling");
    EXPECT_THAT(refusal("* * * * *", "Europe"), HasSubstr("'Europe' is not known"));
    for (auto const* const name : {"", "localtime", "/etc/localtime", "../../../etc/localtime", "file:/etc/localtime", "Europe/Ber lin"})
        EXPECT_EQ(refusal("* * * * *", name), "time zone: an IANA name such as UTC or Europe/Berlin, not '" + std::string{name} + "'");
}

TEST(cron, says_when_the_machine_has_no_zones) {
    GTEST_FLAG_SET(death_test_style, "threadsafe");  // a process that has not loaded any yet
    auto const look = [] {
        ::setenv("TZDIR", "/nonexistent", 1);
        std::fputs((refusal("* * * * *", "UTC") + "; " + refusal("* * * * *", "Asia/Tokyo")).c_str(), stderr);
        std::exit(0);
    };
    EXPECT_EXIT(look(), testing::ExitedWithCode(0), "accepted; time zone 'Asia/Tokyo' is not known, .* lacks the time zones .Debian: tzdata.");
}

TEST(cron, can_be_listed) {
    cron_schedule const schedule{"30 2 * * MON-FRI", "Europe/Berlin"};
    EXPECT_EQ(schedule.text(), "30 2 * * MON-FRI");
    EXPECT_EQ(schedule.zone(), "Europe/Berlin");
    EXPECT_EQ(schedule.label(), "30 2 * * MON-FRI (Europe/Berlin)");
    EXPECT_EQ(cron_schedule{"@daily"}.zone(), "UTC");
}

// Time of this process, so that others on the machine do not matter. It takes a fiftieth of what is allowed.
TEST(cron, plans_ten_thousand_schedules_in_a_moment) {
    std::vector<cron_schedule> schedules;
    for (int i = 0; i != 10000; ++i) {
        auto const minute = std::to_string(i % 60);
        auto const hour = std::to_string(i % 24);
        std::vector<std::string> const kinds{minute + " * * * *", minute + " " + hour + " * * *", "*/5 * * * *",
                                             minute + " " + hour + " * * MON-FRI", "0 " + hour + " 1 * *"};
        schedules.emplace_back(kinds[static_cast<std::size_t>(i) % kinds.size()], "Europe/Berlin");
    }
    auto const begin = std::clock();
    auto const now = utc("2024-05-05 12:34:56");
    std::int64_t sum = 0;
    for (auto const& schedule : schedules) sum += schedule.next(now).time_since_epoch().count() & 1;
    auto const micros = static_cast<double>(std::clock() - begin) * 1e6 / CLOCKS_PER_SEC / static_cast<double>(schedules.size());
    RecordProperty("microseconds_each", std::to_string(micros));
    EXPECT_LT(micros, 10.0) << sum;
}

}  // namespace
}  // namespace lockstep::detail
