// Random cron expressions against a reference that steps through time and looks at the clock on the wall: the C library's, which reads the same
// zones as Abseil with other code. A case that fails is printed by SCOPED_TRACE; every run of these tests uses the same ones.
#include "jobs/cron.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <ctime>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <vector>

namespace lockstep::detail {
namespace {

using moments = std::vector<std::int64_t>;  // in UTC

// While it lives, the C library's local time is that of the zone.
class wall_clock {
public:
    explicit wall_clock(std::string const& zone) {
        if (auto const* const old = std::getenv("TZ")) old_ = old;
        ::setenv("TZ", zone.c_str(), 1);
        ::tzset();
    }
    ~wall_clock() {
        if (old_) ::setenv("TZ", old_->c_str(), 1);
        else ::unsetenv("TZ");
        ::tzset();
    }
    wall_clock(wall_clock const&) = delete;
    wall_clock& operator=(wall_clock const&) = delete;

    /// What it shows, counted as if that were UTC.
    std::int64_t shows(std::int64_t time) const {
        std::time_t const seconds = time;
        std::tm parts{};
        ::localtime_r(&seconds, &parts);
        return ::timegm(&parts);
    }

    /// Moments at which it was set, in these years, to the hour before.
    moments changes(int from_year, int until_year) const {
        moments found;
        constexpr std::int64_t year = 31556952;
        for (auto day = (from_year - 1970) * year / 86400 * 86400; day < (until_year - 1970) * year; day += 86400) {
            if (shows(day + 86400) - shows(day) == 86400) continue;
            for (auto time = day; time != day + 86400; time += 3600)
                if (shows(time + 3600) - shows(time) != 3600) found.push_back(time);
        }
        return found;
    }

private:
    std::optional<std::string> old_;
};

struct random_field {
    std::string text;
    std::set<int> values;

    bool is_open() const { return text[0] == '*' || text == "?"; }
};

using generator = std::mt19937_64;

int any(generator& chance, int low, int high) { return std::uniform_int_distribution{low, high}(chance); }

random_field field_of(generator& chance, int low, int high, int stars_of_ten) {
    random_field field;
    auto const add = [&](int from, int to, int step) {
        for (int i = from; i <= to; i += step) field.values.insert(i);
    };
    if (any(chance, 1, 10) <= stars_of_ten) {
        int const step = any(chance, 0, 2) == 0 ? any(chance, 1, high - low + 1) : 1;
        field.text = step == 1 ? "*" : "*/" + std::to_string(step);
        add(low, high, step);
        return field;
    }
    for (int left = any(chance, 1, 3); left > 0; --left) {
        int const from = any(chance, low, high);
        int const to = any(chance, from, high);
        int const step = any(chance, 1, (high - low) / 3 + 1);
        if (!field.text.empty()) field.text += ',';
        field.text += std::to_string(from);
        switch (any(chance, 0, 4)) {
            case 0: field.text += "-" + std::to_string(to), add(from, to, 1); break;
            case 1: field.text += "-" + std::to_string(to) + "/" + std::to_string(step), add(from, to, step); break;
            case 2: field.text += "/" + std::to_string(step), add(from, high, step); break;
            default: add(from, from, 1);
        }
    }
    return field;
}

struct reference {
    random_field second{"0", {0}}, minute, hour, day, month, weekday;
    bool last_day = false;

    explicit reference(generator& chance, bool with_seconds)
        : minute(field_of(chance, 0, 59, 3)), hour(field_of(chance, 0, 23, 3)), day(field_of(chance, 1, 31, 6)),
          month(field_of(chance, 1, 12, 8)), weekday(field_of(chance, 0, 6, 6)) {
        if (with_seconds) second = field_of(chance, 0, 59, 3);
        if (any(chance, 0, 9) == 0) {
            last_day = true;
            day = {"L", {}};
        }
        if (any(chance, 0, 2) == 0) hour = {"1-3", {1, 2, 3}};  // where most changes are
    }

    std::string text() const {
        return second.text + " " + minute.text + " " + hour.text + " " + day.text + " " + month.text + " " + weekday.text;
    }

    bool is_due(std::int64_t shown) const {
        std::time_t const seconds = shown;
        std::tm parts{};
        ::gmtime_r(&seconds, &parts);
        if (!second.values.contains(parts.tm_sec) || !minute.values.contains(parts.tm_min) || !hour.values.contains(parts.tm_hour) ||
            !month.values.contains(parts.tm_mon + 1))
            return false;
        std::time_t const tomorrow = shown + 86400;
        std::tm next{};
        ::gmtime_r(&tomorrow, &next);
        bool const date = day.values.contains(parts.tm_mday) || (last_day && next.tm_mday == 1);
        bool const weekday_fits = weekday.values.contains(parts.tm_wday);
        return !day.is_open() && !weekday.is_open() ? date || weekday_fits : date && weekday_fits;
    }

    moments between(wall_clock const& clock, std::int64_t from, std::int64_t until, std::int64_t step) const {
        bool const every_hour = hour.values.size() == 24;
        bool const twice = every_hour || minute.is_open() || minute.values.size() == 60;
        moments due;
        auto shown = clock.shows(from - 4 * 3600 - 60);  // early enough to know what was shown before a change
        auto latest = shown;
        for (auto time = from - 4 * 3600; time < until; time += time < from ? 60 : step) {
            auto const passed = time <= from ? 60 : step;
            auto const before = shown;
            shown = clock.shows(time);
            bool fires = is_due(shown) && (twice || shown > latest);
            for (auto skipped = before + passed; skipped < shown && !fires && !every_hour; skipped += step) fires = is_due(skipped);
            if (fires && time >= from) due.push_back(time);
            latest = std::max(latest, shown);
        }
        return due;
    }
};

moments planned(cron_schedule const& schedule, std::int64_t from, std::int64_t until) {
    moments due;
    for (auto time = std::chrono::sys_seconds{std::chrono::seconds{from - 1}};;) {
        time = schedule.next(time);
        if (time.time_since_epoch().count() >= until) return due;
        due.push_back(time.time_since_epoch().count());
    }
}

// Changes of an hour, half an hour, two hours and a day; at two, at one and at midnight; none at all.
constexpr std::array zones{"UTC",          "Europe/Berlin", "America/New_York", "Asia/Kolkata",     "Australia/Lord_Howe", "Africa/Cairo",
                           "Pacific/Apia", "Asia/Beirut",   "America/Havana",   "Antarctica/Troll", "Africa/Casablanca",   "Pacific/Chatham"};

void compare(generator& chance, int cases, bool with_seconds) {
    std::size_t fired = 0;
    for (auto const* const zone : zones) {
        wall_clock const clock{zone};
        auto const changes = clock.changes(2010, 2030);
        for (int i = 0; i != cases; ++i) {
            reference const expected{chance, with_seconds};
            std::int64_t middle = any(chance, 1262304000, 1893456000) / 60 * 60;
            if (!changes.empty() && any(chance, 0, 3) != 0) middle = changes[static_cast<std::size_t>(any(chance, 0, static_cast<int>(changes.size()) - 1))];
            std::int64_t const before = any(chance, 0, with_seconds ? 60 : 1440) * 60;
            auto const from = middle - before;
            auto const until = from + (with_seconds ? 2 : 48) * 3600;
            SCOPED_TRACE(expected.text() + " (" + zone + ") from " + std::to_string(from));
            std::optional<cron_schedule> schedule;
            try {
                schedule.emplace(expected.text(), zone);
            } catch (std::exception const& problem) {
                EXPECT_NE(std::string{problem.what()}.find("never fire"), std::string::npos) << problem.what();
                continue;
            }
            auto const due = expected.between(clock, from, until, with_seconds ? 1 : 60);
            fired += due.size();
            ASSERT_EQ(planned(*schedule, from, until), due);
            // Also from where nothing is due: within what clocks repeat, just before they change.
            for (int look = 0; look != 20; ++look) {
                auto const after = any(chance, static_cast<int>(from), static_cast<int>(until) - 1);
                auto const found = schedule->next(std::chrono::sys_seconds{std::chrono::seconds{after}}).time_since_epoch().count();
                auto const expected_at = std::ranges::upper_bound(due, after);
                if (expected_at != due.end()) ASSERT_EQ(found, *expected_at) << "after " << after;
                else ASSERT_GE(found, until) << "after " << after;
            }
        }
    }
    EXPECT_GT(fired, static_cast<std::size_t>(cases) * zones.size()) << "the cases are too easy";
}

TEST(cron_reference, agrees_minute_by_minute_around_changes_of_the_clock) {
    generator chance{1};
    compare(chance, 60, false);
}

TEST(cron_reference, agrees_second_by_second_around_changes_of_the_clock) {
    generator chance{2};
    compare(chance, 15, true);
}

TEST(cron_reference, agrees_day_by_day_over_the_years) {
    generator chance{3};
    for (int i = 0; i != 150; ++i) {
        reference expected{chance, false};
        expected.minute = {"0", {0}};
        expected.hour = {"12", {12}};
        if (any(chance, 0, 2) == 0) expected.month = {"2", {2}};
        std::int64_t const from = any(chance, -20000, 40000) * std::int64_t{86400};
        SCOPED_TRACE(expected.text() + " from " + std::to_string(from));
        moments due;
        for (std::int64_t day = 0; day != 12 * 365; ++day)
            if (auto const noon = from + day * 86400 + 43200; expected.is_due(noon)) due.push_back(noon);
        try {
            ASSERT_EQ(planned(cron_schedule{expected.text()}, from, from + 12 * 365 * std::int64_t{86400}), due);
        } catch (std::exception const& problem) {
            EXPECT_NE(std::string{problem.what()}.find("never fire"), std::string::npos) << problem.what();
            EXPECT_TRUE(due.empty());
        }
    }
}

}  // namespace
}  // namespace lockstep::detail
